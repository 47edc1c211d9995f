"""queen.settle against a model of semantics 9.1 to 9.3, with generated histories of pops, acks, expiries and renewals."""
import random
import re
import uuid

import pytest

import sqlcore
from sqlcore import Core, v7

COMPLETED, FAILED, DLQ, RETRY, UNKNOWN = range(5)


class Model:
    """One consumer group on one partition with messages 1..n, as the specification describes it."""

    def __init__(self, n, retry_limit):
        self.n, self.retry_limit = n, retry_limit
        self.cursor = self.retries = self.total = self.batches = 0
        self.lease, self.expired, self.leased, self.acked = None, False, range(0), set()
        self.settled, self.past = set(), None  # settled one by one, behind the cursor; the last lease that was settled whole
        self.dead = []

    def pop(self, batch, lease):
        """The messages delivered."""
        if self.lease and not self.expired:
            return []
        end = min([self.cursor + batch, self.n] + [s - 1 for s in self.settled])
        got = range(self.cursor + 1, end + 1)
        if got:
            self.lease, self.expired, self.leased, self.acked = lease, False, got, set()
        return list(got)

    def release(self):
        self.lease, self.leased, self.acked = None, range(0), set()

    def ack(self, entries):
        """entries: (seq or None, status, lease); (why, released, dead) of each."""
        active = None if self.expired else self.lease
        retry, before = self.retries < self.retry_limit, self.retries
        cursor, frozen, counts, end = self.cursor, False, False, None
        last, first = None, None  # a message named twice in a request counts once, by its first entry
        results = [None] * len(entries)
        order = sorted(range(len(entries)), key=lambda i: (entries[i][0] or 0, i))
        acked, leased = set(self.acked), self.leased if self.lease else range(0)
        for at, i in enumerate(order):
            seq, status, lease = entries[i]
            late = status == COMPLETED and lease == self.past and seq is not None and seq <= cursor
            if seq is None:
                results[i] = (1, False)
            elif lease is not None and lease != active and not late:
                results[i] = (2, False)
            elif status == UNKNOWN:
                results[i] = (3, False)
            elif seq == last:
                results[i] = first
            elif seq in acked if seq in leased else seq <= cursor or seq in self.settled:
                dead = any(seq == s for s, _ in self.dead)  # settled before
                last, first = seq, (0 if dead or status == COMPLETED else 6, dead)
                results[i] = first
            elif seq not in leased and (status in (FAILED, RETRY) or lease is not None):
                results[i] = (5, False)
            else:
                last, first = seq, (0, False)
                if status == RETRY or status == FAILED and retry:
                    if not frozen:
                        frozen, counts, end = True, status == FAILED, at
                elif status != COMPLETED or not frozen:
                    if status == COMPLETED:
                        self.cursor = max(self.cursor, seq)
                    else:
                        self.dead = [d for d in self.dead if d[0] != seq] + [(seq, before)]
                        first = (0, True)
                        self.settled.add(seq)
                    self.total += 1
                    if seq in leased:
                        self.acked.add(seq)
                        end = end if frozen else at
                results[i] = first
        while self.cursor + 1 in self.settled:
            self.cursor += 1
        self.settled = {s for s in self.settled if s > self.cursor}
        if self.cursor > cursor:
            self.retries = 0
        self.retries += counts
        whole = end is not None and not frozen and all(s in self.acked or s <= self.cursor for s in leased)
        if whole:
            self.retries, self.past = 0, self.lease
            self.batches += 1
        if frozen or whole:
            self.release()
        out = [None] * len(entries)
        for at, i in enumerate(order):
            why, dead = results[i]
            out[i] = (why, why == 0 and (active is None or self.lease is None and at >= end), dead)
        return out


@pytest.fixture(scope="module")
def core(pg):
    name = pg.create_database("settle_" + uuid.uuid4().hex[:8])
    conn = pg.connect(database=name)
    sqlcore.load(conn)
    yield Core(conn)
    conn.close()


def compare(core, model, consumer, lane, history):
    st = core.state(consumer)
    settled = {s for low, high in re.findall(r"\[(\d+),(\d+)\)", st.settled or "") for s in range(int(low), int(high))}
    assert settled == model.settled, history
    seen = (st.cursor_seq, st.retries, st.total_messages, st.total_batches, st.lease, st.batch_size, st.acked)
    want = (model.cursor, model.retries, model.total, model.batches, model.lease, len(model.leased), len(model.acked))
    assert seen == want, history
    dead = [(r.seq, r.retry_count) for r in core.rows(
        "select seq, retry_count from queen.dead_letter_queue where lane = %s order by seq, retry_count", lane)]
    assert dead == sorted(model.dead), history


@pytest.mark.parametrize("seed", range(300))
def test_a_generated_history(core, seed):
    rnd = random.Random(seed)
    queue, n, limit = "h%d" % seed, rnd.randint(1, 12), rnd.randint(0, 3)
    core.configure(queue, retryLimit=limit)
    (lane, lane_id), = core.lanes((queue, "p"))
    ids = [v7() if rnd.random() < 0.6 else "id-%d" % i for i in range(n)]
    cut = rnd.randint(1, n)
    core.push([(lane, part) for part in (ids[:cut], ids[cut:]) if part])
    consumer, = core.consumers("g", lane)
    model, history = Model(n, limit), ["%d messages, retry limit %d" % (n, limit)]
    for _ in range(14):
        step = rnd.random()
        if step < 0.4:
            lease, batch = uuid.UUID(int=rnd.getrandbits(128), version=4), rnd.randint(1, 6)
            rows, _ = core.claim([consumer], batch=batch, lease=lease)
            got = list(range(rows[0].start_seq, rows[0].start_seq + rows[0].take)) if rows[0].status == 0 else []
            history.append("pop %d: %s" % (batch, got))
            assert got == model.pop(batch, lease), history
        elif step < 0.5 and model.lease and not model.expired:
            core.rows("update queen.consumer_states set lease_until = now() where consumer = %s and lease is not null",
                      consumer)
            model.expired = True
            history.append("the lease runs out")
        elif step < 0.65 and model.lease and not model.expired:
            # The usual acknowledgement: all of the batch, in order, in the short form or the long one.
            batch, lease = list(model.leased), model.lease
            short = rnd.random() < 0.5
            history.append("complete %s" % batch)
            want = model.ack([(s, COMPLETED, lease) for s in batch])
            if short:
                rows = core.settle(lane_id, "g", [ids[s - 1] for s in batch], lease=lease)
            else:
                rows = core.settle(lane_id, "g", [ids[s - 1] for s in batch], [0] * len(batch), [lease] * len(batch))
            assert {r.why for r in rows} == {0}, history
            assert any(r.released for r in rows) == want[-1][1], history
        else:
            near = list(model.leased) or list(range(1, n + 1))
            entries = []
            for _ in range(rnd.randint(1, 8)):
                seq = rnd.choice(near) if rnd.random() < 0.85 else rnd.choice([None] + list(range(1, n + 1)))
                status = rnd.choices(range(5), (10, 4, 2, 1, 1))[0]
                lease = rnd.choices([model.lease, None, uuid.uuid4()], (8, 2, 1))[0]
                entries.append((seq, status, lease))
            history.append("ack %s" % entries)
            want = model.ack(entries)
            rows = core.settle(lane_id, "g", [ids[s - 1] if s else "ghost" for s, _, _ in entries],
                               [e[1] for e in entries], [e[2] for e in entries])
            got = [None] * len(entries)
            for r in rows:
                got[r.entry] = (r.why, r.released, r.dead)
            assert got == want, history
        compare(core, model, consumer, lane, history)


def test_a_group_without_state_succeeds_and_changes_nothing(core):
    core.configure("stateless")
    (lane, lane_id), = core.lanes(("stateless", "p"))
    core.push([(lane, ["a"])])
    rows = core.settle(lane_id, "nobody", ["a"], [0])
    assert [(r.why, r.released, r.queue_name) for r in rows] == [(0, None, "stateless")]
    assert core.one("select count(*) from queen.consumers where lane = %s", lane) == 0


def test_several_groups_in_one_call_are_distinguished(core):
    core.configure("several")
    lanes = core.lanes(("several", "a"), ("several", "b"))
    core.push([(n, ["x", "y"]) for n, _ in lanes])
    for n, _ in lanes:
        core.consumers("g", n)
    rows = core.rows(
        "select * from queen.settle(1, %s::uuid[], '{g,g}', %s::bytea[], '{f,f}', array[null,null]::uuid[], '{1,2,1}',"
        " '{0,2,0}', array[null,null,null]::uuid[], '{a,b,c}', null, null, null, false)", [lanes[1][1], lanes[0][1]],
        [sqlcore.key("x").bytes + sqlcore.key("y").bytes, sqlcore.key("x").bytes])
    assert sorted((r.grp, r.entry, r.why, r.dead, r.lane_name) for r in rows) == [
        (1, 0, 0, False, "b"), (1, 1, 0, False, "b"), (2, 0, 0, True, "a")]
    assert core.one("select error_message from queen.dead_letter_queue where lane = %s", lanes[0][0]) == "b"
