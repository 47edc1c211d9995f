"""The functions of sql/procs without a broker: storage, claims, leases, expiry, the JSON surface."""
import json
import time
import uuid

import psycopg2
import pytest

import sqlcore
from harness import in_parallel
from sqlcore import Core, key, v7


@pytest.fixture(scope="session")
def core_db(pg):
    name = pg.create_database("sqlcore_" + uuid.uuid4().hex[:8])
    conn = pg.connect(database=name)
    sqlcore.load(conn)
    conn.close()
    return name


@pytest.fixture
def connect(pg, core_db):
    """connect(): one more Core on the database of these tests."""
    made = []

    def make(autocommit=True):
        made.append(pg.connect(autocommit=autocommit, database=core_db))
        return Core(made[-1])
    yield make
    for conn in made:
        conn.close()


@pytest.fixture
def core(connect):
    return connect()


@pytest.fixture
def lane(core, queue):
    """(number, id) of one fresh lane."""
    core.configure(queue)
    return core.lanes((queue, "p"))[0]


def js(core, function, value):
    return core.one("select queen.%s(%%s::jsonb)" % function, json.dumps(value))


def stored(core, rows):
    assert [r.status for r in rows] == [0] * len(rows), rows
    return rows


# --- keys and ids ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("text", ["order-1", "", "ü", str(uuid.UUID(int=7)), v7().upper(), v7(),
                                  "019f0000-0000-8000-8000-000000000001", "019f0000000070008000000000000001"])
def test_the_key_of_a_transaction_id(core, text):
    assert core.one("select queen.transaction_key(%s)", text) == key(text)


def test_only_version_7_has_a_time(core):
    assert core.one("select queen.key_time(%s::uuid)", v7(1700000000123)) == 1700000000123
    assert core.one("select queen.key_time(%s::uuid)", str(uuid.uuid4())) is None


def test_a_key_is_found_on_a_boundary_only(core):
    a, b = uuid.uuid4().bytes, uuid.uuid4().bytes
    across = a[8:] + b[:8]
    assert core.one("select queen.key_position(%s::bytea, %s::bytea)", a + b, across) is None
    assert core.one("select queen.key_position(%s::bytea, %s::bytea)", a + b + across, across) == 2
    assert core.one("select queen.key_position(%s::bytea, %s::bytea)", a + b, b) == 1


def test_message_ids_rise_with_place_and_time(core):
    ids = [core.one("select queen.message_id('2026-01-01'::timestamptz + %s * interval '1 us', %s, 7)", us, pos)
           for us in (0, 1, 999, 1000) for pos in (0, 1, 255)]
    assert ids == sorted(ids) and len(set(ids)) == len(ids)
    assert {i.version for i in ids} == {7}


def test_a_packed_message_comes_back(core):
    row = core.rows("""select u.* from queen.unpack_segment(3, now(), 2,
        decode(repeat('00', 32), 'hex'), '\\x01' || queen.pack_message('tä', %s::uuid, 'sub', true, %s::uuid, '{"a": 1}')
                                                 || queen.pack_message(null, null, null, false, null, '"x"')) u""",
                    str(uuid.UUID(int=1)), str(uuid.UUID(int=2)))
    assert (row[0].transaction_id, row[0].trace_id, row[0].producer_sub, row[0].is_encrypted, row[0].message_id,
            row[0].payload) == ("tä", uuid.UUID(int=1), "sub", True, uuid.UUID(int=2), '{"a": 1}')
    assert (row[1].transaction_id, row[1].trace_id, row[1].producer_sub, row[1].is_encrypted, row[1].payload) == (
        str(uuid.UUID(int=0)), None, None, False, '"x"')


def test_further_fields_of_a_message_come_back(core):
    row = core.rows("""select u.* from queen.unpack_segment_2(3, now(), 2, decode(repeat('00', 32), 'hex'),
        '\\x01' || queen.pack_message_2('t', null, null, false, null, '{"traceparent":"ä"}', '1')
                || queen.pack_message_2(null, null, 'sub', false, null, null, '2')) u""")
    assert [(r.transaction_id, r.meta, r.payload) for r in row] == [
        ("t", '{"traceparent":"ä"}', "1"), (str(uuid.UUID(int=0)), None, "2")]


def test_an_unknown_format_is_refused(core):
    with pytest.raises(psycopg2.Error) as e:
        core.rows("select * from queen.unpack_segment(1, now(), 1, ''::bytea, '\\x02'::bytea)")
    assert e.value.pgcode == "QN009"


# --- push -----------------------------------------------------------------------------------------------------------

KINDS = [lambda: v7(), lambda: str(uuid.uuid4()), lambda: "order-" + uuid.uuid4().hex, lambda: v7().upper(),
         lambda: v7(1000), lambda: v7(2 ** 47)]


@pytest.mark.parametrize("make", KINDS)
def test_a_duplicate_of_any_kind_is_found_and_named(core, lane, make):
    ids = [make() for _ in range(3)]
    for i in ids:
        stored(core, core.push([(lane[0], [i])]))
    rows = core.push([(lane[0], [ids[1]])])
    assert [(r.status, r.seg, r.pos) for r in rows] == [(1, 1, 0)]
    first = core.one("select id from queen.messages where partition_id = %s and transaction_id = %s", lane[1], ids[1])
    assert rows[0].dup_id == first


def test_every_duplicate_of_a_segment_is_told(core, lane):
    base = int(time.time() * 1000)
    ids = [v7(base + i) for i in range(40)]
    stored(core, core.push([(lane[0], ids)]))
    rows = core.push([(lane[0], [v7(base), ids[7], "x", ids[39]])])
    assert sorted((r.status, r.pos) for r in rows) == [(1, 1), (1, 3)]
    assert core.one("select count(*) from queen.messages where partition_id = %s", lane[1]) == 40


def test_the_same_id_in_another_lane_is_no_duplicate(core, lane, queue):
    other = core.lanes((queue, "other"))[0]
    for i in (v7(), "plain"):
        stored(core, core.push([(lane[0], [i]), (other[0], [i])]))


def test_a_neighbour_of_a_duplicate_is_stored_and_what_follows_in_its_lane_is_held_back(core, lane, queue):
    other = core.lanes((queue, "other"))[0]
    core.push([(lane[0], ["a"])])
    rows = core.push([(lane[0], ["b"]), (lane[0], ["a"]), (lane[0], ["c"]), (other[0], ["a"])])
    assert sorted((r.status, r.seg) for r in rows if r.status) == [(1, 2), (2, 3)]
    assert {r.lane for r in rows if not r.status} == {lane[0], other[0]}
    # the plain key of what was stored leads to the right place
    assert core.one("select queen.find_message(%s, %s)", lane[0], key("b")) == 2
    assert core.one("select queen.find_message(%s, %s)", lane[0], key("c")) is None


def test_a_whole_request_with_a_duplicate_stores_nothing(core, lane):
    core.push([(lane[0], ["a"])])
    rows = core.push([(lane[0], ["b"]), (lane[0], ["a"])], whole=True)
    assert sorted((r.status, r.seg) for r in rows) == [(1, 2), (2, 1)]
    assert core.one("select count(*) from queen.segments where lane = %s", lane[0]) == 1


def test_sequences_have_no_gap_and_times_rise(core, lane):
    for n in (1, 5, 2):
        core.push([(lane[0], [v7() for _ in range(n)]), (lane[0], [v7()])])
    rows = core.rows("select * from queen.segments where lane = %s order by first_seq", lane[0])
    assert [r.first_seq for r in rows] == [1, 2, 3, 8, 9, 11]
    times = [r.created_at for r in rows]
    assert times == sorted(times) and len(set(times)) == len(times)


def test_a_full_queue_refuses_the_whole_request_and_is_named(core, queue):
    core.configure(queue, maxSize=3)
    core.configure(queue + "-2")
    (a, a_id), (b, _) = core.lanes((queue, "p"), (queue + "-2", "p"))
    assert [r.status for r in core.push([(a, ["0"])])] == [5]
    stored(core, core.push([(a, ["0", "1"])], whole=True))
    rows = core.push([(b, ["x"]), (a, ["2", "3"])], whole=True)
    assert sorted((r.seg, r.status) for r in rows) == [(1, 2), (2, 4)]
    stored(core, core.push([(a, ["2"])], whole=True))
    # consumed messages make room
    consumer = core.consumers("g", a)
    core.claim(consumer, batch=2, auto=True)
    stored(core, core.push([(a, ["3", "4"])], whole=True))
    assert [r.status for r in core.push([(a, ["5"])], whole=True)] == [4]
    with pytest.raises(psycopg2.Error) as e:
        js(core, "push_messages_v2", [{"queue": queue, "partition": "p"}])
    assert e.value.pgcode == "QN004" and queue in str(e.value)
    answer = js(core, "execute_transaction_v2", [{"type": "push", "queue": queue}])
    assert answer["success"] is False and "full" in answer["error"]
    core.configure(queue)
    stored(core, core.push([(a, ["5"])]))


def test_a_deleted_lane_is_reported(core, lane, queue):
    core.rows("delete from queen.queues where name = %s", queue)
    assert [r.status for r in core.push([(lane[0], ["a"])])] == [3]


def test_one_of_many_racing_pushes_wins(connect, lane):
    for make in KINDS:
        i = make()
        cores = [connect() for _ in range(6)]
        rows = sum(in_parallel([lambda c=c: c.push([(lane[0], [i])]) for c in cores]), [])
        assert sorted(r.status for r in rows) == [0, 1, 1, 1, 1, 1]
        assert len({r.dup_id for r in rows if r.status}) == 1


def test_creating_lanes_concurrently_never_deadlocks(connect, queue):
    names = [(queue + "-%d" % (i % 7), "p%d" % (i % 13)) for i in range(91)]

    def work(core, shift):
        for n in range(5):
            pairs = [(q + "-%d" % n, p) for q, p in names[shift:] + names[:shift]]
            assert len(core.lanes(*pairs)) == len(pairs)
    in_parallel([lambda c=connect(), s=s: work(c, s) for s in (0, 20, 40, 60)])


# --- claim ----------------------------------------------------------------------------------------------------------

def test_the_batch_is_a_cap_over_partitions(core, queue):
    core.configure(queue)
    lanes = core.lanes(*[(queue, "p%d" % i) for i in range(5)])
    core.push([(n, ["a", "b", "c"]) for n, _ in lanes])
    consumers = core.consumers("g", *[n for n, _ in lanes])
    rows, lease = core.claim(consumers, batch=10, parts=4)
    assert [(r.status, r.take) for r in rows] == [(0, 3), (0, 3), (0, 3), (0, 1), (6, 0)]
    assert rows[3].more and not rows[0].more
    rows, _ = core.claim(consumers, batch=10, parts=4)
    assert [(r.status, r.take) for r in rows] == [(2, 0)] * 4 + [(0, 3)]


def test_partitions_are_capped(core, queue):
    core.configure(queue)
    lanes = core.lanes(*[(queue, "p%d" % i) for i in range(4)])
    core.push([(n, ["a"]) for n, _ in lanes if n != lanes[1][0]])
    rows, _ = core.claim(core.consumers("g", *[n for n, _ in lanes]), batch=10, parts=2)
    assert [r.status for r in rows] == [0, 3, 0, 6], "an empty one does not count"


def test_a_claim_reads_across_segments_from_the_cursor(core, lane):
    core.push([(lane[0], ["a", "b"]), (lane[0], ["c"]), (lane[0], ["d", "e"])])
    consumer = core.consumers("g", lane[0])
    rows, lease = core.claim(consumer, batch=1, auto=True)
    assert [(r.start_seq, r.take, r.first_seq) for r in rows] == [(1, 1, 1)]
    rows, lease = core.claim(consumer, batch=3)
    assert [(r.start_seq, r.take, r.first_seq) for r in rows] == [(2, 3, 1), (2, 3, 3), (2, 3, 4)]
    assert rows[0].more
    assert core.state(consumer[0])[2] == 1 and core.state(consumer[0]).lease == lease


def test_auto_ack_moves_the_cursor_and_leaves_no_lease(core, lane):
    core.push([(lane[0], ["a", "b"])])
    consumer = core.consumers("g", lane[0])
    core.claim(consumer, batch=5, auto=True)
    st = core.state(consumer[0])
    assert (st.cursor_seq, st.lease, st.total_messages, st.total_batches, st.batch_size) == (2, None, 2, 1, 0)
    assert core.claim(consumer)[0][0].status == 3


def test_an_expired_lease_is_free(core, lane, queue):
    core.push([(lane[0], ["a"])])
    consumer = core.consumers("g", lane[0])
    _, old = core.claim(consumer, seconds=1)
    assert core.claim(consumer)[0][0].status == 2
    assert 0 < core.claim(consumer)[0][0].wait_us <= 1000000
    time.sleep(1.05)
    rows, new = core.claim(consumer)
    assert rows[0].status == 0 and rows[0].start_seq == 1
    assert [r.why for r in core.settle(lane[1], "g", ["a"], [0], [old])] == [2]
    assert [r.why for r in core.settle(lane[1], "g", ["a"], [0], [new])] == [0]


def test_a_consumer_that_others_work_on_is_busy_not_waited_for(core, connect, lane):
    core.push([(lane[0], ["a"])])
    consumer = core.consumers("g", lane[0])
    other = connect(autocommit=False)
    other.claim(consumer)
    began = time.monotonic()
    assert core.claim(consumer)[0][0].status == 1
    assert time.monotonic() - began < 0.5
    other.conn.rollback()
    assert core.claim(consumer)[0][0].status == 0


def test_an_unknown_consumer_is_gone(core):
    assert core.claim([987654321])[0][0].status == 5


def test_delay_hides_messages_until_it_is_over(core, queue):
    core.configure(queue, delayedProcessing=100)
    (lane, _), = core.lanes((queue, "p"))
    core.push([(lane, ["a", "b"])])
    core.rows("update queen.segments set created_at = created_at - interval '101 s' where lane = %s", lane)
    core.push([(lane, ["c"])])
    consumer = core.consumers("g", lane)
    rows, _ = core.claim(consumer, batch=10, auto=True)
    assert [(r.status, r.take) for r in rows] == [(0, 2)]
    rows, _ = core.claim(consumer, batch=10)
    assert rows[0].status == 4 and 98e6 < rows[0].wait_us <= 100e6


def test_a_window_hides_the_whole_lane(core, queue):
    core.configure(queue, windowBuffer=50)
    (lane, _), = core.lanes((queue, "p"))
    core.push([(lane, ["a"])])
    core.rows("update queen.segments set created_at = created_at - interval '51 s' where lane = %s", lane)
    core.push([(lane, ["b"])])
    consumer = core.consumers("g", lane)
    rows, _ = core.claim(consumer, batch=10)
    assert rows[0].status == 4 and 48e6 < rows[0].wait_us <= 50e6
    core.rows("update queen.segments set created_at = created_at - interval '51 s' where lane = %s", lane)
    assert core.claim(consumer, batch=10)[0][0].take == 2


@pytest.mark.parametrize("option", ["ttl", "maxWaitTimeSeconds", "retentionSeconds"])
def test_over_age_messages_are_not_delivered(core, queue, option):
    core.configure(queue, **{option: 100})
    (lane, _), = core.lanes((queue, "p"))
    core.push([(lane, ["a", "b"])])
    core.rows("update queen.segments set created_at = created_at - interval '101 s' where lane = %s", lane)
    consumer = core.consumers("g", lane)
    assert core.claim(consumer, batch=10)[0][0].status == 3
    core.push([(lane, ["c"])])
    rows, _ = core.claim(consumer, batch=10)
    assert (rows[0].status, rows[0].start_seq, rows[0].take) == (0, 3, 1)


def test_a_reported_default_does_not_act(core, queue):
    core.configure(queue)
    (lane, lane_id), = core.lanes((queue, "p"))
    core.push([(lane, ["a"])])
    core.rows("update queen.segments set created_at = created_at - interval '4000 s' where lane = %s", lane)
    consumer = core.consumers("g", lane)
    rows, lease = core.claim(consumer)
    assert rows[0].status == 0
    core.settle(lane_id, "g", ["a"], [1], [lease])
    assert core.claim(consumer)[0][0].status == 0, "retryDelay was not sent"


def test_retry_delay_keeps_the_lane_back(core, queue):
    core.configure(queue, retryDelay=400)
    (lane, lane_id), = core.lanes((queue, "p"))
    core.push([(lane, ["a"])])
    consumer = core.consumers("g", lane)
    _, lease = core.claim(consumer)
    core.settle(lane_id, "g", ["a"], [1], [lease])
    rows, _ = core.claim(consumer)
    assert rows[0].status == 4 and 0 < rows[0].wait_us <= 400000
    time.sleep(0.45)
    rows, _ = core.claim(consumer)
    assert rows[0].status == 0 and rows[0].retries == 1


# --- groups and subscriptions ---------------------------------------------------------------------------------------

def discover(core, queue, group, mode="", start="", partition=None):
    return core.rows("select * from queen.discover(%s, %s, %s, '', '', %s, %s)", queue, partition, group, mode, start)


def test_a_new_group_starts_behind_history(core, lane, queue):
    core.push([(lane[0], ["a"])])
    assert len(discover(core, queue, "all")) == 1
    assert discover(core, queue, "new", "new") == []
    core.push([(lane[0], ["b"])])
    rows, _ = core.claim([r.consumer for r in discover(core, queue, "new")], batch=10)
    assert [(r.start_seq, r.take) for r in rows] == [(2, 1)]


def test_a_subscription_on_an_unknown_queue_counts_from_then_on(core, queue):
    assert discover(core, queue, "new", "new") == []
    (lane, _), = core.lanes((queue, "p"))
    core.push([(lane, ["a"])])
    assert len(discover(core, queue, "new", "all")) == 1


def test_a_time_splits_two_batches(core, lane, queue):
    core.push([(lane[0], ["a"])])
    time.sleep(0.002)
    between = core.one("select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
    time.sleep(0.002)
    core.push([(lane[0], ["b"])])
    found = discover(core, queue, "g", start=between)
    assert [r.start_seq for r in core.claim([found[0].consumer], batch=9)[0]] == [2]


def test_a_bad_time_is_refused(core, queue):
    with pytest.raises(psycopg2.Error) as e:
        discover(core, queue, "g", start="tomorrowish")
    assert e.value.pgcode == "QN002"


def test_the_least_recently_served_lane_comes_first(core, queue):
    core.configure(queue)
    lanes = core.lanes(*[(queue, "p%d" % i) for i in range(3)])
    core.push([(n, ["a", "b"]) for n, _ in lanes])
    order = [r.consumer for r in discover(core, queue, "g")]
    core.claim(order[:1], auto=True)
    assert [r.consumer for r in discover(core, queue, "g")] == order[1:] + order[:1]


def test_an_empty_scan_is_noted(core, lane, queue):
    discover(core, queue, "g")
    assert core.one("select count(*) from queen.consumer_watermarks where queue_name = %s", queue) == 1


# --- leases ---------------------------------------------------------------------------------------------------------

def test_renewal_never_shortens_and_never_revives(core, lane):
    core.push([(lane[0], ["a"])])
    consumer = core.consumers("g", lane[0])
    _, lease = core.claim(consumer, seconds=1)

    def renew(*pairs):
        return core.rows("select * from queen.renew_leases(%s::uuid[], %s::int[])", [p[0] for p in pairs],
                         [p[1] for p in pairs])
    before = core.state(consumer[0]).lease_until
    assert [(r.why, r.expires_at) for r in renew((lease, 0))] == [(0, before)]
    rows = renew((lease, 50), (uuid.uuid4(), 9), (lease, 100))
    assert [r.why for r in rows] == [0, 1, 0]
    assert core.state(consumer[0]).lease_until == rows[2].expires_at > before
    core.rows("update queen.consumer_states set lease_until = now() where consumer = %s", consumer[0])
    assert [r.why for r in renew((lease, 50))] == [2]


def test_release_gives_back_only_an_untouched_lease(core, lane):
    core.push([(lane[0], ["a", "b"])])
    consumer = core.consumers("g", lane[0])
    _, lease = core.claim(consumer, batch=2)
    assert core.rows("select * from queen.release_leases(array[%s])", uuid.uuid4()) == []
    assert [r.consumer for r in core.rows("select * from queen.release_leases(array[%s])", lease)] == consumer
    _, lease = core.claim(consumer, batch=2)
    core.settle(lane[1], "g", ["a"], [0], [lease])
    assert core.rows("select * from queen.release_leases(array[%s])", lease) == []


# --- transactions ---------------------------------------------------------------------------------------------------

def test_a_transaction_is_all_or_nothing(core, queue, group):
    part = js(core, "push_messages_v2", [{"queue": queue, "transactionId": "in"}])[0]["partition_id"]
    ack = {"type": "ack", "transactionId": "in", "partitionId": part, "consumerGroup": group}
    for bad in ({**ack, "transactionId": "ghost"}, {**ack, "status": "retry"}, {**ack, "leaseId": "mine"},
                {"type": "push", "queue": queue, "transactionId": "in"}, {"type": "dance"},
                {"type": "push", "queue": queue + "-out", "transactionId": "out"}):
        answer = js(core, "execute_transaction_v2", [
            {"type": "push", "items": [{"queue": queue + "-out", "transactionId": "out"}]}, ack, bad])
        assert answer["success"] is False and answer["error"], answer
        assert [r["success"] for r in answer["results"]] == [True, True, False]
        assert core.rows("select 1 from queen.messages where transaction_id = 'out'") == []
        assert core.one("select queen.has_pending_messages(%s, '', %s)", queue, group)
    answer = js(core, "execute_transaction_v2", [{"type": "push", "items": [{"queue": queue + "-out",
                                                                               "transactionId": "out"}]}, ack])
    assert answer["success"] is True, answer
    assert not core.one("select queen.has_pending_messages(%s, '', %s)", queue, group), "the state row was made"
    core.rows("delete from queen.queues where name = %s", queue + "-out")


def test_required_leases_must_hold(core, queue):
    part = js(core, "push_messages_v2", [{"queue": queue, "transactionId": "a"}, {"queue": queue, "transactionId": "b"}]
              )[0]["partition_id"]
    js(core, "pop_unified_batch", [{"queue_name": queue, "batch_size": 2, "worker_id": "me"}])

    def run(leases, *ids):
        return js(core, "execute_transaction_v2", {"requiredLeases": leases, "operations": [
            {"type": "ack", "transactionId": i, "partitionId": part} for i in ids]})
    assert "lease" in run(["you"], "a")["error"]
    assert run([], "a")["success"] and run(["you", "me"], "b")["success"]
    assert "lease" in run(["me"], "b")["error"], "the batch was complete, the lease is gone"


def test_a_failed_ack_in_a_transaction_is_dead_at_once(core, queue):
    part = js(core, "push_messages_v2", [{"queue": queue, "transactionId": "a"}])[0]["partition_id"]
    answer = js(core, "execute_transaction_v2", [{"type": "ack", "transactionId": "a", "partitionId": part,
                                                  "status": "failed"}])
    assert answer["results"][0]["dlq"] is True
    row = core.rows("select d.* from queen.dead_letter_queue d join queen.messages m on m.id = d.message_id"
                    " where d.partition_id = %s", part)
    assert [(r.retry_count, r.error_message) for r in row] == [(0, "Retries exhausted")]


# --- JSON surface and views -----------------------------------------------------------------------------------------

def test_push_and_pop_as_json(core, queue):
    trace = str(uuid.uuid4())
    pushed = js(core, "push_messages_v2", [
        {"queue": queue, "payload": {"n": 1}, "transactionId": "a", "producerSub": "me", "traceId": trace},
        {"queue": queue, "transactionId": "a"}, {"queue": queue, "producerSub": ""}])
    assert [r["status"] for r in pushed] == ["queued", "duplicate", "queued"]
    assert pushed[1] == {"index": 1, "status": "duplicate", "transaction_id": "a", "message_id": pushed[0]["message_id"]}
    assert set(pushed[0]) == {"index", "status", "transaction_id", "message_id", "partition_id", "trace_id"}
    popped = js(core, "pop_specific_batch", [{"idx": 5, "queue_name": queue, "partition_name": "Default",
                                              "consumer_group": "g", "batch_size": 10, "lease_seconds": 7,
                                              "worker_id": "w", "sub_mode": "all", "sub_from": ""}])
    assert popped[0]["idx"] == 5
    result = popped[0]["result"]
    assert (result["success"], result["leaseId"], result["partition"], result["queue"]) == (True, "w", "Default", queue)
    first, second = result["messages"]
    assert (first["id"], first["data"], first["producerSub"], first["traceId"], first["transactionId"]) == (
        pushed[0]["message_id"], {"n": 1}, "me", trace, "a")
    assert second["data"] is None and second["producerSub"] is None and second["id"] > first["id"]
    row = core.rows("select * from queen.partition_consumers where partition_id = %s", first["partitionId"])[0]
    assert (row.worker_id, row.batch_size, row.pending_estimate, row.last_consumed_created_at) == ("w", 2, 2, None)
    assert row.last_consumed_id == uuid.UUID(int=0)
    assert 6 < (row.lease_expires_at - row.lease_acquired_at).total_seconds() <= 7
    acked = js(core, "ack_messages_v2", [
        {"index": 3, "transactionId": "a", "partitionId": first["partitionId"], "consumerGroup": "g", "leaseId": "w"},
        {"transactionId": "ghost", "partitionId": first["partitionId"], "consumerGroup": "g"},
        {"transactionId": "a", "partitionId": "nonsense", "status": "completed"},
        {"transactionId": "a", "partitionId": first["partitionId"], "consumerGroup": "g", "status": "eaten"}])
    assert [(r["index"], r["success"], r["error"]) for r in acked] == [
        (3, True, None), (1, False, "Message not found"), (2, False, "Message not found"),
        (3, False, 'Unknown status "eaten"')]
    row = core.rows("select * from queen.partition_consumers where partition_id = %s", first["partitionId"])[0]
    assert (str(row.last_consumed_id), row.acked_count, row.pending_estimate) == (first["id"], 1, 1)
    renewed = js(core, "renew_lease_v2", [{"leaseId": "w", "extendSeconds": 600}, {"leaseId": "?"}])
    assert [r["success"] for r in renewed] == [True, False] and renewed[0]["expiresAt"].endswith("Z")
    lookup = core.rows("select * from queen.partition_lookup where queue_name = %s", queue)[0]
    assert str(lookup.last_message_id) == second["id"]


def test_an_explicit_message_id_is_kept_everywhere(core, queue):
    mine = str(uuid.uuid4())
    item = {"queue": queue, "transactionId": "a", "messageId": mine}
    part = js(core, "push_messages_v2", [item])[0]["partition_id"]
    assert js(core, "push_messages_v3", [item])["items"][0]["message_id"] == mine
    popped = js(core, "pop_unified_batch", [{"queue_name": queue}])[0]["result"]["messages"]
    assert [m["id"] for m in popped] == [mine]
    js(core, "ack_messages_v2", [{"transactionId": "a", "partitionId": part, "status": "dlq", "error": "no"}])
    assert core.rows("select 1 from queen.dead_letter_queue where message_id = %s", uuid.UUID(mine))


def test_a_large_push_is_cut_into_segments(core, queue):
    base = int(time.time() * 1000)
    ids = [v7(base + i * 3) for i in range(700)] + ["plain-%d" % i for i in range(20)]
    items = [{"queue": queue, "partition": "p%d" % (i % 2), "transactionId": t, "payload": "x" * (i % 500)}
             for i, t in enumerate(ids)]
    assert {r["status"] for r in js(core, "push_messages_v2", items)} == {"queued"}
    rows = core.rows("select s.* from queen.segments s join queen.lanes l on l.num = s.lane join queen.queues q"
                     " on q.id = l.queue_id where q.name = %s order by s.lane, s.first_seq", queue)
    for r in rows:
        assert r.count <= 256 and len(r.body) <= 65537 and len(r.keys) == 16 * r.count
        assert r.key_max is None or r.key_max - r.key_min <= 1000
    assert {r["status"] for r in js(core, "push_messages_v2", items[::-1])} == {"duplicate"}
    got = js(core, "pop_unified_batch", [{"queue_name": queue, "batch_size": 1000, "partitions": 2}])[0]["result"]
    assert got["partitionsClaimed"] == 2
    assert [m["transactionId"] for m in got["messages"]] == ids[0::2] + ids[1::2]


def test_priority_orders_a_namespace_pop(core, queue):
    space = "ns-" + queue
    for n, priority in enumerate((1, 9, 5)):
        core.rows("select queen.configure_queue_v1(%s, %s::jsonb)", "%s-%d" % (queue, n),
                  json.dumps({"namespace": space, "priority": priority}))
        js(core, "push_messages_v2", [{"queue": "%s-%d" % (queue, n)}])
    order = [js(core, "pop_unified_batch", [{"namespace": space, "auto_ack": True}])[0]["result"]["queue"]
             for _ in range(3)]
    assert order == [queue + "-1", queue + "-2", queue + "-0"]


def test_an_old_snapshot_is_refused(connect):
    core = connect(autocommit=False)
    for level in ("repeatable read", "serializable"):
        for call in ("push_messages_v2", "pop_unified_batch", "ack_messages_v2", "renew_lease_v2", "execute_transaction_v2"):
            core.rows("set transaction isolation level " + level)
            with pytest.raises(psycopg2.Error) as e:
                js(core, call, [])
            assert e.value.pgcode == "QN003"
            core.conn.rollback()


def test_configure_replaces_everything(core, queue):
    first = core.configure(queue, leaseTime="45", ttl=7, retentionSeconds=5, encryptionEnabled="true")
    assert (first.options["leaseTime"], first.options["retentionEnabled"], first.options["encryptionEnabled"]) == (45, True, True)
    second = core.configure(queue)
    assert (second.queue_id, second.default_lane_id) == (first.queue_id, first.default_lane_id)
    assert (second.options["ttl"], second.options["retentionEnabled"], second.options["leaseTime"]) == (3600, False, 300)
    for bad in ({"ttl": "x"}, {"ttl": True}, {"ttl": -1}, {"ttl": 1.5}, {"ttl": 3e9}, {"retentionEnabled": 1}, {"ttl": []}):
        with pytest.raises(psycopg2.Error) as e:
            core.configure(queue, **bad)
        assert e.value.pgcode == "QN001" and list(bad)[0] in str(e.value)


# --- deleting -------------------------------------------------------------------------------------------------------

TABLES = {"segments": "lane", "message_keys": "lane", "consumers": "lane", "dead_letter_queue": "lane", "lanes": "num"}


def left(core, lane):
    return {t for t, c in TABLES.items() if core.one("select count(*) from queen.%s where %s = %%s" % (t, c), lane)}


@pytest.mark.parametrize("by", ["queue", "partition"])
def test_a_delete_takes_everything_along(core, lane, queue, by):
    core.push([(lane[0], ["a", "b"])])
    consumer = core.consumers("g", lane[0])
    core.settle(lane[1], "g", ["a"], [2])
    assert left(core, lane[0]) == set(TABLES)
    if by == "queue":
        core.rows("delete from queen.queues where name = %s", queue)
    else:
        core.rows("delete from queen.partitions where id = %s", lane[1])
    assert left(core, lane[0]) == set()
    assert core.one("select count(*) from queen.consumer_states where consumer = %s", consumer[0]) == 0


@pytest.mark.parametrize("limited", [False, True])
def test_pushing_claiming_and_creating_while_the_queue_is_deleted(core, connect, queue, limited):
    options = {"maxSize": 1000000} if limited else {}
    stop, lost = time.monotonic() + 3, []
    core.configure(queue, **options)

    def push(c):
        while time.monotonic() < stop:
            pairs = [(queue, "p%d" % i) for i in range(6)]
            lanes = c.lanes(*pairs)
            for r in c.push([(n, [v7()]) for n, _ in lanes], whole=limited) if lanes else []:
                if r.status not in (0, 2, 3, 5):
                    lost.append(r)

    def pop(c):
        while time.monotonic() < stop:
            found = discover(c, queue, "g")
            if found:
                rows, lease = c.claim([r.consumer for r in found], batch=100, parts=10)
                for r in {r.lane_id for r in rows if r.status == 0}:
                    c.settle(r, "g", ["x"], [0], [lease])

    def delete(c):
        while time.monotonic() < stop:
            c.rows("delete from queen.queues where name = %s", queue)
            c.configure(queue, **options)
            time.sleep(0.02)
    in_parallel([lambda c=connect(): push(c), lambda c=connect(): push(c), lambda c=connect(): pop(c),
                 lambda c=connect(): delete(c)])
    assert lost == []
    core.rows("delete from queen.queues where name = %s", queue)
    for table, column in TABLES.items():
        if table != "lanes":
            assert core.one("select count(*) from queen.%s t where not exists (select from queen.lanes l where"
                            " l.num = t.%s)" % (table, column)) == 0, table
    assert core.one("select count(*) from queen.lanes l where not exists (select from queen.queues q where"
                    " q.id = l.queue_id)") == 0
    assert core.one("select count(*) from queen.consumer_states t where not exists (select from queen.consumers c where"
                    " c.num = t.consumer)") == 0


# --- expiry ---------------------------------------------------------------------------------------------------------

@pytest.fixture
def only(core):
    """Nothing else is about to expire."""
    core.rows("delete from queen.queues where ages")


def expire(core, limit=1000, evict=True):
    """One step of a pass."""
    rows = core.rows("select * from queen.sweep(%s, %s, 100, 0, 0, 0)", evict, limit)
    return {r.queue_name: r.removed for r in rows if r.queue_name}


def aged(core, lane, seconds):
    core.rows("update queen.segments set created_at = created_at - %s * interval '1 s' where lane = %s", seconds, lane)
    core.rows("update queen.lane_due set evict_at = evict_at - %s * interval '1 s', retain_at = retain_at - %s * interval '1 s'"
              " where lane = %s", seconds, seconds, lane)


def test_expiry_removes_whole_old_segments_with_all_that_refers_to_them(core, queue, only):
    core.configure(queue, ttl=100)
    (lane, lane_id), = core.lanes((queue, "p"))
    core.push([(lane, ["a", v7(), "b"]), (lane, ["c"])])
    core.consumers("g", lane)
    core.settle(lane_id, "g", ["a"], [2])
    aged(core, lane, 101)
    core.push([(lane, ["d"])])
    assert expire(core, 1) == {queue: 3}
    assert expire(core) == {queue: 1} and expire(core) == {}
    assert [r.seq for r in core.rows("select seq from queen.message_keys where lane = %s", lane)] == [5]
    assert core.one("select count(*) from queen.dead_letter_queue where lane = %s", lane) == 0


def test_an_emptied_lane_goes_on_counting(core, queue, only):
    core.configure(queue, ttl=100)
    (lane, lane_id), = core.lanes((queue, "p"))
    consumer, = core.consumers("g", lane)
    core.push([(lane, ["a", "b", "c"])])
    core.claim([consumer], batch=2, auto=True)
    aged(core, lane, 101)
    assert expire(core) == {queue: 3} and expire(core) == {}
    assert core.claim([consumer])[0][0].status == 3 and discover(core, queue, "g") == []
    assert not core.one("select queen.has_pending_messages(%s, '', 'other')", queue)
    assert core.one("select queen.queue_pending(id) from queen.queues where name = %s", queue) == 0
    rows = stored(core, core.push([(lane, ["a"])]))
    assert rows[0].first_seq == 4, "and the id may be used again"
    assert core.one("select queen.queue_pending(id) from queen.queues where name = %s", queue) == 1
    rows, lease = core.claim([consumer], batch=10)
    assert (rows[0].start_seq, rows[0].take) == (4, 1)
    assert [r.why for r in core.settle(lane_id, "g", ["a"], lease=lease)] == [0]
    aged(core, lane, 101)
    assert expire(core) == {queue: 1}
    assert stored(core, core.push([(lane, ["a"])]))[0].first_seq == 5
    assert core.one("select count(*) from queen.segments where lane = %s", lane) == 2


def test_eviction_spares_what_everybody_has_consumed(core, queue, only):
    core.configure(queue, maxWaitTimeSeconds=100)
    (one, one_id), (two, _), (none, _) = core.lanes((queue, "1"), (queue, "2"), (queue, "3"))
    core.push([(one, ["a"]), (two, ["a"]), (none, ["a"])])
    first, second = core.consumers("g", one, two)
    core.consumers("h", two)
    core.claim([first, second], batch=9, parts=9, auto=True)
    for lane in (one, two, none):
        aged(core, lane, 101)
    assert expire(core) == {queue: 2}
    assert core.one("select sum(count) from queen.segments where lane = %s", one) == 1


def test_messages_that_expire_under_a_lease_do_not_confuse_an_ack(core, queue, only):
    core.configure(queue, ttl=100)
    (lane, lane_id), = core.lanes((queue, "p"))
    core.push([(lane, ["a", "b"])])
    core.push([(lane, ["c", "d"])])
    consumer, = core.consumers("g", lane)
    _, lease = core.claim([consumer], batch=4)
    core.rows("update queen.segments set created_at = created_at - interval '101 s' where lane = %s and first_seq = 1", lane)
    expire(core)
    rows = core.settle(lane_id, "g", ["a", "b", "c", "d"], lease=lease)
    assert sorted((r.entry, r.why) for r in rows) == [(0, 1), (1, 1), (2, 0), (3, 0)]
    assert core.state(consumer).cursor_seq == 4


# --- rotation and the feed ------------------------------------------------------------------------------------------

def test_rotation_under_load_never_moves_a_cursor_back(core, connect, queue):
    core.configure(queue)
    lanes = core.lanes(*[(queue, "p%d" % i) for i in range(8)])
    ids = {n: [v7() for _ in range(400)] for n, _ in lanes}
    core.push([(n, ids[n][i:i + 200]) for n, _ in lanes for i in (0, 200)])
    consumers = core.consumers("g", *[n for n, _ in lanes])
    stop, seen = time.monotonic() + 4, []

    def again(call, *args, **kw):
        # Without a minimal age the victim of the switch can be us.
        while True:
            try:
                return call(*args, **kw)
            except psycopg2.errors.DeadlockDetected:
                pass

    def consume(c, mine):
        cursors, turns = {k: 0 for k in mine}, 0
        where = dict(zip(consumers, lanes))
        while time.monotonic() < stop:
            for k in mine:
                rows, lease = again(c.claim, [k], batch=3)
                n, lane_id = where[k]
                if rows[0].status == 3 and cursors[k] >= 400:
                    continue
                assert rows[0].status == 0, rows[0].status
                assert rows[0].start_seq == cursors[k] + 1
                take = rows[0].take
                batch = ids[n][cursors[k]:cursors[k] + take]
                turns += 1
                if turns % 5 == 0:
                    again(c.settle, lane_id, "g", batch, [3] * take, [lease] * take)
                else:
                    assert [r.why for r in again(c.settle, lane_id, "g", batch, lease=lease)] == [0]
                    cursors[k] += take
                assert c.state(k).cursor_seq == cursors[k]
        seen.append(cursors)

    def rotate(c):
        done = []
        while time.monotonic() < stop:
            done.append(c.one("select queen.rotate(0, 0)"))
            time.sleep(0.02)
        return done

    def newcomers(c):
        n = 0
        while time.monotonic() < stop:
            n += 1
            made = again(c.consumers, "new-%d" % n, *[x for x, _ in lanes])
            assert {len(c.rows("select * from queen.latest_state(%s)", k)) for k in made} == {1}
    results = in_parallel([lambda c=connect(): consume(c, consumers[:4]), lambda c=connect(): consume(c, consumers[4:]),
                           lambda c=connect(): rotate(c), lambda c=connect(): newcomers(c)])
    assert results[2].count("emptied") >= 5, results[2]
    assert all(v > 20 for cursors in seen for v in cursors.values()), "little was consumed"
    assert core.one("select count(*) from queen.consumers c where not exists (select from queen.latest_state(c.num))") == 0


def test_a_late_writer_keeps_its_slot_from_being_emptied(core, connect, queue):
    core.configure(queue)
    (lane, _), = core.lanes((queue, "p"))
    core.push([(lane, ["a"])])
    consumer = core.consumers("g", lane)
    while core.one("select queen.rotate(0, 0)") != "emptied":
        pass
    late = connect(autocommit=False)
    made = late.consumers("late", lane)
    late.claim(consumer)
    assert core.one("select queen.rotate(0, 0)") == "switched"
    assert core.one("select queen.rotate(0, 0)") == "waiting"
    late.conn.commit()
    assert core.one("select queen.rotate(0, 0)") == "emptied"
    assert core.state(made[0]).cursor_seq == 0 and core.claim(consumer)[0][0].status == 2


def feed(core, seen, origin=99):
    rows = core.rows("select * from queen.changes_since(%s, %s)", seen, origin)
    return rows[0].snapshot, {r.lane for r in rows[1:]}


def test_the_feed_tells_everything_once_whatever_the_order_of_commits(core, connect, queue):
    core.configure(queue)
    (a, _), (b, _), (c, _) = core.lanes((queue, "a"), (queue, "b"), (queue, "c"))
    seen, _ = feed(core, None)
    early, late = connect(autocommit=False), connect(autocommit=False)
    early.push([(a, ["1"])])
    late.push([(b, ["1"])])
    late.conn.commit()
    seen, lanes = feed(core, seen)
    assert lanes == {b}
    core.push([(c, ["1"])])
    seen, lanes = feed(core, seen)
    assert lanes == {c}
    early.conn.commit()
    seen, lanes = feed(core, seen)
    assert lanes == {a}
    assert feed(core, seen)[1] == set()
    core.push([(c, ["2"])], origin=99)
    assert feed(core, seen)[1] == set(), "the caller knows its own"


def test_one_does_the_chores(core, connect):
    other = connect(autocommit=False)
    assert other.one("select queen.try_chores()") is True
    assert core.one("select queen.try_chores()") is False
    other.conn.rollback()
    assert core.one("select queen.try_chores()") is True
