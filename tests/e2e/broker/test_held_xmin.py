"""An open transaction: retention does not add dead rows that vacuum cannot reclaim (docs/operations/retention.md, ADR 33)."""
import contextlib
import time

import pytest

import harness
from harness import TIME_FACTOR, wait_until
from test_observability import scrape

LIMIT, VERSIONS = 50, 500  # rows, instead of many
# Tables that are updated in place, and an update of each that changes no value.
SMALL = {"lane_stats": "dead = dead", "consumer_stats": "ver = ver", "stats": "child_count = child_count", "stats_history": "total_messages = total_messages",
         "stats_pass": "emptied = emptied", "lane_due": "evict_at = evict_at", "sweeps": "seen = seen", "rotation": "emptied = emptied", "owners": "epoch = epoch",
         "consumer_watermarks": "updated_at = updated_at", "worker_metrics_summary": "dlq = dlq"}


@pytest.fixture(scope="module")
def pg():
    p = harness.Postgres()
    p.settings = {"autovacuum_naptime": "1d"}  # the tests run vacuum themselves
    p.start()
    yield p
    p.stop()


@pytest.fixture(scope="module")
def broker(pg):
    b = harness.begin({**pg.env(), "RETENTION_INTERVAL": "300", "EVICTION_INTERVAL": "300"})
    with pg.connect() as conn, conn.cursor() as cur:
        for limit, n in ("dead_rows_limit", LIMIT), ("dead_versions_limit", VERSIONS):
            cur.execute("create or replace function queen.%s() returns bigint language sql immutable as 'select %d::bigint'" % (limit, n))
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
    """Reports of vacuum are used for a limited time."""
    was = sql("select pg_get_functiondef('queen.vacuum_grace'::regproc)")[0][0]
    sql("create or replace function queen.vacuum_grace() returns interval language sql immutable as $$ select interval '%s' $$" % how_long)
    try:
        yield
    finally:
        sql(was)


@contextlib.contextmanager
def vacuum_due(sql):
    """Autovacuum would come, if it had the time."""
    was = sql("select pg_get_functiondef('queen.vacuum_comes_at'::regproc)")[0][0]
    sql("create or replace function queen.vacuum_comes_at(p_table regclass) returns bigint language sql as 'select 10::bigint'")
    try:
        yield
    finally:
        sql(was)


class Table:
    def __init__(self, sql, name):
        self.sql, self.name = sql, "queen." + name

    def dead(self):
        return self.sql("select pg_stat_get_dead_tuples(%s::regclass)", self.name)[0][0]

    def removed(self):
        """As far as the sessions have reported it, which they do once a second."""
        return self.sql("select pg_stat_get_tuples_deleted(%s::regclass)", self.name)[0][0]

    def vacuum(self):
        self.sql("vacuum " + self.name)


@pytest.mark.parametrize("name", ["segments", "message_keys"])
def test_retention_pauses_while_vacuum_cannot_reclaim(pg, broker, queue, sql, name):
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

        full = queue + "-full"
        broker.configure(full, retentionEnabled=True, retentionSeconds=1, maxSize=3)
        fill(broker, full, 3, False)
        wait_until(lambda: broker.push([{"queue": full, "partition": "p", "payload": 4}]).status == 201, 10 * TIME_FACTOR, "what is too old fills the queue")
        assert stored() == 5

        with believed(sql, "1 second"):
            with vacuum_due(sql):
                time.sleep(2.5)  # passes go by
                assert stored() == 5, "it does not wait for a vacuum that is about to come"
            wait_until(lambda: stored() == 0, 10 * TIME_FACTOR, "it waits for a vacuum that does not come")
        fill(broker, queue, 5, keys and "kept-again")
        later(sql)
        wait_until(lambda: stuck(broker) >= LIMIT, 10 * TIME_FACTOR, "it does not wait any more")

    table.vacuum()
    assert table.dead() < LIMIT
    wait_until(lambda: stored() == 0, 10 * TIME_FACTOR, "it does not go on")
    wait_until(lambda: stuck(broker) == 0, 10 * TIME_FACTOR, "the broker still says that it waits")
    log = broker.log_text()
    assert "retention.paused" in log and "retention.resumed" in log


@pytest.fixture
def small(broker, queue, sql):
    """Each of the small tables has a row at least."""
    broker.configure(queue, retentionEnabled=True, retentionSeconds=3600, partitions=2)
    broker.put(queue, ["a"], partition="0")
    broker.request("POST", "/api/v1/consumer-groups/g/queues/%s/owners/claim" % queue, {"owner": "me", "partitions": [{"partition": "0", "epoch": 0}]}).expect(200)
    assert broker.take(queue, consumerGroup="other", batch=9) != [] == broker.take(queue, consumerGroup="other")
    broker.request("POST", "/api/v1/stats/refresh").expect(200)
    sql("insert into queen.worker_metrics_summary (hostname, worker_id) values ('test', 77) on conflict do nothing")
    sql("insert into queen.consumer_watermarks (queue_name, consumer_group) values (%s, 'other') on conflict do nothing", queue)
    sql("select queen.note_ages(true)")
    while rewrite_bloated_table(sql):  # what the broker did until now
        pass
    return {name: Table(sql, name) for name in SMALL}


def told(sql):
    """Other sessions see the counts of this session, also later than a second."""
    sql("select pg_stat_force_next_flush()")


def rewrite_bloated_table(sql):
    done = sql("select queen.rewrite_bloated_table()")[0][0]
    told(sql)
    return done


@contextlib.contextmanager
def in_use(pg, table):
    """By a transaction that may read it again."""
    conn = pg.connect(autocommit=False)
    try:
        conn.cursor().execute("select from " + table.name)
        yield
        conn.rollback()
    finally:
        conn.close()


def swell(sql, table):
    """Until it is mostly dead versions; all of them of one row."""
    text = "update {0} set {1} where ctid = (select ctid from {0} limit 1)".format(table.name, SMALL[table.name.split(".")[1]])
    while table.dead() < max(VERSIONS, 4 * sql("select count(*) from " + table.name)[0][0]):
        for _ in range(VERSIONS):
            sql(text)
        told(sql)


def test_tables_updated_in_place_are_rewritten(pg, broker, queue, sql, small):
    with held_snapshot(pg):
        for name, table in small.items():
            swell(sql, table)
            with in_use(pg, table):
                assert rewrite_bloated_table(sql) is None
            said = sql("select to_jsonb(t) from %s t" % table.name)
            assert rewrite_bloated_table(sql) == name
            assert sorted(map(str, sql("select to_jsonb(t) from %s t" % table.name))) == sorted(map(str, said)) != []
            assert table.dead() < VERSIONS
    broker.put(queue, ["b"], partition="0")
    assert [m["data"] for m in broker.take(queue, consumerGroup="third", batch=9)] == ["a", "b"]


def test_the_table_with_most_dead_rows_comes_first_and_one_in_use_is_left_out(pg, sql, small):
    with held_snapshot(pg):
        swell(sql, small["owners"])
        swell(sql, small["sweeps"])
        for _ in range(VERSIONS):
            sql("update queen.sweeps set seen = seen")
        told(sql)
        with in_use(pg, small["sweeps"]):
            assert rewrite_bloated_table(sql) == "owners"
        swell(sql, small["owners"])
        assert [rewrite_bloated_table(sql) for _ in range(3)] == ["sweeps", "owners", None]


@pytest.mark.parametrize("options, threshold, share", [
    ("", 50, 0.2), ("with (autovacuum_vacuum_threshold = 7)", 7, 0.2),
    ("with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.5, autovacuum_vacuum_threshold = 1)", 1, 0.5)])
def test_when_autovacuum_comes_is_worked_out_as_it_does(broker, sql, options, threshold, share):
    def comes_at():
        return sql("select queen.vacuum_comes_at('public.sample')")[0][0]
    sql("drop table if exists public.sample")
    sql("create table public.sample %s as select generate_series(1, 1000)" % options)
    assert comes_at() == threshold
    sql("analyze public.sample")
    assert comes_at() == threshold + share * 1000


DELAYS = """select c.relname, (select o.option_value from pg_options_to_table(c.reloptions) o where o.option_name = 'autovacuum_vacuum_cost_delay'),
                   (select o.option_value from pg_class t cross join pg_options_to_table(t.reloptions) o
                     where t.oid = c.reltoastrelid and o.option_name = 'autovacuum_vacuum_cost_delay')
              from pg_class c where c.oid in ('queen.segments'::regclass, 'queen.message_keys'::regclass)"""


def test_vacuum_that_can_free_nothing_takes_its_time(pg, broker, queue, sql):
    """Pauses, in milliseconds, of the table and of its TOAST."""
    fast, slow, none = ("0", "0"), ("2", "2"), ("0", None)

    def delays():
        sql("select queen.stats_chore(0, 0, 7)")
        return {name: (own, toast) for name, own, toast in sql(DELAYS)}
    segments = Table(sql, "segments")
    for t in (segments, Table(sql, "message_keys")):
        t.vacuum()
    told(sql)
    assert delays() == {"segments": fast, "message_keys": none}
    before = segments.removed()
    with held_snapshot(pg):
        broker.configure(queue, retentionEnabled=True, retentionSeconds=1)
        fill(broker, queue, LIMIT + 10, False)
        wait_until(lambda: segments.removed() >= before + LIMIT + 10, 15 * TIME_FACTOR, "nobody tells what was removed")
        segments.vacuum()
        later(sql)
        with pg.connect(autocommit=False) as vacuum, vacuum.cursor() as cur:
            cur.execute("lock table queen.segments in share update exclusive mode")
            assert delays()["segments"] == fast, "vacuum was there: it is left alone, and not waited for"
        wait_until(lambda: delays() == {"segments": slow, "message_keys": none}, 10 * TIME_FACTOR, "no pauses")
        sql("alter table queen.segments set (autovacuum_vacuum_cost_delay = 7)")
    segments.vacuum()
    told(sql)
    wait_until(lambda: delays()["segments"] == ("7", "0"), 10 * TIME_FACTOR, "what an operator has set stays, the rest goes back")
    sql("alter table queen.segments set (autovacuum_vacuum_cost_delay = 2)")
    wait_until(lambda: delays()["segments"] == fast, 10 * TIME_FACTOR, "it keeps its pauses")
