"""An open SQL transaction delays the scheduled messages, retries and recurring messages of its own partition only."""
import json
import time
import uuid

import pytest

from harness import patience, wait_until

FAR = "2033-%02d-01T00:00:00Z"


@pytest.fixture
def hold(pg, broker):
    """hold(item, ...): pushes these by SQL and leaves the transaction open; the value ends it."""
    made = []

    def make(*items):
        conn = pg.connect(autocommit=False)
        made.append(conn)
        with conn.cursor() as cur:
            cur.execute("select queen.push_messages_v2(%s)", (json.dumps(items),))
        return conn.commit
    yield make
    for conn in made:
        conn.close()


def all_of(broker, queue, n, **params):
    got = []
    wait_until(lambda: got.extend(broker.take(queue, autoAck=True, batch=100, partitions=100, wait=True, timeout=500, **params))
               or len(got) >= n, 20, "%d messages" % n)
    return [m["data"] for m in got]


def every(broker, queue, **more):
    """A recurring message, and its name."""
    name = "s-" + uuid.uuid4().hex[:12]
    broker.post("/api/v1/schedules", dict({"name": name, "queue": queue, "cron": "0 0 1 1 *", "payload": name}, **more)).expect(201)
    return name


def make_due(sql, names, seconds=0):
    sql("update queen.schedules set next_at = now() - %s * interval '1 second' where name = any (%s)", seconds, names)


@pytest.mark.parametrize("exists", [True, False])
def test_a_recurring_message_with_a_locked_partition_delays_nothing_else(broker, sql, queue, hold, exists):
    """The partition exists, or the open transaction is creating it."""
    held, free = every(broker, queue, partition="held"), every(broker, queue + "-free")
    if exists:
        broker.put(queue, ["before"], partition="held")
        all_of(broker, queue, 1)
    try:
        release = hold({"queue": queue, "partition": "held", "payload": "sql"})
        make_due(sql, [held])
        time.sleep(0.3)  # it has been found held
        make_due(sql, [free])
        broker.push([{"queue": queue + "-later", "payload": "later", "delaySeconds": 0.2}]).expect(201)
        assert all_of(broker, queue + "-free", 1) == [free]
        assert all_of(broker, queue + "-later", 1) == ["later"]
        shown = broker.get("/api/v1/schedules/" + held).expect(200).json
        assert shown["runs"] == 0 and shown["nextRunAt"] is not None
        release()
        assert sorted(all_of(broker, queue, 2)) == sorted(["sql", held])
        wait_until(lambda: broker.get("/api/v1/schedules/" + held).json["runs"] == 1, 10, "it is counted")
    finally:
        for name in (held, free):
            broker.request("DELETE", "/api/v1/schedules/" + name)


@pytest.mark.parametrize("missed", ["skip", "once"])
def test_a_time_that_found_its_partition_held_was_not_missed(broker, sql, queue, hold, missed):
    broker.put(queue, ["before"], partition="held")
    all_of(broker, queue, 1)
    name = every(broker, queue, partition="held", missed=missed)
    try:
        release = hold({"queue": queue, "partition": "held", "payload": "sql"})
        make_due(sql, [name])
        wait_until(lambda: sql("select delayed_at from queen.schedules where name = %s", name)[0][0], 10, "it is held")
        sql("update queen.schedules set delayed_at = delayed_at - interval '10 minutes' where name = %s", name)
        release()
        assert sorted(all_of(broker, queue, 2)) == sorted(["sql", name])
        assert sql("select delayed_at, next_at > now() from queen.schedules where name = %s", name) == [(None, True)]
    finally:
        broker.request("DELETE", "/api/v1/schedules/" + name)


def test_delayed_pushes_and_failures_do_not_wait_for_a_slice(broker, queue, group, hold):
    """The open transaction and others have scheduled messages for a month that was not used before."""
    policy = {"mode": "scheduled", "strategy": "fixed", "base": 40 * 86400, "maxAttempts": 3}
    broker.configure(queue, retryPolicy=policy)
    broker.put(queue, ["x"])
    (message,) = broker.take(queue, consumerGroup=group)
    hold({"queue": queue + "-sql", "payload": 1, "scheduledAt": FAR % 3})
    begin = time.monotonic()
    assert broker.push([{"queue": queue + "-other", "payload": 2, "scheduledAt": FAR % 9}]).expect(201).json[0]["status"] == "scheduled"
    assert broker.ack(message, "failed")["nextAttempt"] == 2
    assert time.monotonic() - begin < patience(8), "without waiting for the open transaction"
    broker.request("DELETE", "/api/v1/scheduled?queue=" + queue + "-other").expect(200)


def test_blocked_messages_are_not_polled_constantly(make_broker, pg, queue):
    """A message is due, its partition is held, and a pop is parked, which makes the broker read the change feed."""
    database = pg.create_database("held_%d" % time.monotonic_ns())
    b = make_broker(database=database)
    b.push([{"queue": queue, "payload": "before"}]).expect(201)
    all_of(b, queue, 1)
    conn, watch = pg.connect(autocommit=False, database=database), pg.connect(database=database)

    def transactions():
        with watch.cursor() as cur:
            cur.execute("select pg_stat_clear_snapshot()")
            cur.execute("select xact_commit + xact_rollback from pg_stat_database where datname = %s", (database,))
            return cur.fetchone()[0]
    try:
        b.push([{"queue": queue, "payload": "due", "delaySeconds": 0.5}]).expect(201)
        with conn.cursor() as cur:
            cur.execute("select from queen.lanes where queue_id = (select id from queen.queues where name = %s) for no key update", (queue,))
        assert b.take(queue, wait=True, timeout=2000) == []
        before = transactions()
        assert b.take(queue, wait=True, timeout=3000) == []
        time.sleep(1.2)  # sessions report their counts once in a second
        assert transactions() - before < 400
        conn.commit()
        assert all_of(b, queue, 1) == ["due"]
    finally:
        conn.close()
        watch.close()
