"""settlement "message" on ordered partitions, through SQL: generated histories against a naive partition, and single cases."""
import os
import random
import uuid

import pytest

import sqlcore
from sqlcore import Core, v7
from test_sql_work import COMPLETED, DLQ, FAILED, RETRY, claim_work

SEEDS = int(os.environ.get("QUEEN_MODEL_SEEDS", "40"))
FIRST_SEED = int(os.environ.get("QUEEN_MODEL_FIRST_SEED", "0"))


@pytest.fixture(scope="module")
def core(pg):
    conn = pg.connect(database=pg.create_database("settlement_" + uuid.uuid4().hex[:8]))
    sqlcore.load(conn)
    yield Core(conn)
    conn.close()


class Part:
    def __init__(self, core, queue, n, **options):
        self.core, self.ids = core, []
        core.configure(queue, settlement="message", **options)
        (self.lane, self.lane_id), = core.lanes((queue, "p"))
        self.push(n)
        self.consumer, = core.consumers("g", self.lane)

    def push(self, n):
        new = [v7() for _ in range(n)]
        self.core.push([(self.lane, new)])
        self.ids += new

    def pop(self, *batches, auto=None):
        return claim_work(self.core, self.consumer, list(batches), auto)

    def settle(self, seqs, status=COMPLETED, lease=None, after=None):
        rows = self.core.settle(self.lane_id, "g", [self.ids[s - 1] for s in seqs], [status] * len(seqs), [lease] * len(seqs),
                                after=[after] * len(seqs))
        self.freed = any(r.released and r.more for r in rows)
        return [r.why for r in rows]

    def expire(self):
        self.core.rows("update queen.holds set until = now() where consumer = %s and lease is not null and until > now()", self.consumer)

    @property
    def cursor(self):
        return self.core.state(self.consumer).cursor_seq


def test_the_careful_claim_sends_the_broker_to_the_other_one(core):
    part = Part(core, "route", 2)
    rows, _ = core.claim([part.consumer])
    assert [r.status for r in rows] == [8]


def test_a_message_is_completed_alone_and_the_cursor_waits(core):
    part = Part(core, "alone", 6)
    (lease, got, _, _, _, _), = part.pop(4)
    assert got == [1, 2, 3, 4]
    assert part.settle([3], lease=lease) == [0]
    assert part.cursor == 0, "a batch would be acknowledged up to 3"
    assert part.settle([1], lease=lease) == [0] and part.cursor == 1
    assert part.settle([4], lease=lease) == [0] and not part.freed
    (_, got, _, status, wait, _), = part.pop(1)
    assert (got, status) == ([], 2) and wait > 0, "one lease at a time"
    assert part.settle([2], lease=lease) == [0] and part.freed
    assert part.cursor == 4
    assert [p[1] for p in part.pop(5)] == [[5, 6]]


def test_one_pop_at_a_time(core):
    part = Part(core, "one", 5)
    pops = part.pop(2, 2, 1)
    assert [(p[1], p[3]) for p in pops] == [([1, 2], 0), ([], 2), ([], 2)]
    other = Part(core, "auto", 5)
    assert [(p[1], p[3]) for p in other.pop(2, 2, auto=[True, False])] == [([1, 2], 0), ([], 6)]
    assert [p[1] for p in other.pop(2)] == [[3, 4]]


def test_what_is_not_settled_is_delivered_again_in_order_before_newer_messages(core):
    part = Part(core, "again", 8, retryLimit=5)
    (lease, _, _, _, _, _), = part.pop(6)
    assert part.settle([4], FAILED, lease) == [0] and part.settle([2], RETRY, lease) == [0] and part.settle([1, 5], lease=lease) == [0, 0]
    assert [(p[1], p[3]) for p in part.pop(9)] == [([], 2)], "not before the lease has ended"
    part.expire()
    (_, got, retries, _, _, _), = part.pop(5)
    assert (got, retries) == ([2, 3, 4, 6, 7], [0, 0, 1, 0, 0])


def test_a_delayed_message_stops_its_partition(core):
    part = Part(core, "delayed", 5)
    (lease, _, _, _, _, _), = part.pop(3)
    assert part.settle([1, 3], RETRY, lease) == [0, 0] and part.settle([2], RETRY, lease, after=600) == [0]
    (lease, got, _, _, _, _), = part.pop(5)
    assert got == [1]
    assert part.settle([1], lease=lease) == [0]
    (_, got, _, status, wait, _), = part.pop(5)
    assert (got, status) == ([], 4) and 0 < wait <= 600_000_000
    core.rows("update queen.holds set until = now() where consumer = %s and until > now()", part.consumer)
    assert [p[1] for p in part.pop(5)] == [[2, 3, 4, 5]]


def test_each_message_has_its_own_failures(core):
    part = Part(core, "failures", 3, retryLimit=1)
    (lease, _, _, _, _, _), = part.pop(2)
    assert part.settle([1], FAILED, lease) == [0] and part.settle([2], lease=lease) == [0]
    (lease, got, retries, _, _, _), = part.pop(3)
    assert (got, retries) == ([1, 3], [1, 0])
    assert part.settle([1, 3], FAILED, lease) == [0, 0]
    (_, got, retries, _, _, _), = part.pop(3)
    assert (got, retries) == ([3], [1]), "message 1 has failed too often, message 3 once"
    assert [r.seq for r in core.rows("select seq from queen.dead_letter_queue where lane = %s", part.lane)] == [1]


def test_an_auto_ack_pop_reports_that_more_was_given_back(core):
    part = Part(core, "more", 4)
    (lease, _, _, _, _, _), = part.pop(3)
    assert part.settle([1, 2, 3], RETRY, lease) == [0] * 3
    rows = core.rows("select * from queen.claim_work(%s, '{2}', '{t}', array[gen_random_uuid()], '{0}', '{f}')", [part.consumer])
    assert [(r.start_seq, r.take, r.more) for r in rows if r.status is not None] == [(1, 2, True)]


@pytest.mark.parametrize("bad", [1, 2, 4])
@pytest.mark.parametrize("limit", [2, 5])
def test_only_the_message_that_crashes_its_consumer_becomes_a_dead_letter(core, limit, bad):
    part = Part(core, "crash%d%d" % (limit, bad), 4, maxDeliveries=limit)
    delivered = []
    for _ in range(40):
        (lease, got, _, _, _, _), = part.pop(3)
        delivered += [got] if bad in got else []
        if not got:
            break
        assert got == list(range(got[0], got[0] + len(got)))
        if bad in got:
            part.expire()
        else:
            assert part.settle(got, lease=lease) == [0] * len(got)
    assert [r.seq for r in core.rows("select seq from queen.dead_letter_queue where lane = %s", part.lane)] == [bad]
    assert len(delivered) == limit and delivered[-1] == [bad]
    assert part.cursor == 4


def test_the_option_changes_while_the_queue_is_in_use(core):
    core.configure("change")
    (lane, lane_id), = core.lanes(("change", "p"))
    core.push([(lane, [v7() for _ in range(6)])])
    consumer, = core.consumers("g", lane)
    rows, old = core.claim([consumer], batch=2)
    core.configure("change", settlement="message")
    assert [p[3] for p in claim_work(core, consumer, [1])] == [2]
    core.rows("update queen.consumer_states set lease_until = now() where consumer = %s and lease is not null", consumer)
    (lease, got, _, _, _, _), = claim_work(core, consumer, [4])
    assert got == [1, 2, 3, 4]
    core.configure("change", settlement="batch")
    assert [p[3] for p in claim_work(core, consumer, [1])] == [2]
    core.rows("update queen.holds set until = now() where consumer = %s and until > now()", consumer)
    assert [p[3] for p in claim_work(core, consumer, [1])] == [7]
    rows, _ = core.claim([consumer], batch=9)
    assert {r.status for r in rows} == {0} and core.state(consumer).taken_seq is None


def test_streams_and_processors_are_refused(core):
    Part(core, "stream", 1)
    with pytest.raises(Exception, match='settlement "message"'):
        core.rows("select * from queen.stream_register(%s::jsonb)", '{"body": {"name": "q", "source_queue": "stream", "config_hash": "h"}}')
    core.configure("owned", settlement="message", partitions=2)
    with pytest.raises(Exception, match='settlement "message"'):
        core.rows("select queen.claim_owners(%s::jsonb)",
                  '{"group": "g", "queue": "owned", "body": {"owner": "me", "partitions": [{"partition": "0", "epoch": 0}]}}')


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_a_generated_history(core, seed):
    """A naive partition: messages are open, delayed or settled; a pop takes the first ones that are open, up to a delayed one."""
    rnd = random.Random(seed)
    limit, most = rnd.choice((0, 1, 3)), rnd.choice((0, 2, 5))
    history = ["retryLimit %d, maxDeliveries %d" % (limit, most)]
    part = Part(core, "m%d" % seed, rnd.randint(1, 12), retryLimit=limit, maxDeliveries=most)
    settled, delayed, dead, failed, tries = set(), set(), set(), {}, {}
    lease, held = None, set()

    def check(ok, *more):
        if not ok:
            pytest.fail("\n".join(history + [str(m) for m in more]))

    def pop():
        nonlocal lease, held
        want = [rnd.choice((1, 2, 5, 300)) for _ in range(rnd.randint(1, 3))]
        pops = part.pop(*want)
        history.append("pop %s: %s" % (want, [(p[1], p[3]) for p in pops]))
        expected = []
        if not held:
            for s in range(1, len(part.ids) + 1):
                if s in delayed or len(expected) == want[0]:
                    break
                if s not in settled and most and tries.get(s, 0) >= most:
                    settled.add(s)
                    dead.add(s)
                elif s not in settled:
                    suspect = most > 1 and tries.get(s, 0) >= (most + 1) // 2  # it may crash its consumer: delivered alone
                    if not (suspect and expected):
                        expected.append(s)
                    if suspect:
                        break
        check(pops[0][1] == expected, "expected %s" % expected)
        check(all(p[1] == [] for p in pops[1:]))
        check(pops[0][2] == [failed.get(s, 0) for s in expected], "failures %s" % failed)
        if expected:
            lease, held = pops[0][0], set(expected)
            for s in expected:
                tries[s] = tries.get(s, 0) + 1

    def settle():
        some = rnd.sample(sorted(held), rnd.randint(1, len(held)))
        status, after = rnd.choice((COMPLETED, COMPLETED, FAILED, DLQ, RETRY)), None
        if status == RETRY and rnd.random() < 0.4:
            after = 600
        why = part.settle(some, status, lease if rnd.random() < 0.8 else None, after)
        history.append("settle %s as %d, after %s: %s" % (some, status, after, why))
        check(set(why) == {0})
        for s in some:
            held.discard(s)
            if status == RETRY and after:
                delayed.add(s)
            elif status == FAILED and failed.get(s, 0) < limit:
                failed[s] = failed.get(s, 0) + 1
            elif status != RETRY:
                settled.add(s)
                dead.update([s] if status != COMPLETED else [])
            tries[s] -= 1  # only a delivery that ends without an acknowledgement counts
        check(part.freed == (not held))

    for _ in range(50):
        what = rnd.random()
        if what < 0.4:
            pop()
        elif what < 0.75 and held:
            settle()
        elif what < 0.8 and held:
            history.append("expire")
            part.expire()
            held = set()
        elif what < 0.85:
            history.append("delays end")
            core.rows("update queen.holds set until = now() where consumer = %s and lease is null and until > now()", part.consumer)
            delayed.clear()
        elif what < 0.93:
            part.push(rnd.randint(1, 6))
        else:
            history.append("rotate: %s" % [core.one("select queen.rotate(0, 0)") for _ in range(rnd.randint(1, 4))])
        if core.state(part.consumer).taken_seq is not None:
            lowest = min((s for s in range(1, len(part.ids) + 1) if s not in settled), default=len(part.ids) + 1)
            check(part.cursor == min(lowest - 1, core.state(part.consumer).taken_seq), core.state(part.consumer))
    buried = core.rows("select seq from queen.dead_letter_queue where lane = %s and consumer_group = 'g'", part.lane)
    check({r.seq for r in buried} == dead, dead)
