"""Generated acknowledgement batches against a model of semantics 9.2 and 9.3 (DO).

The model is one (partition, group): a cursor, a lease with the messages delivered under it, and the retry counter. Where
the specification allows two values of the counter (was it reset by the part of a request before the failure, by a partial
batch?), the model keeps both and lets the next delivery's retryCount decide; everything else is exact.

`completed` is cumulative. `failed`, `retry` and `dlq` change the one message they name: dead letters are passed one by one.
Left out because the text admits several readings: failures of messages that a later cumulative ack has already passed.
"""
import random

import pytest

from harness import uuid7

CASES = 60  # per retry limit and acknowledging broker


class Model:
    def __init__(self, n, limit):
        self.n, self.limit = n, limit
        self.cursor = -1
        self.batch, self.acked = [], set()
        self.leased = False
        self.counters = {0}
        self.dead = []
        self.settled = set()  # one by one, behind the cursor

    def deliver(self, limit):
        """The messages that a pop must return now."""
        if self.leased:
            return []
        self.batch = list(range(self.cursor + 1, min([self.n, self.cursor + 1 + limit, *self.settled])))
        self.acked = set()
        self.leased = bool(self.batch)
        return self.batch

    def release(self):
        self.leased, self.batch, self.acked = False, [], set()

    def acknowledge(self, entries, saw_dead):
        """entries: (position, status), all valid, any order. saw_dead: positions the server reported dead, used only to
        choose between two counters that are both allowed. Returns the positions that must be reported dead."""
        before = self.cursor
        fails = [p for p, s in entries if s == "failed"]
        exhausted = {c >= self.limit for c in self.counters}
        if len(exhausted) == 2 and fails:
            choice = bool(set(fails) & saw_dead)
            self.counters = {c for c in self.counters if (c >= self.limit) == choice}
            exhausted = {choice}
        exhausted = exhausted.pop() if fails else False
        reported = set()
        stopped = None
        for position, status in sorted(entries):
            if status == "retry" or (status == "failed" and not exhausted):
                stopped = stopped or status
            elif status in ("failed", "dlq"):
                if position not in reported:
                    self.dead.append(position)
                reported.add(position)
                self.settled.add(position)
                self.acked.add(position)
            elif not stopped:
                self.cursor = max(self.cursor, position)
                self.acked.add(position)
        while self.cursor + 1 in self.settled:
            self.cursor += 1
        self.settled = {p for p in self.settled if p > self.cursor}
        moved = self.cursor > before
        if stopped:
            self.release()
            add = 1 if stopped == "failed" else 0
            self.counters = {c + add for c in self.counters} | ({add} if moved else set())
        elif all(p <= self.cursor or p in self.acked for p in self.batch):
            self.release()
            self.counters = {0}
        elif moved:
            self.counters = self.counters | {0}
        return reported


def statuses_for(rng, batch, exhausted_possible):
    """One status per message; nothing ambiguous behind the entry that stops the walk."""
    weights = rng.choice([{"completed": 6, "failed": 2, "retry": 1, "dlq": 1}, {"completed": 1}, {"failed": 1},
                          {"completed": 3, "failed": 1}, {"success": 2, "dlq": 1, "failed": 1}])
    out, stopped = [], False
    for position in batch:
        status = rng.choices(list(weights), list(weights.values()))[0]
        if stopped and status in ("dlq", "failed", "retry"):
            status = "completed" if status != "dlq" and stopped == "retry" else status
        if not stopped and (status == "retry" or (status == "failed" and not exhausted_possible)):
            stopped = status
        out.append((position, status))
    return out


def noise(rng, messages, wrong_lease):
    """Entries that must be rejected, each for itself: (entry, expected error or None for any text)."""
    out = []
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        m = rng.choice(messages)
        base = {"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": m["leaseId"]}
        out.append(rng.choice([
            ({**base, "transactionId": "ghost-%d" % rng.randrange(9)}, "Message not found"),
            ({**base, "partitionId": "no-uuid"}, "Message not found"),
            ({**base, "leaseId": wrong_lease, "status": "failed"}, "Invalid or expired lease"),
            ({**base, "status": "bogus"}, None)]))
    return out


def run_case(rng, popper, acker, sql, queue, partition, limit):
    n = rng.randint(1, 7)
    ids = [uuid7() if rng.random() < 0.5 else "m%d" % i for i in range(n)]
    rng.shuffle(ids)
    (first, *_) = popper.put(queue, list(range(n)), partition=partition, ids=ids)
    model, trail = Model(n, limit), []
    for _ in range(14):
        size = rng.choice([1, 2, 3, 100])
        messages = popper.take(queue, partition, batch=size)
        expected = model.deliver(size)
        assert [m["data"] for m in messages] == expected, trail
        if not messages:
            break
        assert {m["retryCount"] for m in messages} <= model.counters, (trail, model.counters)
        model.counters = {messages[0]["retryCount"]}
        steps = [statuses_for(rng, expected, messages[0]["retryCount"] >= limit)]
        if rng.random() < 0.4:
            # only completions, in any order, over several requests, some of them twice
            positions = expected[:]
            if rng.random() < 0.5:
                rng.shuffle(positions)
            steps, cut = [], rng.randint(1, len(positions))
            for part in (positions[:cut], positions[cut:]):
                if part:
                    steps.append([(p, "completed") for p in part] + [(part[0], "completed")] * rng.choice([0, 0, 1]))
            if positions == sorted(positions) and len(steps) == 2 and rng.random() < 0.5:
                steps.insert(1, [(p, "completed") for p in positions[:cut]])
        for step in steps:
            held = set(model.acked)
            if not model.leased:
                break
            entries = [(popper.ack_entry(messages[p - expected[0]], s, error="e%d" % p), p) for p, s in step]
            rejected = noise(rng, messages, uuid7())
            mixed = [(e, p, False) for e, p in entries] + [(e, err, True) for e, err in rejected]
            if rng.random() < 0.6:
                rng.shuffle(mixed)
            results = acker.ack_batch([e for e, _, _ in mixed])
            trail.append((expected, step, len(rejected), sorted(held)))
            saw = {p for (e, p, bad), r in zip(mixed, results) if not bad and r["dlq"]}
            must = model.acknowledge(step, saw)
            assert saw == must, trail
            for i, ((entry, known, bad), r) in enumerate(zip(mixed, results)):
                assert r["index"] == i and r["transactionId"] == entry["transactionId"]
                if bad:
                    assert r["success"] is False and r["dlq"] is False, trail
                    assert r["error"] == known if known else r["error"], trail
                else:
                    assert r["success"] is True and r["error"] is None, (trail, r)
            if all(s in ("completed", "success") for _, s in step) and not rejected:
                if model.leased:
                    assert [r["leaseReleased"] for r in results] == [False] * len(results), trail
                else:
                    assert any(r["leaseReleased"] for r in results), trail
    rows = sql("select m.payload, d.consumer_group from queen.dead_letter_queue d join queen.messages m "
               "on m.id = d.message_id and m.partition_id = d.partition_id where d.partition_id = %s", first["partition_id"])
    assert sorted(p for p, _ in rows) == sorted(model.dead), trail


@pytest.mark.parametrize("where", ["serving broker", "other broker"])
@pytest.mark.parametrize("limit", [0, 1, 2, 3])
def test_generated_batches_match_the_model(broker, broker2, sql, queue, limit, where):
    broker.configure(queue, retryLimit=limit)
    for case in range(CASES):
        rng = random.Random("%d-%d-%s" % (limit, case, where))
        run_case(rng, broker, broker if where == "serving broker" else broker2, sql, queue, "p%d" % case, limit)


@pytest.mark.parametrize("seed", range(12))
def test_no_message_is_ever_lost(broker, broker2, sql, queue, seed):
    """Any mixture, any broker, in random portions: a message ends completed by an entry of its own or of one behind it,
    or as a dead letter; one whose last word was failed or retry comes again."""
    rng = random.Random(seed)
    limit, n = rng.choice([0, 1, 3]), 30
    broker.configure(queue, retryLimit=limit)
    broker.put(queue, list(range(n)), partition="p")
    delivered, done, settled, furthest = {}, set(), set(), -1
    for _ in range(400):
        messages = (broker, broker2)[rng.randrange(2)].take(queue, "p", batch=rng.randint(1, 12))
        if not messages:
            break
        data = [m["data"] for m in messages]
        assert data == list(range(data[0], data[0] + len(data)))
        assert data[0] == furthest + 1, "a gap, or a message that was done comes again"
        assert not settled & set(data), "a dead letter comes again"
        for d in data:
            delivered[d] = delivered.get(d, 0) + 1
        statuses = [rng.choice(["completed"] * 5 + ["failed", "retry", "dlq"]) for _ in messages]
        entries = [broker.ack_entry(m, s) for m, s in zip(messages, statuses)]
        order = list(range(len(entries)))
        rng.shuffle(order)
        results = (broker, broker2)[rng.randrange(2)].ack_batch([entries[i] for i in order])
        assert all(r["success"] for r in results)
        dead = {data[i] for i, r in zip(order, results) if r["dlq"]}
        assert dead >= {d for d, s in zip(data, statuses) if s == "dlq"}
        # completions count up to the first retry, or the first failure that is not dead-lettered
        for d, status in zip(data, statuses):
            if status == "retry" or (status == "failed" and d not in dead):
                break
            furthest = d
        settled |= dead
        while furthest + 1 in settled:
            furthest += 1
        done |= dead | set(range(furthest + 1))
    assert done == set(range(n)), "lost or stuck: %s" % sorted(set(range(n)) - done)
    assert all(delivered[d] >= 1 for d in range(n))
