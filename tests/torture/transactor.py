"""Consumes by transactions: the acknowledgement of a delivery and the messages made from it, together or not at all."""
from consumer import Consumer
from history import OK, REJECTED, UNKNOWN, Txn


class Transactor(Consumer):
    """Each message makes one in every queue of `makes`. An attempt has its own transaction ids; nothing is repeated."""

    def __init__(self, *args, makes, **kw):
        super().__init__(*args, **kw)
        self.makes = makes
        self.made = 0

    def pop(self, ending=False, **_):
        return super().pop(ending, batch=self.random.choice((1, 5, 20, 100)), partitions=1)

    def treat(self, deliveries):
        if self.chance(self.manners.silence):
            return
        event, messages = deliveries[0]
        acks = [{"type": "ack", "transactionId": m["transactionId"], "partitionId": m["partitionId"],
                 "consumerGroup": self.group, "leaseId": event.lease, "status": "completed"} for m in messages]
        items, made = [], []
        for _ in messages:
            for queue in self.makes:
                items.append({"queue": queue, "partition": event.partition, "payload": [self.name, self.made],
                              "transactionId": "%s/%d" % (self.name, self.made)})
                made.append((queue, event.partition, self.name, self.made))
            self.made += 1
        answer = self.call("POST", "/api/v1/transaction", {"operations": acks + [{"type": "push", "items": items}]})
        outcome = UNKNOWN if answer is None else OK if answer.json["success"] else REJECTED
        self.history.add(Txn("txn", self.t0, self.t1, self.queue, event.partition, self.group, event.lease,
                             [m[2] for m in event.messages], made, outcome))
