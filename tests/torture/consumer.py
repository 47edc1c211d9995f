"""Pops, and acknowledges in every possible way, or not at all."""
import collections
import itertools
import time
from urllib.parse import urlencode

from actor import DRAIN, GIVE_UP, Actor, raw_id
from history import OK, REJECTED, UNKNOWN, Ack, LostPop, Pop, Renew

# How often a delivery is treated so: the rest is completed at once.  fail: one message failed, in the middle of completed ones.
# silence: the lease runs out.  halves: two requests.  renew: the lease is extended first.
Manners = collections.namedtuple("Manners", "fail silence halves renew", defaults=(0.0, 0.0, 0.0, 0.0))
GOOD = Manners()
STEADY = Manners(halves=0.1, renew=0.02)
FLAKY = Manners(fail=0.08, silence=0.03, halves=0.1)


class Consumer(Actor):
    """ends_in: the phase in which it ends when nothing is left."""

    def __init__(self, name, queue, partitions, group, lease_seconds, manners=STEADY, auto=False, ends_in=DRAIN, **shared):
        super().__init__(name, **shared)
        self.queue, self.partitions, self.group = queue, sorted(partitions), group
        self.lease_seconds, self.auto, self.ends_in = lease_seconds, auto, ends_in
        self.rude, self.manners = manners, manners

    def work(self):
        empty = 0
        while empty < 2 and self.phase < GIVE_UP:
            ending = self.phase >= self.ends_in
            self.manners = GOOD if ending else self.rude
            deliveries = self.pop(ending)
            # Leases that a consumer let expire end within the time that the last pops wait.
            empty = empty + 1 if ending and deliveries == [] else 0
            if deliveries:
                self.treat(deliveries)

    def pop(self, ending=False, batch=None, partitions=None):
        """Deliveries, one per partition; [] for nothing, None for no answer."""
        wait_ms = int(self.lease_seconds * 1000) + 1500 if ending else self.random.choice((0, 0, 500, 2000))
        path = "/api/v1/pop/queue/" + self.queue
        query = {"batch": batch or self.random.choice((1, 10, 100, 400)), "consumerGroup": self.group,
                 "wait": "true" if wait_ms else "false", "timeout": wait_ms, "autoAck": "true" if self.auto else "false"}
        if not ending and self.chance(0.25):
            path += "/partition/" + self.random.choice(self.partitions)
        else:
            query["partitions"] = partitions or self.random.choice((1, 2, 8))
        answer = self.call("GET", path + "?" + urlencode(query), patience=wait_ms / 1000)
        if answer is None:
            self.history.add(LostPop("lostpop", self.t0, self.t1, self.queue, self.group, self.broker, self.auto, query["batch"]))
            return None
        if answer.status == 204:
            if not wait_ms:
                time.sleep(0.02)
            return []
        return self.note_deliveries(answer.json)

    def note_deliveries(self, body):
        deliveries = []
        for partition, messages in itertools.groupby(body["messages"], key=lambda m: m["partition"]):
            messages = list(messages)
            event = Pop("pop", self.t0, self.t1, self.queue, partition, self.group, self.broker, body["leaseId"], self.auto,
                        [(m["data"][0], m["data"][1], raw_id(m["id"])) for m in messages])
            self.history.add(event)
            deliveries.append((event, messages))
        return deliveries

    def treat(self, deliveries):
        if self.auto or self.chance(self.manners.silence):
            return
        if self.chance(self.manners.renew):
            self.renew(deliveries[0][0].lease)
        if self.chance(self.manners.fail):
            self.acknowledge(deliveries, failing=True)
        elif self.chance(self.manners.halves):
            self.acknowledge([(e, messages, 0, (len(messages) + 1) // 2) for e, messages in deliveries])
            self.acknowledge([(e, messages, (len(messages) + 1) // 2, len(messages)) for e, messages in deliveries])
        else:
            self.acknowledge(deliveries)

    def renew(self, lease):
        seconds = self.lease_seconds + 1
        answer = self.call("POST", "/api/v1/lease/%s/extend" % lease, {"seconds": seconds})
        self.history.add(Renew("renew", self.t0, self.t1, lease, seconds, UNKNOWN if answer is None else OK))

    def acknowledge(self, deliveries, failing=False):
        """deliveries: (event, messages) or (event, messages, from, to).  Tried again while the lease may live."""
        parts = []
        for event, messages, *span in deliveries:
            low, high = span or (0, len(messages))
            if low < high:
                fails = self.random.randrange(low, high) if failing else None
                parts.append((event, messages, low, high, fails))
        while parts and not self.send(parts):
            if self.t1 > parts[0][0].t0 + self.lease_seconds + 1 or self.phase >= GIVE_UP:
                return

    def send(self, parts):
        entries = [{"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": event.lease,
                    "status": "failed" if i == fails else "completed"}
                   for event, messages, low, high, fails in parts for i, m in enumerate(messages) if low <= i < high]
        answer = self.call("POST", "/api/v1/ack/batch", {"consumerGroup": self.group, "acknowledgments": entries})
        results = iter(answer.json) if answer is not None else None
        for event, messages, low, high, fails in parts:
            mine = [next(results) for _ in range(low, high)] if results is not None else None
            through, outcome = self.effect(low, high, fails, mine)
            self.history.add(Ack("ack", self.t0, self.t1, self.queue, event.partition, self.group, event.lease,
                                 None if through is None else event.messages[through][2],
                                 fails is not None or high == len(messages), outcome))
        return results is not None

    @staticmethod
    def effect(low, high, fails, results):
        """How far the group has come by these results, as an index of the delivery or None; and the outcome."""
        if results is None:
            return high - 1, UNKNOWN
        if not all(r["success"] for r in results):
            return high - 1, REJECTED
        if fails is None or results[fails - low]["dlq"]:
            return high - 1, OK
        return (fails - 1 if fails > low else None), OK  # what follows a failure comes again
