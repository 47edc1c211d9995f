"""Consumes from a work queue: settles each message on its own, in any order, gives back, extends single messages, or does nothing."""
import itertools

from actor import GIVE_UP, raw_id
from consumer import Consumer
from history import OK, REJECTED, UNKNOWN, Renew, Settle, Take

# The outcomes of a message: (status, retryAfter in seconds, how often); the rest is left alone until its lease expires.
FATES = (("completed", 0, 0.78), ("failed", 0, 0.08), ("retry", 0, 0.05), ("retry", 1, 0.05), ("silence", 0, 0.04))


class Worker(Consumer):
    def pop(self, ending=False):
        return super().pop(ending, batch=self.random.choice((1, 5, 20, 60)), partitions=1)

    def note_deliveries(self, body):
        deliveries = []
        for partition, messages in itertools.groupby(body["messages"], key=lambda m: m["partition"]):
            messages = list(messages)
            event = Take("take", self.t0, self.t1, self.queue, partition, self.group, self.broker, body["leaseId"],
                         [(m["data"][0], m["data"][1], raw_id(m["id"])) for m in messages])
            self.history.add(event)
            deliveries.append((event, messages))
        return deliveries

    def treat(self, deliveries):
        names, _, weights = zip(*[((s, d), d, w) for s, d, w in FATES])
        for event, messages in deliveries:
            if self.chance(self.manners.renew):
                self.renew(event.lease)
            if self.chance(self.manners.renew):
                self.extend_one(event, self.random.choice(messages))
            fates = [(m, *(("completed", 0) if not self.manners.fail else self.random.choices(names, weights)[0])) for m in messages]
            fates = [f for f in fates if f[1] != "silence"]
            self.random.shuffle(fates)
            while fates:
                size = self.random.choice((1, 3, len(fates)))
                some, fates = fates[:size], fates[size:]
                while not self.settle(event, some):
                    if self.t1 > event.t0 + 2 * self.lease_seconds + 1 or self.phase >= GIVE_UP:
                        return

    def extend_one(self, event, message):
        seconds = self.lease_seconds + 1
        answer = self.call("POST", "/api/v1/lease/%s/extend" % event.lease, {"seconds": seconds, "transactionId": message["transactionId"]})
        self.history.add(Renew("renew", self.t0, self.t1, (event.lease, raw_id(message["id"])), seconds, UNKNOWN if answer is None else OK))

    def settle(self, event, fates):
        entries = [{"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": event.lease, "status": status,
                    **({"retryAfter": delay} if delay else {})} for m, status, delay in fates]
        answer = self.call("POST", "/api/v1/ack/batch", {"consumerGroup": self.group, "acknowledgments": entries})
        outcomes = [UNKNOWN] * len(fates) if answer is None else [OK if r["success"] else REJECTED for r in answer.json]
        self.history.add(Settle("settle", self.t0, self.t1, self.queue, event.partition, self.group, event.lease,
                                [(raw_id(m["id"]), status, delay, outcome) for (m, status, delay), outcome in zip(fates, outcomes)]))
        return answer is not None
