"""A primary with a synchronous standby: the primary dies, the standby is promoted, and no answered request is lost.

Both listen on one port, on addresses of their own, as two machines would; PG_HOST names both.
"""
import os
import subprocess
import threading
import time

import pytest

from harness import START_TIMEOUT, TIME_FACTOR, Postgres, uuid7, wait_until

PRIMARY, STANDBY = "127.0.0.1", "127.0.0.2"


class Pair:
    """A primary with its synchronous standby."""

    def __init__(self):
        self.first = Postgres().start()
        self.settings("wal_level = replica", "max_wal_senders = 4", "hot_standby = on", "synchronous_commit = on")
        self.first.halt()
        self.first.launch()
        self.second = Postgres()
        self.second.host, self.second.port = STANDBY, self.first.port
        subprocess.run(self.second.prefix + [os.path.join(self.second.bin, "pg_basebackup"), "-h", PRIMARY, "-p", str(self.first.port),
                                             "-U", "postgres", "-D", self.second.data, "-R", "--checkpoint=fast", "--no-sync"],
                       check=True, cwd=self.second.root)
        os.chmod(self.second.data, 0o700)
        self.second.launch()
        self.settings("synchronous_standby_names = '*'")
        self.ask(self.first, "select pg_reload_conf()")
        wait_until(lambda: self.ask(self.first, "select sync_state from pg_stat_replication") == "sync", 30, "the standby is synchronous")

    def settings(self, *lines):
        with open(os.path.join(self.first.data, "postgresql.auto.conf"), "a") as f:
            f.write("\n".join(lines) + "\n")

    @staticmethod
    def ask(server, sql):
        conn = server.connect()
        try:
            cur = conn.cursor()
            cur.execute(sql)
            row = cur.fetchone() if cur.description else None
            return row and row[0]
        finally:
            conn.close()

    def promote(self):
        self.ask(self.second, "alter system set synchronous_standby_names = ''")
        self.ask(self.second, "select pg_reload_conf()")
        self.ask(self.second, "select pg_promote()")

    def stop(self):
        self.first.stop()
        self.second.stop()


@pytest.fixture
def servers():
    pair = Pair()
    try:
        yield pair
    finally:
        pair.stop()


class Producer(threading.Thread):
    """Pushes numbers to a partition of its own, each until it has an answer; remembers what was answered."""

    def __init__(self, broker, queue, number):
        super().__init__(daemon=True)
        self.broker, self.queue, self.partition, self.answered, self.stop = broker, queue, "p%d" % number, [], False

    def run(self):
        n = 0
        while not self.stop:
            item = {"queue": self.queue, "partition": self.partition, "payload": n, "transactionId": uuid7()}
            while True:
                try:
                    r = self.broker.push([item], timeout=60)
                except OSError:
                    continue
                if r.status == 201 and r.json[0]["status"] in ("queued", "buffered", "duplicate"):
                    break
                time.sleep(0.05)
            self.answered.append(n)
            n += 1


def everything(broker, queue, partition):
    got = []
    while True:
        batch = broker.take(queue, partition, batch=500, autoAck=True)
        if not batch:
            return got
        got += [m["data"] for m in batch]


def test_a_promoted_standby_has_everything_and_the_brokers_find_it(servers, make_broker, queue):
    env = {**{k: str(v) for k, v in servers.first.env().items()}, "PG_HOST": "%s,%s" % (PRIMARY, STANDBY)}
    brokers = [make_broker(**env), make_broker(**env)]
    producers = [Producer(brokers[i % 2], queue, i) for i in range(4)]
    for p in producers:
        p.start()
    wait_until(lambda: all(len(p.answered) > 50 for p in producers), 30 * max(1, TIME_FACTOR), "under load")

    servers.first.process.kill()
    servers.first.halt()
    at_death = [len(p.answered) for p in producers]
    wait_until(lambda: all(len(p.answered) > n + 5 for p, n in zip(producers, at_death)), 30 * max(1, TIME_FACTOR), "pushes go on, buffered")
    servers.promote()
    for b in brokers:
        wait_until(lambda: b.get("/ready").status == 200, START_TIMEOUT, "the new primary was found")
        wait_until(lambda: b.get("/api/v1/status/buffers").json["pending"] == 0, 30 * max(1, TIME_FACTOR), "replayed")

    # The former primary comes back as a standby, first in PG_HOST and read-only: no broker writes to it.
    with open(os.path.join(servers.first.data, "standby.signal"), "w"):
        pass
    servers.first.launch()
    assert servers.ask(servers.first, "select pg_is_in_recovery()") is True
    after = [len(p.answered) for p in producers]
    wait_until(lambda: all(len(p.answered) > n + 20 for p, n in zip(producers, after)), 30 * max(1, TIME_FACTOR), "and on")
    for p in producers:
        p.stop = True
    for p in producers:
        p.join(60)
    for b in brokers:
        wait_until(lambda: b.get("/api/v1/status/buffers").json["pending"] == 0, 30 * max(1, TIME_FACTOR), "replayed")
    for p in producers:
        assert everything(brokers[0], queue, p.partition) == p.answered, "all of it, once, in order"
    assert servers.ask(servers.second, "select count(*) from pg_stat_activity where application_name = 'queen'") > 0


def test_a_broker_starts_while_only_the_second_host_takes_writes(servers, make_broker, queue):
    servers.first.process.kill()
    servers.first.halt()
    servers.promote()
    env = {**{k: str(v) for k, v in servers.first.env().items()}, "PG_HOST": "%s,%s" % (PRIMARY, STANDBY)}
    b = make_broker(**env)
    b.put(queue, [1])
    assert b.take(queue)[0]["data"] == 1
