"""Consumes from a queue whose failures are retried later, and fails many of its messages."""
import itertools

from consumer import Consumer
from history import OK, REJECTED, UNKNOWN, Try, Verdict

FAILING = 0.15  # of the messages


class Patient(Consumer):
    def note_deliveries(self, body):
        # A retry comes with the name of its partition and the id of a lane of its own.
        deliveries = []
        for _, messages in itertools.groupby(body["messages"], key=lambda m: m["partitionId"]):
            messages = list(messages)
            event = Try("try", self.t0, self.t1, self.queue, messages[0]["partition"], self.group, self.broker, body["leaseId"],
                        [(m["data"][0], m["data"][1], m.get("attempt", 1)) for m in messages])
            self.history.add(event)
            deliveries.append((event, messages))
        return deliveries

    def treat(self, deliveries):
        if self.chance(self.manners.silence):
            return
        failing = FAILING if self.manners.fail else 0.0
        fails = [[self.chance(failing) for _ in messages] for _, messages in deliveries]
        while not self.judge(deliveries, fails):
            if self.t1 > deliveries[0][0].t0 + self.lease_seconds + 1:
                return

    def judge(self, deliveries, fails):
        entries = [{"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": event.lease,
                    "status": "failed" if bad else "completed"}
                   for (event, messages), marks in zip(deliveries, fails) for m, bad in zip(messages, marks)]
        answer = self.call("POST", "/api/v1/ack/batch", {"consumerGroup": self.group, "acknowledgments": entries})
        results = iter(answer.json) if answer is not None else None
        for (event, messages), marks in zip(deliveries, fails):
            mine = [next(results) for _ in messages] if results is not None else [{"dlq": False}] * len(messages)
            outcome = UNKNOWN if results is None else OK if all(r["success"] for r in mine) else REJECTED
            self.history.add(Verdict("verdict", self.t0, self.t1, self.queue, event.partition, self.group, event.lease,
                                     [m + (bad, r["dlq"]) for m, bad, r in zip(event.messages, marks, mine)], outcome))
        return results is not None
