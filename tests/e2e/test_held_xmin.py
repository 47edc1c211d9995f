"""A transaction that is left open: retention does not pile up rows that vacuum cannot free (docs/retention.md, decision 33)."""
import contextlib
import time

import pytest

import harness
from harness import TIME_FACTOR, wait_until
from test_observability import scrape

LIMIT = 50  # rows, instead of many


@pytest.fixture(scope="module")
def pg():
    p = harness.Postgres()
    p.settings = {"autovacuum": "off"}  # the tests say when it comes
    p.start()
    yield p
    p.stop()


@pytest.fixture(scope="module")
def broker(pg):
    b = harness.begin({**pg.env(), "RETENTION_INTERVAL": "300", "EVICTION_INTERVAL": "300"})
    with pg.connect() as conn, conn.cursor() as cur:
        cur.execute("create or replace function queen.dead_rows_limit() returns bigint language sql immutable as 'select %d::bigint'" % LIMIT)
    yield b
    harness.end(b, clean_exit=True)


@contextlib.contextmanager
def held_snapshot(pg):
    conn = pg.connect(autocommit=False)
    try:
        conn.set_session(isolation_level="REPEATABLE READ")
        conn.cursor().execute("select txid_current()")
        yield
        conn.rollback()  # closing alone is not waited for
    finally:
        conn.close()


def stuck(broker):
    samples, _ = scrape(broker)
    return samples["queen_stuck_rows"][0][1]


def fill(broker, queue, n, ids):
    """A segment for each message, or, with ids, a key for each and one segment for all."""
    items = [{"queue": queue, "partition": "p", "payload": i, **({"transactionId": "%s-%d" % (ids, i)} if ids else {})} for i in range(n)]
    for some in [items] if ids else [[item] for item in items]:
        broker.push(some).expect(201)


def later(sql):
    """Two minutes pass for what was removed."""
    sql("update queen.retention_history set executed_at = executed_at - interval '2 minutes'")


@contextlib.contextmanager
def believed(sql, how_long):
    """What vacuum has reported is believed for so long only."""
    text = "create or replace function queen.vacuum_grace() returns interval language sql immutable as $$ select interval '%s' $$"
    sql(text % how_long)
    try:
        yield
    finally:
        sql(text % "10 minutes")


class Table:
    def __init__(self, sql, name):
        self.sql, self.name = sql, "queen." + name

    def dead(self):
        return self.sql("select pg_stat_get_dead_tuples(%s::regclass)", self.name)[0][0]

    def removed(self):
        """As far as those who did it have told, which they do once a second."""
        return self.sql("select pg_stat_get_tuples_deleted(%s::regclass)", self.name)[0][0]

    def vacuum(self):
        self.sql("vacuum " + self.name)


@pytest.mark.parametrize("name", ["segments", "message_keys"])
def test_what_cannot_be_freed_is_not_removed_until_it_can(pg, broker, queue, sql, name):
    table, keys = Table(sql, name), name == "message_keys"

    def stored():
        return sql("select coalesce(sum(s.count), 0)::int from queen.segments s join queen.lanes l on l.num = s.lane "
                   "join queen.queues q on q.id = l.queue_id where q.name = %s", queue)[0][0]

    for t in (Table(sql, "segments"), Table(sql, "message_keys")):
        t.vacuum()
    before = table.removed()
    with held_snapshot(pg):
        broker.configure(queue, retentionEnabled=True, retentionSeconds=1)
        fill(broker, queue, LIMIT + 10, keys and "first")
        wait_until(lambda: stored() == 0, 15 * TIME_FACTOR, "few rows are removed whoever holds what")
        wait_until(lambda: table.removed() >= before + LIMIT + 10, 15 * TIME_FACTOR, "nobody tells what was removed")
        table.vacuum()
        assert table.dead() >= LIMIT + 10, "vacuum must not have been able to free them: the test is wrong"

        fill(broker, queue, 3, keys and "again")
        wait_until(lambda: stored() == 0, 15 * TIME_FACTOR, "rows that were removed just now need not have been met by vacuum")

        later(sql)
        wait_until(lambda: stuck(broker) >= LIMIT, 10 * TIME_FACTOR, "the broker does not say that it waits")
        fill(broker, queue, 5, keys and "kept")
        time.sleep(2.5)  # they become too old, and passes go by
        assert stored() == 5
        assert broker.take(queue, "p", batch=9) == [], "what is too old is not delivered, removed or not"

        with believed(sql, "1 second"):
            wait_until(lambda: stored() == 0, 10 * TIME_FACTOR, "it waits for a vacuum that does not come")
        fill(broker, queue, 5, keys and "kept-again")
        later(sql)
        wait_until(lambda: stuck(broker) >= LIMIT, 10 * TIME_FACTOR, "it does not wait any more")

    table.vacuum()
    assert table.dead() < LIMIT
    wait_until(lambda: stored() == 0, 10 * TIME_FACTOR, "it does not go on")
    wait_until(lambda: stuck(broker) == 0, 10 * TIME_FACTOR, "the broker still says that it waits")
    log = broker.log_text()
    assert "chores.held" in log and "chores.resumed" in log
