"""Work queues through SQL: thousands of entries, leases and holds in one call."""
import random
import uuid

import pytest

from sqlcore import key, v7
# The fixtures and helpers of the tests of work queues.
from test_sql_work import COMPLETED, DLQ, FAILED, RETRY, claim_work, core, database, extend, make_queue  # noqa: F401 pylint: disable=unused-import

N = 600


def filled(core, queue, n, **options):
    lane, lane_id, consumer, _ = make_queue(core, queue, **options)
    ids = [v7() for _ in range(n)]
    for i in range(0, n, 256):
        core.push([(lane, ids[i:i + 256])])
    return lane, lane_id, consumer, ids


def lookups(core, call):
    """The rows of a call, how often it looked into the holds, and how often it searched packed keys."""
    core.rows("set track_functions = 'all'")
    core.rows("begin")
    try:
        before = core.rows("select sum(idx_scan) as holds from pg_stat_xact_user_tables where relname like 'holds_%%'")[0]
        rows = call()
        after = core.rows("select sum(idx_scan) as holds from pg_stat_xact_user_tables where relname like 'holds_%%'")[0]
        searches = core.rows("select coalesce(sum(calls), 0) as n from pg_stat_xact_user_functions where funcname = 'key_position'")[0].n
    finally:
        core.rows("commit")
        core.rows("reset track_functions")
    return rows, after.holds - before.holds, searches


def scattered(core, consumer, lane_id, ids):
    """One lease with a hold for each second message: the others are not due yet."""
    (lease, got, _, _, _, _), = claim_work(core, consumer, [len(ids)])
    assert len(got) == len(ids)
    core.settle(lane_id, "g", ids, [RETRY] * len(ids), [lease] * len(ids), after=[600 if i % 2 else 0 for i in range(len(ids))])
    (lease, got, _, _, _, runs), = claim_work(core, consumer, [len(ids)])
    assert runs == [(s, 1) for s in got]
    return lease, got


@pytest.mark.parametrize("order", ["log", "reverse"])
def test_a_lease_of_many_holds_is_settled_with_few_lookups(core, order):
    lane, lane_id, consumer, ids = filled(core, "scattered-" + order, N)
    lease, got = scattered(core, consumer, lane_id, ids)
    names = [ids[s - 1] for s in (got if order == "log" else reversed(got))]
    for _ in range(2):  # repeated, it changes nothing
        rows, holds, searches = lookups(core, lambda: core.settle(lane_id, "g", names, [COMPLETED] * len(got), [lease] * len(got)))
        assert [r.why for r in rows] == [0] * len(got)
        assert holds < 20 * N and searches < 20 * N
    assert core.state(consumer).batch_size == N - len(got)


@pytest.mark.parametrize("named", [True, False], ids=["with lease", "without"])
def test_a_lease_for_each_message(core, named):
    lane, lane_id, consumer, ids = filled(core, "single-%d" % named, N)
    leases = [uuid.uuid4() for _ in ids]
    for i in range(0, N, 200):
        claim_work(core, consumer, [1] * 200, leases=leases[i:i + 200])
    order = list(range(N))
    random.Random(7).shuffle(order)
    for _ in range(2):
        rows, holds, searches = lookups(core, lambda: core.settle(
            lane_id, "g", [ids[i] for i in order], [COMPLETED] * N, [leases[i] if named else None for i in order]))
        assert {r.why for r in rows} == {0}
        assert holds < 20 * N and searches < 20 * N
    st = core.state(consumer)
    assert (st.cursor_seq, st.batch_size, st.total_messages, st.total_batches) == (N, 0, N, N)


@pytest.mark.parametrize("named", [True, False], ids=["with lease", "without"])
@pytest.mark.parametrize("order", ["log", "reverse", "any"])
def test_extended_messages_of_a_long_lease_are_found(core, order, named):
    """Longer than the search through its keys goes, with messages that have left their holds."""
    lane, lane_id, consumer, ids = filled(core, "long-%s-%d" % (order, named), N)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [N])
    assert got == list(range(1, N + 1))
    for place in (0, 1, 255, 256, 300, N - 1):
        assert extend(core, lease, ids[place]) == 0
    names = {"log": ids, "reverse": ids[::-1], "any": random.Random(3).sample(ids, N)}[order]
    for status, n in ((COMPLETED, N // 2), (DLQ, N)):
        rows = core.settle(lane_id, "g", names[:n], [status] * n, [lease if named else None] * n)
        done = [(r.why, r.dead) for r in sorted(rows, key=lambda r: r.entry)]
        assert done == [(0, False)] * n if status == COMPLETED else \
            done == [(6, False)] * (N // 2) + [(0, True)] * (N - N // 2)
    st = core.state(consumer)
    assert (st.cursor_seq, st.batch_size, st.total_messages, st.total_batches) == (N, 0, N, 1)


def test_entries_for_one_message_get_its_one_result(core):
    lane, lane_id, consumer, ids = filled(core, "same", 1)
    (lease, _, _, _, _, _), = claim_work(core, consumer, [1])
    rows = core.settle(lane_id, "g", ids * N, [COMPLETED] * N, [uuid.uuid4() if i < 5 else lease for i in range(N)])
    assert [r.why for r in rows] == [2] * 5 + [0] * (N - 5)
    assert core.state(consumer).total_messages == 1


@pytest.mark.parametrize("status", [RETRY, FAILED])
def test_a_delivery_that_ends_with_an_acknowledgement_does_not_count(core, status):
    """maxDeliveries counts leases that expire. A worker that gives a job back again and again must not lose it."""
    lane, lane_id, consumer, ids = make_queue(core, "patient-%d" % status, 1, maxDeliveries=2, retryLimit=100)
    for _ in range(5):
        (lease, got, _, _, _, _), = claim_work(core, consumer, [1])
        assert got == [1]
        row, = core.settle(lane_id, "g", ids, [status], [lease])
        assert (row.why, row.dead) == (0, False)
    for n in range(2):
        (lease, got, _, _, _, _), = claim_work(core, consumer, [1])
        assert got == [1]
        core.rows("update queen.holds set until = now() where lease = %s and until is not null", lease)
    assert claim_work(core, consumer, [1])[0][1] == []
    assert [r.error_message for r in core.rows("select error_message from queen.dead_letter_queue where lane = %s", lane)] == ["delivery limit"]


def test_leases_that_expired_while_the_queue_was_ordered_do_not_end_those_of_the_work_queue(core):
    """The limit of a work queue may be lower than what its messages have behind them."""
    core.configure("suspects", maxDeliveries=50)
    (lane, lane_id), = core.lanes(("suspects", "p"))
    ids = [v7() for _ in range(6)]
    core.push([(lane, ids)])
    consumer, = core.consumers("g", lane)
    for _ in range(24):
        core.claim([consumer], 3)
        core.rows("update queen.consumer_states set lease_until = now() where consumer = %s and lease is not null", consumer)
    assert core.claim([consumer], 3)[0][0].take == 3  # together, not half of 50 times yet
    core.rows("update queen.consumer_states set lease_until = now() where consumer = %s and lease is not null", consumer)
    core.configure("suspects", ordering="none", maxDeliveries=20)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [3])
    assert got == [1, 2, 3]
    # A broker that has not noticed the change tries the careful claim first.
    assert [(r.status, r.buried) for r in core.claim([consumer], 1)[0]] == [(8, None)]
    assert {r.why for r in core.settle(lane_id, "g", ids[:3], lease=lease)} == {0}
    assert core.rows("select * from queen.dead_letter_queue where lane = %s", lane) == []
    assert core.state(consumer).cursor_seq == 3


@pytest.mark.parametrize("limit", [2, 5, 20])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_neighbours_of_a_message_that_crashes_its_consumer_are_completed(core, place, limit):
    """Each worker takes all it can get, and dies if the message is among it."""
    lane, lane_id, consumer, ids = make_queue(core, "crash-%d-%d" % (place, limit), 5, maxDeliveries=limit)
    times = 0
    for _ in range(10 * limit):
        (lease, got, _, _, _, _), = claim_work(core, consumer, [10])
        if place + 1 in got:
            times += 1
            core.rows("update queen.holds set until = now() where lease = %s and until is not null", lease)
        elif got:
            assert {r.why for r in core.settle(lane_id, "g", [ids[s - 1] for s in got], lease=lease)} == {0}
    assert times == limit
    assert [r.seq for r in core.rows("select seq from queen.dead_letter_queue where lane = %s", lane)] == [place + 1]
    st = core.state(consumer)
    assert (st.cursor_seq, st.batch_size, st.total_messages) == (5, 0, 5)


def test_requests_of_one_consumer_are_settled_together(core):
    """Each with a lease of its own, as workers that take one job at a time send them; some are repeated, or wrong."""
    lane, lane_id, consumer, ids = filled(core, "together", 40)
    other, other_id, other_consumer, other_ids = filled(core, "apart", 2)
    leases = [uuid.uuid4() for _ in ids]
    claim_work(core, consumer, [1] * 40, leases=leases)
    (other_lease, got, _, _, _, _), = claim_work(core, other_consumer, [2])
    assert len(got) == 2
    requests = [(lane_id, [ids[i]], leases[i], 0) for i in range(40)]
    requests.insert(7, (lane_id, [ids[3]], leases[3], 0))               # again
    requests.insert(9, (other_id, other_ids, other_lease, 0))           # of another consumer
    requests.insert(11, (lane_id, [ids[5]], leases[6], 2))              # not under that lease
    requests.insert(13, (lane_id, [v7()], leases[0], 1))                # no such message
    core.rows("set track_functions = 'all'")
    core.rows("begin")
    rows = core.rows("""select grp, entry, why, lane, consumer
                          from queen.settle(5, %s::uuid[], %s::text[], %s::bytea[], %s::boolean[], %s::uuid[],
                                            '{}', '{}', '{}', '{}', '{}', '{}', %s::text[], false)""",
                     [str(r[0]) for r in requests], ["g"] * len(requests), [b"".join(key(i).bytes for i in r[1]) for r in requests], [True] * len(requests),
                     [str(r[2]) for r in requests], [None] * len(requests))
    calls = core.rows("select coalesce(sum(calls), 0) as n from pg_stat_xact_user_functions where funcname = 'settle_work'")[0].n
    core.rows("commit")
    core.rows("reset track_functions")
    assert calls == 2
    assert sorted((r.grp, r.entry) for r in rows) == sorted((g + 1, e) for g, r in enumerate(requests) for e in range(len(r[1])))
    assert all(r.why == requests[r.grp - 1][3] for r in rows)
    assert all((r.lane, r.consumer) == ((other, other_consumer) if requests[r.grp - 1][0] == other_id else (lane, consumer)) for r in rows)
    assert core.state(consumer).cursor_seq == 40 and core.state(other_consumer).cursor_seq == 2


@pytest.mark.parametrize("each", [1, 4])
def test_leases_of_many_partitions_are_released_with_few_lookups(core, each):
    """After an outage a broker gives back all leases of its lost claims in one call."""
    queue, n = "gone-%d" % each, 150
    core.configure(queue, ordering="none", maxInFlight=100000)
    lanes = [lane for lane, _ in core.lanes(*[(queue, "p%d" % i) for i in range(n)])]
    core.push([(lane, [v7() for _ in range(each)]) for lane in lanes])
    consumers = core.consumers("g", *lanes)
    leases = []
    for consumer in consumers:
        leases += [lease for lease, got, _, _, _, _ in claim_work(core, consumer, [1] * each) if got]
    assert len(leases) == n * each
    rows, holds, _ = lookups(core, lambda: core.rows("select * from queen.release_leases(%s::uuid[])", leases))
    assert sorted(r.consumer for r in rows) == sorted(consumers)
    assert holds < 40 * n * each
    assert [core.state(c).leased for c in consumers] == [0] * n
    (_, got, _, _, _, _), = claim_work(core, consumers[-1], [each])
    assert got == list(range(1, each + 1))
