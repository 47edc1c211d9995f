"""A message of a work queue whose lease was extended on its own, through SQL."""
import uuid

import pytest

import sqlcore
from test_sql_work import COMPLETED, DLQ, FAILED, RETRY, claim_work, core, database, end_now, extend, make_queue  # noqa: F401 pylint: disable=unused-import


@pytest.mark.parametrize("named", [True, False], ids=["with lease", "without"])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_extended_message_is_settled(core, place, times, named):
    """It is in two holds of its lease: the old one, which it has left, and its own."""
    lane, lane_id, consumer, ids = make_queue(core, "extended-%d-%d-%d" % (place, times, named), 3)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [3])
    for n in range(times):
        assert extend(core, lease, ids[place], 900 + n) == 0
    row, = core.settle(lane_id, "g", [ids[place]], [COMPLETED], [lease if named else None])
    assert (row.why, row.released) == (0, False)
    # Repeated, it changes nothing.
    row, = core.settle(lane_id, "g", [ids[place]], [COMPLETED], [lease if named else None])
    assert row.why == 0
    assert core.state(consumer).batch_size == 2
    assert extend(core, lease, ids[place]) == 2
    rows = core.settle(lane_id, "g", ids, [COMPLETED] * 3, [lease if named else None] * 3)
    assert [r.why for r in rows] == [0, 0, 0] and any(r.released for r in rows)
    st = core.state(consumer)
    assert (st.cursor_seq, st.batch_size, st.total_messages) == (3, 0, 3)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_extended_message_outlives_its_lease(core, place):
    lane, lane_id, consumer, ids = make_queue(core, "outlives-%d" % place, 3)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [3], seconds=60)
    assert extend(core, lease, ids[place]) == 0
    core.rows("update queen.holds set until = now() where lease = %s and count > 1 and until is not null", lease)
    (other, got, _, _, _, _), = claim_work(core, consumer, [5])
    assert got == [s for s in (1, 2, 3) if s != place + 1]
    rows = core.settle(lane_id, "g", ids, [COMPLETED] * 3, [lease] * 3)
    assert [r.why for r in rows] == [0 if i == place else 2 for i in range(3)]
    assert {r.why for r in core.settle(lane_id, "g", [ids[s - 1] for s in got], lease=other)} == {0}
    assert core.state(consumer).cursor_seq == 3


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("status, policy, left", [
    (FAILED, {"retryLimit": 3}, "again"), (FAILED, {"retryLimit": 0}, "dead"), (RETRY, {}, "again"), (DLQ, {}, "dead"),
    (FAILED, {"retryPolicy": {"mode": "scheduled", "strategy": "fixed", "base": 600}}, "later")],
    ids=["failed", "failed at the limit", "retry", "dlq", "scheduled"])
def test_an_extended_message_fails(core, place, status, policy, left):
    lane, lane_id, consumer, ids = make_queue(core, "fails-%d-%s" % (place, uuid.uuid4().hex[:6]), 3, **policy)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [3])
    for _ in range(2):
        assert extend(core, lease, ids[place]) == 0
    row, = core.settle(lane_id, "g", [ids[place]], [status], [lease])
    assert (row.why, row.dead) == (0, left == "dead")
    (other, got, _, _, _, _), = claim_work(core, consumer, [5])
    assert got == ([place + 1] if left == "again" else [])
    if got:
        row, = core.settle(lane_id, "g", [ids[place]], [COMPLETED], [lease])
        assert row.why == 2, "the lease of another consumer holds it"
        assert {r.why for r in core.settle(lane_id, "g", [ids[place]], lease=other)} == {0}
    rest = [i for n, i in enumerate(ids) if n != place]
    assert {r.why for r in core.settle(lane_id, "g", rest, lease=lease)} == {0}
    st = core.state(consumer)
    assert (st.cursor_seq, st.batch_size) == (3, 0)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_lease_is_renewed_and_released_after_one_message_was_extended(core, place):
    lane, lane_id, consumer, ids = make_queue(core, "renewed-%d" % place, 3)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [3], seconds=60)
    assert extend(core, lease, ids[place], 100) == 0
    assert extend(core, lease, seconds=1000) == 0
    assert core.one("select count(*) from queen.holds where lease = %s and until > now() + interval '900 seconds'", lease) == 2
    assert claim_work(core, consumer, [5])[0][1] == []
    row, = core.settle(lane_id, "g", [ids[place]], [COMPLETED], [lease])
    assert row.why == 0
    core.rows("select * from queen.release_leases(%s::uuid[])", [lease])
    end_now(core, lease)
    (again, got, _, _, _, _), = claim_work(core, consumer, [5])
    assert got == [s for s in (1, 2, 3) if s != place + 1]
    rows = core.settle(lane_id, "g", ids, [COMPLETED] * 3, [lease] * 3)
    assert [r.why for r in rows] == [0 if i == place else 2 for i in range(3)]
    assert {r.why for r in core.settle(lane_id, "g", [ids[s - 1] for s in got], lease=again)} == {0}
    assert core.state(consumer).cursor_seq == 3


def test_an_extended_message_is_released_with_its_lease(core):
    lane, lane_id, consumer, ids = make_queue(core, "released", 3)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [3])
    assert extend(core, lease, ids[1]) == 0
    core.rows("select * from queen.release_leases(%s::uuid[])", [lease])
    end_now(core, lease)
    (again, got, _, _, _, _), = claim_work(core, consumer, [5])
    assert sorted(got) == [1, 2, 3]
    assert {r.why for r in core.settle(lane_id, "g", ids, lease=lease)} == {2}
    assert {r.why for r in core.settle(lane_id, "g", ids, lease=again)} == {0}


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_transaction_acknowledges_an_extended_message(core, place):
    lane, lane_id, consumer, ids = make_queue(core, "transact-%d" % place, 3)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [3])
    assert extend(core, lease, ids[place]) == 0
    ack = {"type": "ack", "transactionId": ids[place], "partitionId": str(lane_id), "consumerGroup": "g", "status": "completed"}
    for more in ({"leaseId": str(lease)}, {}):
        answer = sqlcore.js(core, "execute_transaction_v2", {"requiredLeases": [str(lease)], "operations": [{**ack, **more}]})
        assert answer["success"], answer
    assert core.state(consumer).batch_size == 2


def test_an_extended_message_survives_rotation(core):
    lane, lane_id, consumer, ids = make_queue(core, "turned", 3)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [3])
    for place in (0, 2):
        assert extend(core, lease, ids[place]) == 0
        for _ in range(4):
            core.one("select queen.rotate(0, 0)")
    assert [r.why for r in core.settle(lane_id, "g", ids, [COMPLETED] * 3, [lease] * 3)] == [0, 0, 0]
    assert core.state(consumer).cursor_seq == 3
