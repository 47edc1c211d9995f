"""The hot claim against the careful one: same answers where it answers, and a clear refusal where it does not."""
import random

import pytest

from sqlcore import stored

HOT, CAREFUL = 0, 7


def facts(rows):
    return [(r.status, r.start_seq, r.take, r.first_seq, r.count, bytes(r.keys)) for r in rows]


@pytest.mark.parametrize("seed", range(20))
def test_both_ways_hand_out_the_same(core, queue, seed):
    rng = random.Random(seed)
    twins = core.lanes((queue, "hot"), (queue, "careful"))
    ids = ["m%d" % i for i in range(60)]
    while ids:
        n = min(len(ids), rng.randint(1, 9))
        for number, _ in twins:
            core.push([(number, ids[:n])])
        ids = ids[n:]
    hot, careful = core.consumers("g", twins[0][0], twins[1][0])
    ver = near = 0
    for _ in range(40):
        batch, auto = rng.randint(1, 12), rng.random() < 0.7
        a, lease_a = core.claim_hot([hot], batch=batch, auto=auto, ver=ver, near=near)
        b, lease_b = core.claim([careful], batch=batch, auto=auto)
        if a[0].status != HOT:
            assert a[0].status == b[0].status
            break
        assert facts(a) == facts(b)
        assert a[0].more or not b[0].more, "the hot way may only be too hopeful"
        if rng.random() < 0.5:  # hints may be as old as they like
            ver, near = a[0].ver, a[-1].first_seq
        if not auto:
            keys = [core.state(c) for c in (hot, careful)]
            assert [(k.cursor_seq, k.lease_first, k.lease_last, k.batch_size) for k in keys[:1]] == \
                   [(k.cursor_seq, k.lease_first, k.lease_last, k.batch_size) for k in keys[1:]]
            assert core.claim_hot([hot])[0][0].status == 2
            core.rows("select * from queen.release_leases(%s::uuid[])", [lease_a, lease_b])
    assert core.state(hot).cursor_seq == core.state(careful).cursor_seq


@pytest.mark.parametrize("option", ["delayedProcessing", "windowBuffer", "ttl", "maxWaitTimeSeconds", "retentionSeconds"])
def test_lanes_with_options_are_left_to_the_careful_way(core, queue, option):
    core.configure(queue, **{option: 100})
    (number, _), = core.lanes((queue, "p"))
    core.push([(number, ["a"])])
    consumer = core.consumers("g", number)
    assert core.claim_hot(consumer)[0][0].status == CAREFUL
    core.configure(queue)
    assert core.claim_hot(consumer)[0][0].status == HOT


def test_options_set_by_hand_reach_the_lanes(core, queue):
    (number, _), = core.lanes((queue, "p"))
    core.rows("update queen.queues set window_buffer = 5, lease_time = 7, max_queue_size = 3 where name = %s returning 1", queue)
    row, = core.rows("select careful, limited, lease_seconds from queen.lanes where num = %s", number)
    assert (row.careful, row.limited, row.lease_seconds) == (True, True, 7)


def test_a_lane_whose_front_was_cut_off_is_left_to_the_careful_way(core, lane):
    core.push([(lane[0], ["a", "b"]), (lane[0], ["c"])])
    consumer = core.consumers("g", lane[0])
    core.rows("delete from queen.segments where lane = %s and first_seq = 1 returning 1", lane[0])
    assert core.claim_hot(consumer, batch=1)[0][0].status == CAREFUL
    assert core.claim_hot(consumer, batch=10)[0][0].status == CAREFUL
    rows, _ = core.claim(consumer, batch=10)
    assert (rows[0].status, rows[0].start_seq, rows[0].take) == (0, 3, 1)


def test_a_hint_beyond_the_cursor_is_ignored(core, lane):
    core.push([(lane[0], ["a"]), (lane[0], ["b"]), (lane[0], ["c"])])
    rows, _ = core.claim_hot(core.consumers("g", lane[0]), batch=2, auto=True, near=3)
    assert [r.first_seq for r in rows] == [1, 2]


@pytest.mark.parametrize("joins", ["hash", "merge", "nested loop"])
def test_rows_have_the_order_of_the_targets_for_every_plan(core, queue, joins):
    """A pooler may drop the planner settings that the broker sends when it connects."""
    lanes = core.lanes(*[(queue, "p%d" % i) for i in range(40)])
    for number, _ in lanes:
        for i in range(3):
            core.push([(number, ["m%d" % i])])
    consumers = core.consumers("g", *[number for number, _ in lanes])
    random.Random(7).shuffle(consumers)
    for name in ("hashjoin", "mergejoin", "nestloop"):
        core.rows("select set_config(%s, %s, false)", "enable_" + name, "on" if name.startswith(joins[:4]) else "off")
    core.rows("select set_config('plan_cache_mode', 'force_custom_plan', false)")
    rows, _ = core.claim_hot(consumers, batch=3)
    assert [(r.target, r.first_seq) for r in rows] == [(t, s) for t in range(1, 41) for s in (1, 2, 3)]


# --- hints of a server that had commits which this one lost ---------------------------------------------------------

def test_a_version_that_is_not_there_hides_nothing(core, lane):
    core.push([(lane[0], ["a"]), (lane[0], ["b"])])
    consumer = core.consumers("g", lane[0])
    rows, _ = core.claim_hot(consumer, batch=1, auto=True, ver=1000)
    assert [(r.status, r.first_seq) for r in rows] == [(0, 1)]
    rows, _ = core.claim_hot(consumer, batch=9, auto=True, ver=1000, near=500)
    assert [(r.status, r.first_seq, r.ver) for r in rows] == [(0, 2, 2)]
    assert core.claim_hot(consumer, ver=1000)[0][0].status == 3


def test_a_segment_that_is_not_there_hides_nothing(core, lane):
    """The lost server had a segment that began inside of what is one segment here."""
    core.push([(lane[0], ["a", "b", "c", "d"])])
    consumer = core.consumers("g", lane[0])
    core.claim_hot(consumer, batch=2, auto=True)
    assert core.claim_hot(consumer, batch=9, near=3)[0][0].status == CAREFUL
    core.push([(lane[0], ["e"])])
    assert core.claim_hot(consumer, batch=9, near=3)[0][0].status == CAREFUL
    rows, _ = core.claim(consumer, batch=9)
    assert (rows[0].status, rows[0].start_seq, rows[0].take) == (0, 3, 3)


def test_pushes_behind_a_segment_that_is_not_there_are_appended(core, lane):
    stored(core, core.push([(lane[0], ["a", "b"])]))
    assert [r.first_seq for r in stored(core, core.push([(lane[0], ["c"])], last=1000))] == [3]
    assert [r.first_seq for r in stored(core, core.push([(lane[0], ["d"]), (lane[0], ["e"])], last=4))] == [4, 5]
    assert [r.first_seq for r in stored(core, core.push([(lane[0], ["f"])], last=5))] == [6]


def test_the_first_push_to_a_lane_with_a_wrong_hint(core, lane):
    assert [r.first_seq for r in stored(core, core.push([(lane[0], ["a"])], last=1000))] == [1]
