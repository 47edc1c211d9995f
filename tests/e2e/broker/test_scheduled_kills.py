"""Scheduled delivery: exactly once, whatever process dies when messages fall due."""
import random
import time

import pytest

from harness import wait_until
from test_scheduled import all_of


def test_waiting_messages_outlive_a_restart(make_broker, pg, queue):
    database = pg.create_database("restart_%d" % time.monotonic_ns())
    b = make_broker(database=database)
    ids = [r["scheduleId"] for r in b.push([{"queue": queue, "payload": i, "delaySeconds": 1 + i / 10} for i in range(10)]).expect(201).json]
    b.kill()
    c = make_broker(database=database)
    assert [m["id"] for m in all_of(c, queue, 10)] == ids


@pytest.mark.one_broker
def test_exactly_once_though_brokers_and_backends_are_killed_while_firing(make_broker, pg, queue):
    """Two brokers fire a thousand messages while one is killed again and again, and backends of PostgreSQL with it."""
    database = pg.create_database("kills_%d" % time.monotonic_ns())
    steady, victim = make_broker(database=database), make_broker(database=database)
    n = 1000
    want = {}
    for start in range(0, n, 100):
        items = [{"queue": queue, "partition": str(i % 10), "payload": i, "delaySeconds": 1 + i / 400} for i in range(start, start + 100)]
        for r, i in zip(steady.push(items).expect(201).json, range(start, start + 100)):
            want[r["scheduleId"]] = i
    conn = pg.connect(database=database)

    def row(statement):
        with conn.cursor() as cur:
            cur.execute(statement)
            return cur.fetchone()

    def fired():
        """How many lie in their partitions, once none waits any more."""
        waits, stored = row("select exists (select from queen.scheduled), sum(count) from queen.segments")
        return not waits and stored
    deadline = time.monotonic() + 4.5
    rng = random.Random(3)
    while time.monotonic() < deadline and not fired():
        row("select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() "
            "and pid <> pg_backend_pid() and query like '%%fire_scheduled%%'")
        if rng.random() < 0.3:
            victim.kill()
            victim = make_broker(database=database)
        time.sleep(rng.random() / 10)
    assert wait_until(fired, 20, "all to be fired") == n
    conn.close()
    got = all_of(steady, queue, n)
    assert sorted(m["id"] for m in got) == sorted(want), "each once"
    for lane in range(10):
        assert [m["data"] for m in got if m["partition"] == str(lane)] == [i for i in range(n) if i % 10 == lane], "in order"


@pytest.mark.one_broker
def test_exactly_once_though_postgresql_crashes_while_firing(make_broker, frail_pg, queue):
    b = make_broker(server=frail_pg, database=frail_pg.create_database("crash_%d" % time.monotonic_ns()))
    n = 600
    ids = [r["scheduleId"] for r in b.push([{"queue": queue, "payload": i, "delaySeconds": 0.5 + i / 600} for i in range(n)]).expect(201).json]
    for _ in range(2):
        time.sleep(0.6)  # in the midst of them
        frail_pg.halt()
        frail_pg.launch()
    got = [m["id"] for m in all_of(b, queue, n, timeout=30)]
    assert got == ids, "each once, in order"
