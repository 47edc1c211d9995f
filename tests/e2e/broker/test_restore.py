"""A dump (pg_dump) restored into another server: everything continues there, whatever its transaction numbers are."""
import os
import subprocess

import pytest

import harness
from harness import TIME_FACTOR, wait_until

pytestmark = pytest.mark.one_broker

STORED = """select coalesce(sum(s.count), 0)::int from queen.segments s join queen.lanes l on l.num = s.lane
              join queen.queues q on q.id = l.queue_id where q.name = %s"""


def run(server, program, *args, **more):
    return subprocess.run([os.path.join(server.bin, program), "-h", server.host, "-p", str(server.port), "-U", server.user, *args, server.database],
                          check=True, stdout=subprocess.PIPE, **more).stdout


class Site:
    """A server with a broker."""

    def __init__(self, pg):
        self.pg = pg
        self.broker = harness.begin({**pg.env(), "RETENTION_INTERVAL": "300"})
        self.conn = pg.connect()

    def sql(self, text, *args):
        with self.conn.cursor() as cur:
            cur.execute(text, args or None)
            return cur.fetchall() if cur.description else []

    def stored(self, queue):
        return self.sql(STORED, queue)[0][0]

    def counts(self, queue):
        """The maintained statistics, without a recount."""
        told = self.broker.request("GET", "/api/v1/resources/queues/" + queue).expect(200).json["totals"]
        return told["total"], told["pending"]

    def close(self):
        self.conn.close()
        harness.end(self.broker, clean_exit=True)


@pytest.fixture
def servers():
    two = [harness.Postgres().start() for _ in range(2)]
    yield two
    for server in two:
        server.stop()


@pytest.fixture
def open_site(servers):
    sites = []

    def open_one(pg):
        sites.append(Site(pg))
        return sites[-1]
    yield open_one
    for site in sites:
        if site.broker.alive:
            site.close()


@pytest.mark.parametrize("later", ["source", "target"], ids=["its transactions have lower numbers", "its transactions have higher numbers"])
def test_a_restored_dump_continues_on_another_server(servers, open_site, later):
    source, target = servers
    conn = (source if later == "source" else target).connect()
    for _ in range(20000):
        conn.cursor().execute("select pg_current_xact_id()")
    conn.close()

    here = open_site(source)
    here.broker.configure("orders", retentionEnabled=True, retentionSeconds=3600)
    here.broker.put("orders", list(range(10)), partition="p")
    assert [m["data"] for m in here.broker.take("orders", consumerGroup="g", batch=4, autoAck=True)] == [0, 1, 2, 3]
    here.broker.configure("short", retentionEnabled=True, retentionSeconds=1)
    here.broker.put("short", ["gone"], partition="p")
    wait_until(lambda: here.stored("short") == 0, 15 * TIME_FACTOR, "retention")
    wait_until(lambda: here.counts("orders") == (10, 6), 15 * TIME_FACTOR, "figures")
    dump = run(source, "pg_dump")
    here.close()

    run(target, "psql", "-q", "-v", "ON_ERROR_STOP=1", input=dump)
    there = open_site(target)
    assert there.sql("select count(*) from queen.unseen_changes(pg_current_snapshot())") == [(0,)], "a snapshot sees all of its own server"
    there.broker.put("orders", [10, 11], partition="p")
    there.broker.put("orders", [12], partition="new")
    wait_until(lambda: there.counts("orders") == (13, 9), 5 * TIME_FACTOR, "figures of the restored database")
    assert [m["data"] for m in there.broker.take("orders", "p", consumerGroup="g", batch=99)] == list(range(4, 12))
    there.broker.put("short", ["goes", "too"], partition="p")
    assert there.sql("select count(*) from queen.changes where xid >= pg_snapshot_xmax(pg_current_snapshot())") == [(0,)]
    wait_until(lambda: there.stored("short") == 0, 15 * TIME_FACTOR, "retention in the restored database")
