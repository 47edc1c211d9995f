"""Plans made and kept while the tables were nearly empty must stay correct, and must not scan all rows later."""
import pytest

import harness

LANES = 40


@pytest.fixture(scope="module")
def small():
    """A broker whose PostgreSQL has statistics (ANALYZE) of one queue with one partition, made before it planned anything."""
    pg = harness.Postgres().start()
    try:
        b = harness.begin(pg.env())
        b.put("only", ["one"], partition="only")
        assert b.ack(b.take("only", consumerGroup="g")[0], consumerGroup="g")["success"]
        conn = pg.connect()
        conn.cursor().execute("analyze")
        b.sql = conn.cursor()
        yield b
        conn.close()
        harness.end(b, clean_exit=True)
    finally:
        pg.stop()


def each(small, queue):
    """One message of each partition, as leases of their own."""
    return [small.take(queue, str(i))[0] for i in range(LANES)]


@pytest.mark.parametrize("way", [1, -1])
def test_batches_are_finished_in_any_order(small, queue, way):
    for _ in range(2):
        small.push([{"queue": queue, "partition": str(i), "payload": i} for i in range(LANES)]).expect(201)
    for _ in range(2):
        got = each(small, queue)
        answers = small.ack_batch(got[::way])
        assert [a["transactionId"] for a in answers] == [m["transactionId"] for m in got[::way]]
        assert [a["success"] for a in answers] == [True] * LANES
    assert small.take(queue, batch=9) == []


def plan_as_the_broker(small):
    small.sql.execute("set plan_cache_mode = force_generic_plan; set enable_hashjoin = off; set enable_mergejoin = off;"
                      "set enable_seqscan = off; set enable_bitmapscan = off")


def read_by(small, table, call, *args):
    """How many rows of the table the call reads."""
    plan_as_the_broker(small)
    small.sql.execute("begin")  # pg_stat counters of this transaction alone
    small.sql.execute(call, args)
    small.sql.execute("select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables"
                      " where schemaname = 'queen' and relname = %s", (table,))
    rows = small.sql.fetchone()[0]
    small.sql.execute("rollback")
    return rows


FINISH = """select queen.finish(0, array_agg(c.num), array_agg(c.lane), array_agg(0::bigint), array_agg(gen_random_uuid()), array_agg(false))
              from (select c.num, c.lane from queen.consumers c order by c.num desc limit 2) c"""
CHANGES = "select count(*) from queen.changes_since(%s, 1)"


def test_pages_read_per_call_do_not_grow_with_the_data(small, queue):
    """The plans are this session's first, made by what ANALYZE saw."""
    def reads():
        small.sql.execute("select pg_current_snapshot()::text")
        seen = small.sql.fetchone()[0]
        small.put(queue, ["all that is new"], partition="p")
        return {"lanes": read_by(small, "lanes", FINISH), "queues": read_by(small, "queues", CHANGES, seen)}

    small.put(queue, ["first"], partition="p")
    assert len(small.take(queue)) == 1
    few = reads()
    for i in range(60):
        small.push([{"queue": "%s-%d" % (queue, i), "partition": str(p), "payload": 1} for p in range(5)]).expect(201)
    many = reads()
    assert all(many[table] <= few[table] + 5 for table in few), (few, many)


def test_a_group_that_meets_many_partitions_finds_each_of_its_consumers_at_once(small, queue):
    n = 200
    small.push([{"queue": queue, "partition": str(p), "payload": 1} for p in range(n)]).expect(201)
    assert read_by(small, "consumers", "select count(*) from queen.discover(%s, null, 'g', '', '', '', '')", queue) < 10 * n


def test_only_requested_segments_are_read(small, queue):
    """By the statistics a lane has one segment, so the planner may read all segments before it selects some."""
    for lo in range(0, 2000, 500):
        small.push([{"queue": queue + "-many", "partition": str(p), "payload": 1} for p in range(lo, lo + 500)]).expect(201)
    small.sql.execute("analyze queen.segments")
    small.configure(queue, retryLimit=0, deadLetterQueue=True, dlqAfterMaxRetries=True)
    for i in range(5):
        small.put(queue, [i], partition="p")
        assert small.ack(small.take(queue)[0], "failed")["success"]
    for _ in range(5):  # the oldest first
        answer = small.request("POST", "/api/v1/dlq/redrive", {"queue": queue, "limit": 1}).expect(200).json
        assert answer["redriven"] == 1
    assert sorted(m["data"] for _ in range(5) for m in small.take(queue, autoAck=True, wait=True, timeout=5000)) == list(range(5))
