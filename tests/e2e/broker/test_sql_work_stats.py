"""Statistics of work queues, through SQL."""
from test_sql_work import RETRY, claim_work, core, database, make_queue  # noqa: F401 pylint: disable=unused-import


def test_statistics_count_what_is_not_settled(core):
    lane, lane_id, consumer, ids = make_queue(core, "figures", 10)
    pops = claim_work(core, consumer, [1] * 4)
    core.settle(lane_id, "g", ids[3:4], lease=pops[3][0])
    core.rows("select queen.refresh_stats(null, false)")
    assert [r.lag for r in core.rows("select lag from queen.consumer_stats where consumer = %s", consumer)] == [9]


def figures(core, consumer, lane):
    core.rows("select queen.refresh_stats(null, false)")
    counted, = core.rows("select lag, leased from queen.consumer_stats where consumer = %s", consumer)
    places, = core.rows("select waiting, processing from queen.lane_stats where lane = %s", lane)
    return counted.lag, counted.leased, places.waiting, places.processing


def test_statistics_separate_leased_from_pending_messages(core):
    lane, lane_id, consumer, ids = make_queue(core, "inflight", 10)
    pops = claim_work(core, consumer, [2, 2, 2])
    assert figures(core, consumer, lane) == (10, 6, 10, 6)
    core.settle(lane_id, "g", ids[2:4], lease=pops[1][0])          # settled behind messages that are not
    assert figures(core, consumer, lane) == (8, 4, 8, 4)
    core.settle(lane_id, "g", ids[4:6], [RETRY] * 2, [None] * 2, after=[600, 0])
    assert figures(core, consumer, lane) == (8, 2, 8, 2)           # given back: not in flight
    for _ in range(4):
        core.one("select queen.rotate(0, 0)")
    assert figures(core, consumer, lane) == (8, 2, 8, 2)
    core.rows("update queen.holds set until = now() where lease = %s and until is not null", pops[0][0])
    core.rows("update queen.consumer_stats set lease_until = now() where consumer = %s", consumer)
    assert figures(core, consumer, lane) == (8, 0, 8, 0)           # the lease has expired
    core.rows("select queen.remove_message(%s, 1)", lane)
    assert figures(core, consumer, lane) == (7, 0, 7, 0)
