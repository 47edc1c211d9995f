"""Limits of work queues, and of their keys, through SQL: generated histories of some partitions, and single cases."""
import os
import random
import uuid

import pytest

import sqlcore
from sqlcore import Core, v7
from test_sql_work import COMPLETED, DLQ, FAILED, RETRY, claim_work, extend

FULL = 10  # claim_status: no partition of the queue has room
SEEDS = int(os.environ.get("QUEEN_MODEL_SEEDS", "40"))
FIRST_SEED = int(os.environ.get("QUEEN_MODEL_FIRST_SEED", "0"))


@pytest.fixture(scope="module")
def database(pg):
    name = pg.create_database("limits_" + uuid.uuid4().hex[:8])
    conn = pg.connect(database=name)
    sqlcore.load(conn)
    yield name
    conn.close()


@pytest.fixture(scope="module")
def core(pg, database):
    conn = pg.connect(database=database)
    yield Core(conn)
    conn.close()


class Part:
    """One partition of a work queue for the group "g"."""

    def __init__(self, core, queue, name, n=0):
        self.core = core
        (self.lane, self.lane_id), = core.lanes((queue, name))
        self.ids = []
        self.consumer, = core.consumers("g", self.lane)
        if n:
            self.push(n)

    def push(self, n):
        new = [v7() for _ in range(n)]
        self.core.push([(self.lane, new)])
        self.ids += new

    def pop(self, *batches, auto=None, seconds=0):
        return claim_work(self.core, self.consumer, list(batches), auto, seconds=seconds)

    def settle(self, seqs, status=COMPLETED, lease=None, after=None):
        return [r.why for r in self.core.settle(self.lane_id, "g", [self.ids[s - 1] for s in seqs], [status] * len(seqs), [lease] * len(seqs),
                                                after=[after] * len(seqs))]

    def expire(self, lease):
        self.core.rows("update queen.holds set until = now() where lease = %s and until is not null and until > now()", lease)


def make(core, queue, *sizes, names=None, **options):
    core.configure(queue, ordering="none", **options)
    return [Part(core, queue, names[i] if names else "p%d" % i, n) for i, n in enumerate(sizes)]


def test_a_group_leases_no_more_than_max_in_flight(core):
    one, two = make(core, "most", 10, 10, maxInFlight=4)
    (first, got, _, _, _, _), = one.pop(3)
    assert got == [1, 2, 3]
    (second, got, _, _, _, _), = two.pop(3)
    assert got == [1], "the limit is that of the group, not of a partition"
    for part in one, two:
        (_, got, _, status, wait, _), = part.pop(1)
        assert (got, status) == ([], FULL) and 0 < wait <= 100_000
    # Completed, given back for later, dead: each makes room for one.
    assert one.settle([2], lease=first) == [0]
    assert one.settle([1], RETRY, first, after=600) == [0]
    assert two.settle([1], DLQ, second) == [0]
    assert [p[1] for p in two.pop(2, 2)] == [[2, 3], [4]]
    assert [p[1] for p in one.pop(2)] == [[]]


def test_other_groups_have_their_own_limit(core):
    part, = make(core, "groups", 5, maxInFlight=2)
    assert [p[1] for p in part.pop(5)] == [[1, 2]]
    other, = core.consumers("h", part.lane)
    assert [p[1] for p in claim_work(core, other, [5])] == [[1, 2]]


def test_an_expired_lease_makes_room_also_behind_messages_that_were_given_back(core):
    """The messages that were given back come first, and there is no room for them before the leases that expired later are counted."""
    part, = make(core, "stuck", 5, maxInFlight=2)
    (a, got, _, _, _, _), (b, _, _, _, _, _) = part.pop(1, 1)
    assert part.settle([1], RETRY, a) == [0]
    (c, got, _, _, _, _), = part.pop(1)
    assert got == [1]
    assert part.settle([1], RETRY, c, after=600) == [0]
    (d, got, _, _, _, _), = part.pop(1)
    assert got == [3]
    core.rows("update queen.holds set until = now() where consumer = %s and lease is null and until > now()", part.consumer)
    assert [p[1] for p in part.pop(5)] == [[]]
    part.expire(b)
    part.expire(d)
    assert [p[1] for p in part.pop(5)] == [[1, 2]]
    assert core.state(part.consumer).leased == 2


def test_expired_leases_of_another_partition_make_room(core):
    one, two = make(core, "elsewhere", 2, 2, maxInFlight=2)
    (lease, got, _, _, _, _), = one.pop(2)
    assert [p[1] for p in two.pop(2)] == [[]]
    one.expire(lease)
    assert [p[1] for p in two.pop(2)] == [[1, 2]]
    assert [p[1] for p in one.pop(2)] == [[]]


def test_a_limit_counts_what_was_leased_before_it(core):
    part, = make(core, "late", 10)
    (lease, _, _, _, _, _), = part.pop(3)
    core.configure("late", ordering="none", maxInFlight=4)
    assert [p[1] for p in part.pop(5)] == [[4]]
    core.configure("late", ordering="none")
    assert [p[1] for p in part.pop(2)] == [[5, 6]]
    core.configure("late", ordering="none", maxInFlight=8)
    assert part.settle([1], lease=lease) == [0]
    assert [p[1] for p in part.pop(5)] == [[7, 8, 9]]


def test_acknowledged_on_delivery_is_never_in_flight(core):
    part, = make(core, "auto", 20, maxInFlight=2)
    assert [p[1] for p in part.pop(3, 4, auto=[False, True])] == [[1, 2], [3, 4, 5, 6]]
    assert [p[1] for p in part.pop(3, 4, auto=[False, True])] == [[], [7, 8, 9, 10]]
    assert core.state(part.consumer).leased == 2


def test_a_released_lease_makes_room(core):
    part, = make(core, "released", 4, maxInFlight=2)
    (lease, _, _, _, _, _), = part.pop(2)
    core.rows("select * from queen.release_leases(%s::uuid[])", [lease])
    assert core.state(part.consumer).leased == 0
    assert [p[1] for p in part.pop(4)] == [[1, 2]]


def test_scheduled_retries_count_for_their_partition(core):
    """A retry lane is a partition of the same group and queue."""
    part, = make(core, "lane", 5, maxInFlight=2, retryPolicy={"mode": "scheduled", "strategy": "fixed", "base": 1, "maxAttempts": 3})
    (a, _, _, _, _, _), (b, _, _, _, _, _) = part.pop(1, 1)
    assert part.settle([1], FAILED, a) == [0]
    (lane,) = core.rows("select num from queen.lanes where origin = %s", part.lane)
    retries, = core.consumers("g", lane.num)
    core.push([(lane.num, [v7(), v7()])])
    assert [p[1] for p in claim_work(core, retries, [5])] == [[1]]
    assert [p[1] for p in part.pop(5)] == [[]]
    assert part.settle([2], lease=b) == [0]
    assert [p[1] for p in part.pop(5)] == [[3]]


def test_two_sessions_cannot_exceed_the_limit_in_two_partitions(pg, database, core):
    one, two = make(core, "race", 5, 5, maxInFlight=3)
    conn = pg.connect(database=database)
    conn.autocommit = False
    other = Core(conn)
    assert [p[1] for p in claim_work(other, one.consumer, [2])] == [[1, 2]]
    (_, got, _, status, _, _), = two.pop(2)
    assert (got, status) == ([], 1), "the other claim is not decided yet"
    conn.commit()
    conn.close()
    assert [p[1] for p in two.pop(2)] == [[1]]


def pass_time(core, parts, seconds):
    for part in parts:
        core.rows("update queen.consumer_states set rate_at = rate_at - %s * interval '1 second',"
                  "       key_rate_at = key_rate_at - %s * interval '1 second' where consumer = %s", seconds, seconds, part.consumer)


def test_a_rate_is_shared_by_all_partitions(core):
    parts = one, two = make(core, "rate", 50, 50, rateLimit=10, rateBurst=5)
    assert [p[1] for p in one.pop(2, 1)] == [[1, 2], [3]]
    assert [p[1] for p in two.pop(9)] == [[1, 2]]
    (_, got, _, status, wait, _), = one.pop(1)
    assert (got, status) == ([], FULL) and 0 < wait <= 100_000
    pass_time(core, parts, 0.3)
    got = [len(p[1]) for p in two.pop(2) + one.pop(9)]
    assert got[0] == 2 and 1 <= got[1] <= 3
    pass_time(core, parts, 3600)
    assert [len(p[1]) for p in two.pop(9)] == [5], "no more than the burst after a pause"


def test_a_slow_rate(core):
    parts = part, = make(core, "slow", 5, rateLimit=0.01)
    assert [p[1] for p in part.pop(5)] == [[1]]
    (_, got, _, status, wait, _), = part.pop(1)
    assert (got, status) == ([], FULL) and 50_000_000 < wait <= 100_000_000
    pass_time(core, parts, 100)
    assert [p[1] for p in part.pop(5)] == [[2]]


def test_a_rate_survives_rotation_and_counts_redeliveries(core):
    parts = part, = make(core, "rotated", 5, rateLimit=1, rateBurst=2, maxInFlight=3)
    (lease, got, _, _, _, _), = part.pop(5)
    assert got == [1, 2]
    for _ in range(4):
        core.one("select queen.rotate(0, 0)")
    assert core.state(part.consumer).leased == 2
    assert part.settle([1, 2], RETRY, lease) == [0, 0]
    assert [p[1] for p in part.pop(5)] == [[]]
    pass_time(core, parts, 1)
    assert [p[1] for p in part.pop(5)] == [[1]]


def test_a_key_has_a_limit_of_its_own(core):
    a, b = make(core, "keys", 9, 9, names="ab", keyMaxInFlight=2)
    (lease, got, _, _, _, _), = a.pop(5)
    assert got == [1, 2]
    (_, got, _, status, wait, _), = a.pop(5)
    assert (got, status) == ([], 4) and wait > 1_000_000, "no other partition of the key can make room"
    assert [p[1] for p in b.pop(5)] == [[1, 2]]
    assert a.settle([2], lease=lease) == [0]
    assert [p[1] for p in a.pop(5)] == [[3]]
    other, = core.consumers("h", a.lane)
    assert [p[1] for p in claim_work(core, other, [5])] == [[1, 2]]


def test_priorities_and_retries_share_the_limit_of_their_key(core):
    a, a9, b = make(core, "shared", 9, 9, 9, names=("a", "a~p9", "b~p9"), keyMaxInFlight=2,
                    retryPolicy={"mode": "scheduled", "strategy": "fixed", "base": 1, "maxAttempts": 3})
    (first, got, _, _, _, _), = a9.pop(1)
    assert [p[1] for p in a.pop(5)] == [[1]]
    (_, got, _, status, wait, _), = a9.pop(1)
    assert (got, status) == ([], 4) and 0 < wait <= 100_000
    assert [p[1] for p in b.pop(5)] == [[1, 2]]
    assert a9.settle([1], FAILED, first) == [0]
    lane, = core.rows("select num from queen.lanes where origin = %s", a9.lane)
    retries, = core.consumers("g", lane.num)
    core.push([(lane.num, [v7(), v7()])])
    assert [p[1] for p in claim_work(core, retries, [5])] == [[1]]
    assert [p[1] for p in a.pop(1)] == [[]]


def test_both_limits_hold(core):
    a, b = make(core, "both", 9, 9, names="ab", maxInFlight=3, keyMaxInFlight=2)
    assert [p[1] for p in a.pop(5)] == [[1, 2]]
    (lease, got, _, _, _, _), = b.pop(5)
    assert got == [1]
    assert b.settle([1], lease=lease) == [0]
    assert [p[1] for p in a.pop(5)] == [[]]
    assert [p[1] for p in b.pop(5)] == [[2]]


def test_a_key_has_a_rate_of_its_own(core):
    parts = a, a5, b = make(core, "key rates", 50, 50, 50, names=("a", "a~p5", "b"), keyRateLimit=0.01, keyRateBurst=4, rateLimit=1000)
    assert [p[1] for p in a.pop(2, 1)] == [[1, 2], [3]]
    assert [p[1] for p in a5.pop(9)] == [[1]]
    (_, got, _, status, wait, _), = a.pop(1)
    assert (got, status) == ([], 4) and 50_000_000 < wait <= 100_000_000
    assert [len(p[1]) for p in b.pop(9)] == [4]
    for _ in range(4):
        core.one("select queen.rotate(0, 0)")
    assert [p[1] for p in a.pop(1)] == [[]]
    pass_time(core, parts, 3600)
    assert [len(p[1]) for p in a.pop(9)] == [4], "no more than the burst after a pause"


def test_two_sessions_cannot_exceed_the_limit_of_a_key(pg, database, core):
    a, a1, b = make(core, "key race", 5, 5, 5, names=("a", "a~p1", "b"), keyMaxInFlight=3)
    conn = pg.connect(database=database)
    conn.autocommit = False
    other = Core(conn)
    assert [p[1] for p in claim_work(other, a.consumer, [2])] == [[1, 2]]
    assert a1.pop(2)[0][1:4:2] == [[], 1], "the other claim is not decided yet"
    assert [p[1] for p in b.pop(5)] == [[1, 2, 3]], "another key does not wait"
    conn.commit()
    conn.close()
    assert [p[1] for p in a1.pop(2)] == [[1]]


@pytest.mark.parametrize("option", ["maxInFlight", "keyMaxInFlight"])
def test_a_claim_that_is_not_decided_delays_no_strangers(pg, database, core, option):
    """A call of the broker waits a moment for a claim of another session, but not again for each partition that the limits concern."""
    queue = "undecided " + option
    core.configure(queue, ordering="none", **{option: 3})
    lanes = core.lanes(*[(queue, "p%d%s" % (i, p)) for i in range(100) for p in ("", "~p9")])
    consumers = core.consumers("g", *[lane for lane, _ in lanes])
    stranger, = make(core, "stranger of " + option, 1)
    conn = pg.connect(database=database)
    conn.autocommit = False
    try:
        for consumer in consumers[::2]:
            claim_work(Core(conn), consumer, [1])
        call = consumers[1::2] + [stranger.consumer]
        core.rows("set statement_timeout = '2500ms'")
        rows = core.rows("select * from queen.claim_work(%s::bigint[], %s::int[], %s::boolean[], %s::uuid[], %s::int[], %s::boolean[])",
                         call, [1] * len(call), [False] * len(call), [uuid.uuid4() for _ in call], [0] * len(call), [True] * len(call))
    finally:
        core.rows("reset statement_timeout")
        conn.close()
    status = {r.target: r.status for r in rows if r.status is not None}
    assert status == {**{i: 1 for i in range(1, len(call))}, len(call): 0}


def exact(core, part):
    """Messages under live leases, from the holds."""
    return core.one("select coalesce(sum(n.count - coalesce(bit_count(n.done), 0)), 0)::int"
                    "  from (select distinct on (first_seq, hold) * from queen.holds where consumer = %s order by first_seq, hold, ver desc) n"
                    " where n.until > clock_timestamp() and n.lease is not null", part.consumer)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_a_generated_history_respects_the_limit(core, seed):
    rnd = random.Random(seed)
    most, limit = rnd.choice((1, 2, 5, 12)), rnd.choice((0, 0, 3))
    key_most = rnd.choice((0, 0, 1, 3, 6))          # of a key
    if key_most and rnd.random() < 0.3:
        most = 0
    names = ["a", rnd.choice(("a~p4", "b")), rnd.choice(("b~p0", "b~p9"))][:rnd.randint(1, 3)]
    history = ["maxInFlight %d, keyMaxInFlight %d, maxDeliveries %d, partitions %s" % (most, key_most, limit, names)]
    parts = make(core, "h%d" % seed, *([rnd.randint(1, 20)] * len(names)), names=names, maxInFlight=most, keyMaxInFlight=key_most,
                 retryLimit=rnd.choice((0, 100)), maxDeliveries=limit)
    leases = []                                     # (partition, lease, its messages)

    def check(ok, *more):
        if not ok:
            pytest.fail("\n".join(history + [str(m) for m in more]))

    def room_of(key=None):
        leased = {"": 0}
        for name, p in zip(names, parts):
            n = exact(core, p)
            leased[""] += n
            leased[name[0]] = leased.get(name[0], 0) + n
        check(most == 0 or leased[""] <= most, leased)
        check(key_most == 0 or all(n <= key_most for k, n in leased.items() if k), leased)
        return min([1000] + [most - leased[""]] * (most > 0) + [key_most - leased.get(key, 0)] * (key_most > 0))

    def pop():
        part = rnd.choice(parts)
        room = room_of(names[parts.index(part)][0])
        want = [rnd.choice((1, 1, 3, 300)) for _ in range(rnd.randint(1, 3))]
        pops = part.pop(*want)
        history.append("pop %s of %d, room %d: %s" % (want, parts.index(part), room, [p[1] for p in pops]))
        got = sum(len(p[1]) for p in pops)
        check(got <= room)
        state = core.state(part.consumer)
        if 0 < got < min(room, sum(want)):
            check(part.pop(1)[0][1] == [], "messages were left")
        check(got == 0 or state.leased == exact(core, part), state) # a pop that delivers nothing stores nothing
        leases.extend((part, p[0], p[1]) for p in pops if p[1])

    def settle():
        part, lease, seqs = rnd.choice(leases)
        some = rnd.sample(seqs, rnd.randint(1, len(seqs)))
        status, named = rnd.choice((COMPLETED, COMPLETED, FAILED, DLQ, RETRY)), rnd.random() < 0.8
        why = part.settle(some, status, lease if named else None, rnd.choice((None, 600)) if status == RETRY else None)
        history.append("settle %s of %d, %s as %d: %s" % (some, parts.index(part), "leased" if named else "without lease", status, why))

    def others():
        part, lease, seqs = rnd.choice(leases)
        what = rnd.choice(("expire", "expire", "release", "extend", "renew", "skip"))
        history.append("%s %s of %d" % (what, seqs, parts.index(part)))
        if what == "expire":
            part.expire(lease)
        elif what == "release":
            core.rows("select * from queen.release_leases(%s::uuid[])", [lease])
        elif what == "skip":
            core.rows("select queen.remove_message(%s, %s)", part.lane, rnd.choice(seqs))
        else:
            extend(core, lease, part.ids[rnd.choice(seqs) - 1] if what == "extend" else None, rnd.randint(900, 9999))

    for _ in range(40):
        what = rnd.random()
        if what < 0.4 or not leases:
            pop()
        elif what < 0.7:
            settle()
        elif what < 0.85:
            others()
        elif what < 0.9:
            history.append("delays end")
            core.rows("update queen.holds set until = now() where lease is null and until > now()")
        elif what < 0.95:
            rnd.choice(parts).push(rnd.randint(1, 9))
        else:
            history.append("rotate: %s" % [core.one("select queen.rotate(0, 0)") for _ in range(rnd.randint(1, 4))])
        room_of()

    # Everything is delivered in the end, although never more than the limit at once.
    core.rows("update queen.holds set until = now() where until > now()")
    for part in parts:
        for _ in range(500):
            (lease, got, _, status, _, _), = part.pop(300)
            check(len(got) <= min(most or 1000, key_most or 1000))
            if got:
                check(set(part.settle(got, COMPLETED, lease)) == {0})
            elif status == 3:
                break
        check(core.state(part.consumer).batch_size == 0, core.state(part.consumer))
        check(core.state(part.consumer).cursor_seq == len(part.ids))
