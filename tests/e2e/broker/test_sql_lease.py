"""The functions of broker/sql without a broker: claims, groups and subscriptions, leases."""
import time
import uuid

import psycopg2
import pytest

from harness import patience
from sqlcore import discover, stored


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
    assert time.monotonic() - began < patience(0.5)
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


def test_a_held_consumer_does_not_keep_other_leases_from_being_given_back(core, connect, queue):
    lanes = core.lanes(*[(queue, "p%d" % i) for i in range(3)])
    stored(core, core.push([(n, ["m"]) for n, _ in lanes]))
    consumers = core.consumers("g", *[n for n, _ in lanes])
    leases = [core.claim([c])[1] for c in consumers]
    holder = connect(autocommit=False)
    holder.rows("select from queen.consumers where num = %s for no key update", consumers[0])
    core.rows("set lock_timeout = '5s'")
    freed = core.rows("select * from queen.release_leases(%s::uuid[])", leases)
    assert sorted(r.consumer for r in freed) == consumers[1:]
    holder.conn.rollback()
    assert [r.consumer for r in core.rows("select * from queen.release_leases(%s::uuid[])", leases)] == consumers[:1]
