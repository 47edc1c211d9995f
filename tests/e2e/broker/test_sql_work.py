"""Work queues through SQL: generated histories against a naive in-memory queue, and two sessions with forced interleavings."""
import os
import random
import uuid

import pytest

import sqlcore
from sqlcore import Core, v7

COMPLETED, FAILED, DLQ, RETRY = range(4)


def claim_work(core, consumer, batches, auto=None, leases=None, seconds=0):
    """Several pops in one call; for each (lease, [sequence, ...], [retries, ...], status, wait, [(first, count), ...])."""
    n = len(batches)
    leases = leases or [uuid.uuid4() for _ in range(n)]
    rows = core.rows("select * from queen.claim_work(%s::bigint[], %s::int[], %s::boolean[], %s::uuid[], %s::int[], %s::boolean[])",
                     [consumer] * n, batches, auto or [False] * n, leases, [seconds] * n, [False] * n)
    pops = [[lease, [], [], None, None, []] for lease in leases]
    segments = set()
    for r in rows:
        if r.status is None:
            segments |= set(range(r.first_seq, r.first_seq + r.count))
            continue
        pop = pops[r.target - 1]
        pop[3], pop[4] = r.status, r.wait_us
        if r.status == 0:
            pop[1] += range(r.start_seq, r.start_seq + r.take)
            pop[2] += [r.retries] * r.take
            pop[5].append((r.start_seq, r.take))
    assert [r.target for r in rows if r.status is not None] == sorted(r.target for r in rows if r.status is not None)
    for pop in pops:
        assert set(pop[1]) <= segments, "a delivered message without its segment"
        assert (pop[3] == 0) == bool(pop[1])
    return pops


class Hold:
    """A run of messages that were delivered together, or one message that was given back (lease None)."""

    def __init__(self, lease, seqs, order, until):
        self.lease, self.seqs, self.order, self.until = lease, list(seqs), order, until
        self.open, self.touched = set(seqs), False  # touched: a message has left it


NEVER = float("inf")


class Model:
    """One group on one partition of a work queue, with messages 1..n.  Time is the number of the step: a hold is live until NEVER."""

    def __init__(self, retry_limit=3, max_deliveries=20, policy=None):
        self.n, self.taken, self.total, self.now = 0, 0, 0, 0
        self.retry_limit, self.max_deliveries, self.policy = retry_limit, max_deliveries, policy
        self.holds, self.retries, self.deliveries = [], {}, {}
        self.dead, self.scheduled, self.batches = set(), set(), {}

    def open(self):
        return {s: h for h in self.holds for s in h.open}

    def leases(self):
        return list({h.lease: 0 for h in self.holds if h.lease})

    def holds_of(self, lease):
        return [h for h in self.holds if h.lease == lease]

    def cursor(self):
        return min(self.open(), default=self.taken + 1) - 1

    def hold(self, lease, seqs, until):
        self.holds.append(Hold(lease, seqs, len(self.holds), until))

    def expected(self, want):
        """Claims so many messages and returns the delivered ones."""
        out = []
        self.now += 1
        due = sorted((h for h in self.holds if h.open and h.until <= self.now), key=lambda h: (h.until, h.seqs[0], h.order))
        for h in due:
            for s in sorted(h.open):
                if len(out) == want:
                    return out
                alone = self.max_deliveries > 1 and (self.max_deliveries + 1) // 2 <= self.deliveries[s] < self.max_deliveries
                if alone and out:
                    return out
                h.open.discard(s)
                h.touched = True
                if self.deliveries[s] >= self.max_deliveries:
                    self.dead.add(s)
                    self.total += 1
                else:
                    out.append(s)
                    if alone:
                        return out
        new = range(self.taken + 1, min(self.n, self.taken + want - len(out)) + 1)
        self.taken += len(new)
        return out + list(new)

    def delivered(self, lease, runs, auto):
        for first, n in runs:
            for s in range(first, first + n):
                self.deliveries[s] = self.deliveries.get(s, 0) + 1
                self.retries.setdefault(s, 0)
            if auto:
                self.total += n
            else:
                self.hold(lease, range(first, first + n), NEVER)

    def expire(self, holds):
        self.now += 1
        for h in holds:
            if h.until > self.now:
                h.until = self.now

    def extend(self, lease, seq):
        """True: it is possible, and the message gets a hold of its own."""
        for h in self.holds_of(lease):
            if seq in h.open and h.until > self.now:
                if len(h.seqs) > 1:
                    h.open.discard(seq)
                    h.touched = True
                    self.hold(lease, [seq], NEVER)
                return True
        return False

    def release(self, lease):
        self.now += 1
        for h in self.holds_of(lease):
            if h.open and not h.touched:
                self.hold(None, h.seqs, self.now)
                for s in h.seqs:
                    self.deliveries[s] -= 1
                h.open, h.touched = set(), True

    def ack(self, entries):
        """(why, dead) of each."""
        self.now += 1
        results, first, back, was = [], {}, [], self.open()
        for seq, status, lease, after in entries:
            own = [h for h in self.holds_of(lease) if seq in h.seqs][-1:] if lease else []
            h = was.get(seq) if lease is None else own[0] if own else None
            if seq is None:
                results.append((1, False))
            elif lease is not None and not own:
                results.append((2, False))
            elif lease is not None and was.get(seq) is not h and seq in was:
                results.append((2, False))
            elif seq not in was and seq > self.taken:
                results.append((5, False))
            elif seq not in was:
                if status in (COMPLETED, DLQ) and seq in self.scheduled:
                    results.append((4, False))  # it waits for its retry
                elif status == COMPLETED:
                    results.append((0, seq in self.dead))
                else:
                    results.append((0, seq in self.dead) if seq in self.dead | self.scheduled else (6, False))
            elif lease is not None and h.until <= self.now:
                results.append((2, False))
            elif seq in first:
                results.append(first[seq])
            elif h.lease is None and status in (FAILED, RETRY):
                results.append((5, False))
            else:
                h.open.discard(seq)
                h.touched = True
                if status == RETRY or status == FAILED and self.policy != "scheduled" and self.retries[seq] < self.retry_limit:
                    late = after if status == RETRY else self.policy == "inline"
                    back.append((seq, NEVER if late else self.now))
                    self.retries[seq] += status == FAILED
                    first[seq] = (0, False)
                else:
                    self.total += 1
                    buried = status == DLQ or status == FAILED and self.policy != "scheduled"
                    if buried:
                        self.dead.add(seq)
                    elif status == FAILED:
                        self.scheduled.add(seq)
                    first[seq] = (0, buried)
                results.append(first[seq])
        for seq, until in back:
            self.hold(None, [seq], until)
            self.deliveries[seq] -= 1  # it did not end without an acknowledgement
        return results


@pytest.fixture(scope="module")
def database(pg):
    name = pg.create_database("work_" + uuid.uuid4().hex[:8])
    conn = pg.connect(database=name)
    sqlcore.load(conn)
    yield name
    conn.close()


@pytest.fixture(scope="module")
def core(pg, database):
    conn = pg.connect(database=database)
    yield Core(conn)
    conn.close()


def make_queue(core, queue, n=0, **options):
    core.configure(queue, **{"ordering": "none", **options})
    (lane, lane_id), = core.lanes((queue, "p"))
    ids = [v7() for _ in range(n)]
    if n:
        core.push([(lane, ids)])
    consumer, = core.consumers("g", lane)
    return lane, lane_id, consumer, ids


def compare(core, model, consumer, history):
    st = core.state(consumer)
    if st.taken_seq is None:
        return
    assert (st.taken_seq, st.batch_size, st.cursor_seq, st.total_messages) == \
        (model.taken, len(model.open()), model.cursor(), model.total), "\n".join(history)
    floor = core.rows("select * from queen.work_floor(%s, %s, %s, %s, %s)", consumer, st.walk_seq, st.holds_from, st.taken_seq, st.batch_size)
    assert [f.cursor_seq for f in floor] == [model.cursor()], "\n".join(history)


POLICIES = {None: {}, "inline": {"retryPolicy": {"mode": "inline", "strategy": "fixed", "base": 600, "maxAttempts": 3}},
            "scheduled": {"retryPolicy": {"mode": "scheduled", "strategy": "fixed", "base": 600, "maxAttempts": 3}}}
SEEDS = int(os.environ.get("QUEEN_MODEL_SEEDS", "40"))
FIRST_SEED = int(os.environ.get("QUEEN_MODEL_FIRST_SEED", "0"))


class Run:
    """A generated history of one queue, step by step in the database and in the model."""

    def __init__(self, core, seed):
        self.core, self.rnd = core, random.Random(seed)
        self.policy = self.rnd.choice((None, None, "inline", "scheduled"))
        limit = 2 if self.policy == "inline" else self.rnd.randint(0, 3)
        deliveries = self.rnd.choice((2, 5, 20))
        self.lane, self.lane_id, self.consumer, self.ids = make_queue(
            core, "w%d" % seed, retryLimit=limit, maxDeliveries=deliveries, **POLICIES[self.policy])
        self.model, self.history = Model(limit, deliveries, self.policy), []

    def note(self, text, *args):
        self.history.append(text % args)

    def check(self, ok, *more):
        if not ok:
            pytest.fail("\n".join(self.history + [str(m) for m in more]))

    def push(self, n):
        for size in (self.rnd.randint(1, n), n):
            size = min(size, n)
            n -= size
            if size:
                new = [v7() if self.rnd.random() < 0.7 else "id-%d-%d" % (len(self.ids), i) for i in range(size)]
                self.core.push([(self.lane, new)])
                self.ids.extend(new)
        self.model.n = len(self.ids)
        self.note("pushed up to %d", self.model.n)

    def pop(self):
        batches = [self.rnd.choice((1, 1, 2, 5, 300)) for _ in range(self.rnd.randint(1, 4))]
        auto = [self.rnd.random() < 0.1 for _ in batches]
        pops = claim_work(self.core, self.consumer, batches, auto)
        self.note("pop %s: %s", batches, [p[1] for p in pops])
        want = self.model.expected(sum(batches))
        self.check([s for p in pops for s in p[1]] == want, "expected %s" % want)
        for batch, is_auto, p in zip(batches, auto, pops):
            self.check(len(p[1]) == min(batch, len(want)), "expected %s" % want)
            want = want[len(p[1]):]
            self.check(p[2] == [self.model.retries.get(s, 0) for s in p[1]], "retries %s" % p[2])
            self.model.delivered(p[0], p[5], is_auto)

    def lease(self):
        return self.rnd.choice(self.model.leases())

    def end(self, condition, *args):
        self.core.rows("update queen.holds set until = now() where consumer = %s and until is not null and until > now() and " + condition,
                       self.consumer, *args)

    def expire(self):
        """The holds of a lease, or only those that were not extended."""
        lease, only = self.lease(), self.rnd.random() < 0.4
        holds = [h for h in self.model.holds_of(lease) if not only or len(h.seqs) > 1]
        self.note("expire %s%s", lease, ", not the extended ones" if only else "")
        self.end("lease = %s" + (" and count > 1" if only else ""), lease)
        self.model.expire(holds)

    def let_delays_end(self):
        self.note("delays end")
        self.end("lease is null")
        self.model.expire([h for h in self.model.holds if h.lease is None])

    def rotate(self):
        self.note("rotate: %s", [self.core.one("select queen.rotate(0, 0)") for _ in range(self.rnd.randint(1, 4))])

    def renew(self):
        lease = self.lease()
        why = extend(self.core, lease)
        self.note("renew %s: %d", lease, why)
        self.check((why == 0) == any(h.open and h.until > self.model.now for h in self.model.holds_of(lease)))

    def extend(self):
        lease = self.lease()
        seq = self.rnd.choice([s for h in self.model.holds_of(lease) for s in h.seqs])
        why = extend(self.core, lease, self.ids[seq - 1], self.rnd.randint(900, 99999))
        self.note("extend %d of %s: %d", seq, lease, why)
        self.check((why == 0) == self.model.extend(lease, seq))

    def release(self):
        lease = self.lease()
        self.note("release %s", lease)
        self.core.rows("select * from queen.release_leases(%s::uuid[])", [lease])
        self.model.release(lease)

    def ack(self):
        entries, model, rnd = [], self.model, self.rnd
        first = rnd.randint(1, model.n)
        run = list(range(first, min(first + rnd.randint(1, 300), model.n + 1))) if rnd.random() < 0.15 else [None] * rnd.randint(1, 8)
        for seq in run:  # neighbours, or any
            if seq is None:
                seq = rnd.randint(1, model.n) if rnd.random() < 0.9 or not model.open() else None
                if model.open() and rnd.random() < 0.7:
                    seq = rnd.choice(list(model.open()))
            owners = [h.lease for h in model.holds if h.lease and seq in h.seqs]
            lease = rnd.choice(owners) if owners and rnd.random() < 0.85 else rnd.choice([None, uuid.uuid4()])
            if seq is None:
                lease = None
            status = rnd.choices(range(4), (10, 3, 1, 2))[0]
            entries.append((seq, status, lease, 600 if status == RETRY and rnd.random() < 0.4 else None))
        self.note("ack %s", entries)
        is_open = model.open()
        want = model.ack(entries)
        rows = self.core.settle(self.lane_id, "g", [self.ids[e[0] - 1] if e[0] else "ghost" for e in entries],
                                [e[1] for e in entries], [e[2] for e in entries], after=[e[3] for e in entries])
        got = [(r.why, r.dead) for r in sorted(rows, key=lambda r: r.entry)]
        for g, w, (seq, _, lease, _) in zip(got, want, entries):
            # Leases that have ended are forgotten with the slot that contains them.
            forgotten = g[0] == 2 and w[0] in (0, 4, 6) and lease is not None and seq not in is_open
            self.check(g == w or forgotten, "got %s" % got, "not %s" % want)

    def step(self):
        with_lease = (self.expire, self.expire, self.renew, self.extend, self.extend, self.release)
        action = self.rnd.choices((self.pop, lambda: self.push(self.rnd.randint(1, 8) if self.rnd.random() < 0.9 else 600),
                                   self.rotate, self.let_delays_end, self.rnd.choice(with_lease), self.ack), (30, 10, 7, 4, 22, 27))[0]
        if action in with_lease and not self.model.leases():
            return
        action()
        compare(self.core, self.model, self.consumer, self.history)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_a_generated_history(core, seed):
    run = Run(core, seed)
    model = run.model
    run.push(run.rnd.randint(1, 12))
    for _ in range(40):
        run.step()

    # Nothing is lost: everything that is not settled is delivered in the end, once.
    run.end("true")
    model.expire(model.holds)
    while True:
        (_, got, _, status, _, runs), = claim_work(core, run.consumer, [1000])
        want = model.expected(1000)
        run.check(got == want, "got %s" % got, "not %s" % want)
        model.delivered(None, runs, False)
        if not got and status != 6:
            break
    run.check(sorted(model.open()) == [s for s in range(1, model.n + 1) if s in model.open()])
    rest = sorted(model.open())
    rows = core.settle(run.lane_id, "g", [run.ids[s - 1] for s in rest], [COMPLETED] * len(rest), [None] * len(rest)) if rest else []
    assert {r.why for r in rows} <= {0}
    st = core.state(run.consumer)
    if st.taken_seq is not None:
        assert (st.cursor_seq, st.taken_seq, st.batch_size) == (model.n, model.n, 0)
    buried = core.rows("select seq from queen.dead_letter_queue where lane = %s and consumer_group = 'g'", run.lane)
    run.check({r.seq for r in buried} == model.dead, model.dead)


def test_consumers_hold_different_messages_of_one_partition(core):
    lane, lane_id, consumer, ids = make_queue(core, "many", 10)
    pops = claim_work(core, consumer, [1] * 4) + claim_work(core, consumer, [3, 2])
    assert [p[1] for p in pops] == [[1], [2], [3], [4], [5, 6, 7], [8, 9]]
    # In any order, one by one.
    for lease, got, _, _, _, _ in reversed(pops):
        rows = core.settle(lane_id, "g", [ids[s - 1] for s in got], lease=lease)
        assert {(r.why, r.released) for r in rows} == {(0, True)}
    assert core.state(consumer).cursor_seq == 9


def extend(core, lease, message=None, seconds=900):
    return core.rows("select * from queen.renew_leases(%s::uuid[], %s::int[], %s::uuid[])", [lease], [seconds],
                     [sqlcore.key(message) if message else None])[0].why


def end_now(core, lease, below="infinity"):
    """Let the holds of a lease expire that end before this time."""
    core.rows("update queen.holds set until = now() where lease = %s and until is not null and until > now() and until < %s", lease, below)


@pytest.mark.parametrize("named", [True, False], ids=["with lease", "without"])
def test_a_lease_of_several_runs_ends_with_the_last_one(core, named):
    lane, lane_id, consumer, ids = make_queue(core, "runs-%d" % named, 5)
    pops = claim_work(core, consumer, [1, 1, 1])
    core.settle(lane_id, "g", [ids[0], ids[2]], [RETRY] * 2, [None] * 2)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [9])
    assert got == [1, 3, 4, 5]
    for seq in (3, 5, 4, 1):
        row, = core.settle(lane_id, "g", [ids[seq - 1]], [COMPLETED], [lease if named else None])
        assert (row.why, row.released) == (0, seq == 1)
    assert core.state(consumer).total_batches == 3  # two leases ended by giving back


def test_an_empty_claim_names_the_time_when_a_lease_ends(core):
    lane, lane_id, consumer, ids = make_queue(core, "waits", 1)
    claim_work(core, consumer, [1], seconds=50)
    (_, got, _, status, wait_us, _), = claim_work(core, consumer, [1])
    assert (got, status) == ([], 3) and 0 < wait_us <= 50_000_000


def test_a_message_that_nobody_settles_becomes_a_dead_letter(core):
    lane, lane_id, consumer, ids = make_queue(core, "poison", 2)
    for _ in range(20):
        (lease, got, _, _, _, _), = claim_work(core, consumer, [1])
        assert got == [1]
        core.rows("update queen.holds set until = now() where lease = %s and until is not null", lease)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [1])
    assert got == [2]
    assert [r.error_message for r in core.rows("select error_message from queen.dead_letter_queue where lane = %s", lane)] == ["delivery limit"]
    core.settle(lane_id, "g", ids[1:], lease=lease)
    assert core.state(consumer).cursor_seq == 2


def test_a_client_that_hangs_up_gives_its_messages_back(core):
    lane, lane_id, consumer, ids = make_queue(core, "hangup", 3)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [2])
    assert [r.consumer for r in core.rows("select * from queen.release_leases(%s::uuid[])", [lease])] == [consumer]
    (again, got, _, _, _, _), = claim_work(core, consumer, [3])
    assert got == [1, 2, 3]
    assert {r.why for r in core.settle(lane_id, "g", ids[:1], lease=lease)} == {2}
    assert {r.why for r in core.settle(lane_id, "g", ids, lease=again)} == {0}


def test_a_seek_ends_all_leases(core):
    lane, lane_id, consumer, ids = make_queue(core, "seek", 4)
    (lease, _, _, _, _, _), = claim_work(core, consumer, [3])
    core.rows("select queen.move_cursors(%s::bigint[], '-infinity')", [consumer])
    (again, got, _, _, _, _), = claim_work(core, consumer, [10])
    assert got == [1, 2, 3, 4]
    assert {r.why for r in core.settle(lane_id, "g", ids[:3], lease=lease)} == {2}


def test_a_deleted_message_leaves_its_lease(core):
    lane, lane_id, consumer, ids = make_queue(core, "deleted", 3)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [2])
    core.rows("select queen.remove_message(%s, 1)", lane)
    rows = core.settle(lane_id, "g", ids[1:2], lease=lease)
    assert [(r.why, r.released) for r in rows] == [(0, True)]
    assert core.state(consumer).cursor_seq == 2


def test_an_ordered_lease_stays_leased_when_the_queue_becomes_a_work_queue(core):
    core.configure("turns")
    (lane, lane_id), = core.lanes(("turns", "p"))
    ids = [v7() for _ in range(4)]
    core.push([(lane, ids)])
    consumer, = core.consumers("g", lane)
    rows, lease = core.claim([consumer], batch=2)
    core.configure("turns", ordering="none")
    (_, got, _, status, wait_us, _), = claim_work(core, consumer, [1])
    assert (got, status) == ([], 2) and wait_us > 0
    assert {r.why for r in core.settle(lane_id, "g", ids[:2], lease=lease)} == {0}
    (_, got, _, _, _, _), = claim_work(core, consumer, [5])
    assert got == [3, 4]


def test_retention_does_not_pass_a_message_that_is_held(core):
    lane, lane_id, consumer, ids = make_queue(core, "floor", 3)
    pops = claim_work(core, consumer, [1, 1, 1])
    for lease, got, _, _, _, _ in pops[1:]:
        core.settle(lane_id, "g", [ids[got[0] - 1]], lease=lease)
    assert core.one("select queen.slowest_cursor(%s)", lane) == 0
    core.settle(lane_id, "g", ids[:1], lease=pops[0][0])
    assert core.one("select queen.slowest_cursor(%s)", lane) == 3


def test_two_sessions_never_hold_the_same_message(pg, database, core):
    lane, lane_id, consumer, ids = make_queue(core, "sessions", 4)
    conn = pg.connect(database=database)
    conn.autocommit = False
    other = Core(conn)
    (mine, got, _, _, _, _), = claim_work(other, consumer, [2])
    assert got == [1, 2]
    # The other transaction is open: this session gets nothing, and does not wait.
    (_, got, _, status, _, _), = claim_work(core, consumer, [2])
    assert (got, status) == ([], 1)
    conn.commit()
    (_, got, _, _, _, _), = claim_work(core, consumer, [2])
    assert got == [3, 4]
    other.settle(lane_id, "g", ids[:2], lease=mine)
    conn.rollback()  # the acknowledgement did not happen
    core.rows("update queen.holds set until = now() where lease = %s and until is not null", mine)
    (_, got, _, _, _, _), = claim_work(core, consumer, [2])
    assert got == [1, 2]
    assert {r.why for r in core.settle(lane_id, "g", ids[:2], lease=mine)} == {2}
    conn.close()


def test_sql_functions_pop_and_acknowledge_a_work_queue(core):
    lane, lane_id, consumer, ids = make_queue(core, "sqljobs", 3)
    pops = [sqlcore.js(core, "pop_unified_batch", [{"queue_name": "sqljobs", "consumer_group": "g", "batch_size": 1}])
            for _ in range(3)]
    found = [p[0]["result"]["messages"][0] if "result" in p[0] else p[0]["messages"][0] for p in pops]
    assert [m["transactionId"] for m in found] == ids
    acks = sqlcore.js(core, "ack_messages_v2", [
        {"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": m["leaseId"], "consumerGroup": "g",
         "status": "completed"} for m in reversed(found)])
    assert all(a["success"] for a in acks), acks
    assert core.state(consumer).cursor_seq == 3


def test_a_work_queue_becomes_ordered_again(core):
    lane, lane_id, consumer, ids = make_queue(core, "back", 6)
    pops = claim_work(core, consumer, [1, 1, 1, 1])
    for lease, got, _, _, _, _ in (pops[1], pops[3]):
        core.settle(lane_id, "g", [ids[got[0] - 1]], lease=lease)
    core.configure("back")
    # Leases stay.
    assert core.claim([consumer], batch=9)[0][0].status == 8
    (_, got, _, status, wait_us, _), = claim_work(core, consumer, [9])
    assert (got, status) == ([], 2) and wait_us > 0
    assert {r.why for r in core.settle(lane_id, "g", ids[:1], lease=pops[0][0])} == {0}
    core.rows("update queen.holds set until = now() where lease = %s and until is not null", pops[2][0])
    assert claim_work(core, consumer, [9])[0][3] == 7
    rows, lease = core.claim([consumer], batch=9)
    assert [(r.start_seq, r.take) for r in rows][:1] == [(3, 1)]
    assert {r.why for r in core.settle(lane_id, "g", ids[2:3], lease=lease)} == {0}
    rows, lease = core.claim([consumer], batch=9)
    assert [(r.start_seq, r.take) for r in rows][:1] == [(5, 2)]
    assert {r.why for r in core.settle(lane_id, "g", ids[4:], lease=lease)} == {0}
    assert core.state(consumer).cursor_seq == 6


def test_a_stream_refuses_a_work_queue(core):
    make_queue(core, "notastream", 1)
    with pytest.raises(Exception, match="work queue"):
        core.rows("select * from queen.stream_register(%s::jsonb)",
                  '{"body": {"name": "q", "source_queue": "notastream", "config_hash": "h"}}')


def test_owners_refuse_a_work_queue(core):
    core.configure("notowned", ordering="none", partitions=2)
    with pytest.raises(Exception, match="work queue"):
        core.rows("select queen.claim_owners(%s::jsonb)",
                  '{"group": "g", "queue": "notowned", "body": {"owner": "me", "partitions": [{"partition": "0", "epoch": 0}]}}')


def test_required_leases_of_a_transaction_must_hold_the_message(core):
    lane, lane_id, consumer, ids = make_queue(core, "required", 2)
    pops = claim_work(core, consumer, [1, 1])
    for lease, want in ((pops[1][0], False), (pops[0][0], True)):
        answer = sqlcore.js(core, "execute_transaction_v2", {
            "requiredLeases": [str(lease)],
            "operations": [{"type": "ack", "transactionId": ids[0], "partitionId": str(lane_id), "consumerGroup": "g", "status": "completed"}]})
        assert answer["success"] == want, answer
    assert core.state(consumer).batch_size == 1


def test_removed_messages_of_an_expired_lease_are_not_delivered(core):
    """Retention leaves a marker at the last sequence number of an empty partition."""
    lane, lane_id, consumer, ids = make_queue(core, "removed", 3)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [3])
    core.rows("delete from queen.segments where lane = %s", lane)
    core.rows("insert into queen.segments (lane, first_seq, created_at, count, keys, body) values (%s, 3, now(), 0, '', '\\x01')", lane)
    core.rows("update queen.holds set until = now() where lease = %s and until is not null", lease)
    (_, got, _, status, _, _), = claim_work(core, consumer, [3])
    assert (got, status) == ([], 3)
    st = core.state(consumer)
    assert (st.cursor_seq, st.batch_size) == (3, 0)


def test_a_delayed_queue_names_the_time_when_a_lease_ends(core):
    lane, lane_id, consumer, ids = make_queue(core, "delayed", 1, delayedProcessing=600)
    core.rows("update queen.segments set created_at = created_at - interval '700 seconds' where lane = %s", lane)
    claim_work(core, consumer, [1], seconds=50)
    core.push([(lane, [v7()])])
    (_, got, _, status, wait_us, _), = claim_work(core, consumer, [1])
    assert (got, status) == ([], 4) and 0 < wait_us <= 50_000_000


def test_messages_settled_before_the_queue_was_a_work_queue_count_as_settled(core):
    core.configure("mixed", retryLimit=0)
    (lane, lane_id), = core.lanes(("mixed", "p"))
    ids = [v7() for _ in range(4)]
    core.push([(lane, ids)])
    consumer, = core.consumers("g", lane)
    rows, lease = core.claim([consumer], batch=4)
    assert [r.why for r in core.settle(lane_id, "g", ids[2:3], [DLQ], [lease])] == [0]
    core.rows("select * from queen.release_leases(%s::uuid[])", [lease])
    core.rows("update queen.consumer_states set lease_until = now() where consumer = %s and lease is not null", consumer)
    core.configure("mixed", ordering="none")
    assert [r.why for r in core.settle(lane_id, "g", ids[2:3], [COMPLETED])] == [0]
    pops = claim_work(core, consumer, [10]) + claim_work(core, consumer, [10])
    assert [p[1] for p in pops] == [[1, 2], [4]]


def test_a_slow_consumer_at_the_front_does_not_make_others_slower(pg, database, core):
    """An acknowledgement reads some rows of queen.holds, however many leases have ended since the oldest one began."""
    lane, lane_id, consumer, ids = make_queue(core, "slow", 3)
    pops = claim_work(core, consumer, [1, 1, 1])
    st = core.state(consumer)
    core.rows("insert into queen.holds (consumer, first_seq, hold, ver, count, deliveries, retries, slot, at, until, lease)"
              " select %s, 3 + g, %s, v, 1, 1, 0, %s, now(), case when v = 1 then now() + interval '1 hour' end, gen_random_uuid()"
              "   from generate_series(1, 20000) g, generate_series(1, 2) v", consumer, st.ver, st.slot)
    conn = pg.connect(database=database)
    conn.autocommit = False
    other = Core(conn)
    other.settle(lane_id, "g", ids[1:2], lease=pops[1][0])
    read = other.one("select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))"
                     "  from pg_stat_xact_user_tables where relname in ('holds_a', 'holds_b')")
    conn.commit()
    conn.close()
    assert read < 2000, read
    assert core.state(consumer).cursor_seq == 0


@pytest.mark.parametrize("named", [True, False], ids=["with lease", "without"])
@pytest.mark.parametrize("options", [{"ordering": "none"}, {"ordering": "partition", "settlement": "message"}], ids=["none", "message"])
def test_a_repeated_acknowledgement_does_not_report_that_its_lease_has_ended(core, options, named):
    lane, lane_id, consumer, ids = make_queue(core, "repeated-%s-%d" % (options["ordering"], named), 2, **options)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [2])
    assert got == [1, 2]

    def settle(seq, status=COMPLETED):
        (row,) = core.settle(lane_id, "g", [ids[seq - 1]], [status], [lease if named else None])
        return row.why, row.released, bool(row.more)

    assert settle(1) == (0, False, False)
    assert settle(1) == (0, False, False), "message 2 is still leased"
    assert settle(2)[:2] == (0, True)
    assert settle(2)[:2] == (0, True)
    assert settle(1)[:2] == (0, True)
