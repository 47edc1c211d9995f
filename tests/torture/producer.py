"""Pushes batches at a steady pace. A push of unknown outcome is repeated, with the same transaction ids, until it is known."""
import time

from actor import GIVE_UP, RUN, Actor, raw_id, uuid7
from history import OK, UNKNOWN, Push, key_of

REPEATED = 0.02  # of the known pushes are sent once more: they must be found to be there


class Producer(Actor):
    def __init__(self, name, queue, partitions, rate, plain_ids, **shared):
        super().__init__(name, **shared)
        self.queue, self.rate, self.plain_ids = queue, rate, plain_ids
        self.next = {p: 0 for p in partitions}  # partition -> number of its next message

    def work(self):
        due = time.monotonic()
        while self.phase == RUN:
            parts = self.compose()
            self.send_until_known(parts)
            if self.chance(REPEATED):
                self.send(parts)
            due = max(due + sum(len(items) for _, _, items in parts) / self.rate, time.monotonic() - 0.5)
            time.sleep(max(0.0, due - time.monotonic()))

    def compose(self):
        """[(partition, first number, items)] of one request."""
        size = self.random.choice((1, 2, 10, 50, 100, 200))
        chosen = self.random.sample(sorted(self.next), self.random.choice((1, 1, 2, 3)) if len(self.next) >= 3 else 1)
        parts = []
        for partition in chosen:
            first, count = self.next[partition], max(1, size // len(chosen))
            self.next[partition] += count
            parts.append((partition, first, [self.item(partition, n) for n in range(first, first + count)]))
        return parts

    def item(self, partition, n):
        txid = "%s/%d" % (self.name, n) if self.plain_ids else uuid7()
        return {"queue": self.queue, **self.place(partition), "payload": [self.name, n], "transactionId": txid}

    def place(self, partition):
        return {"partition": partition}

    def send_until_known(self, parts):
        while not self.send(parts) and self.phase < GIVE_UP:
            pass

    def send(self, parts):
        answer = self.call("POST", "/api/v1/push", {"items": [i for _, _, items in parts for i in items]})
        results = iter(answer.json) if answer is not None else None
        for partition, first, items in parts:
            outcome, stored, ids = UNKNOWN, "", None
            if results is not None:
                mine = [next(results) for _ in items]
                outcome, stored = OK, "buffered" if any(r["status"] == "buffered" for r in mine) else "queued"
                ids = [raw_id(r["messageId"]) for r in mine] if stored == "queued" else None
            self.history.add(Push("push", self.t0, self.t1, self.queue, partition, self.name, first, len(items), self.broker,
                                  outcome, stored, ids))
        return results is not None


class KeyProducer(Producer):
    """Names a partition by its key and priority."""

    def place(self, partition):
        key = key_of(partition)
        return {"concurrencyKey": key, **({"priority": int(partition[-1])} if key != partition else {})}
