"""Everything at once for some seconds, queues that come and go among it: no request stays without its answer, and none is answered with 5xx.

ANSWERED_SECONDS (6) and ANSWERED_SEED make longer and other runs.
"""
import os
import random
import threading
import time

import harness
from harness import TIME_FACTOR, in_parallel

SECONDS = float(os.environ.get("ANSWERED_SECONDS", "6"))
SEED = int(os.environ.get("ANSWERED_SEED", "1"))
LATE = 3 * TIME_FACTOR  # beyond its own timeout
QUEUES, PARTITIONS, GROUPS = ["a", "b", "c"], ["Default", "p1", "p2"], [None, "g1", "g2"]


class Client:
    def __init__(self, broker, prefix, n, end):
        self.broker, self.prefix, self.rng, self.end = broker, prefix, random.Random(SEED * 1000 + n), end
        self.held, self.wrong, self.done = [], [], 0

    def queue(self):
        return self.prefix + self.rng.choice(QUEUES)

    def ask(self, method, path, body=None, limit=0.0):
        begin = time.monotonic()
        try:
            r = self.broker.request(method, path, body, timeout=limit + 10 * TIME_FACTOR)
        except OSError as e:
            self.wrong.append("%s %s: %r after %.1f s" % (method, path, e, time.monotonic() - begin))
            return None
        took = time.monotonic() - begin
        if took > limit + LATE or r.status >= 500:
            self.wrong.append("%s %s: %d after %.1f s %s" % (method, path, r.status, took, r.body[:200]))
        self.done += 1
        return r

    # ---- what a client may do ----

    def push(self):
        self.ask("POST", "/api/v1/push", {"items": [{"queue": self.queue(), "partition": self.rng.choice(PARTITIONS), "payload": i}
                                                    for i in range(self.rng.choice([1, 1, 3]))]})

    def pop(self):
        rng, timeout = self.rng, self.rng.choice([50, 300, 900])
        path = rng.choice(["/api/v1/pop/queue/%s" % self.queue(), "/api/v1/pop/queue/%s/partition/%s" % (self.queue(), rng.choice(PARTITIONS)),
                           "/api/v1/pop/queue/%s/partition/%s" % (self.queue(), rng.choice(PARTITIONS)), "/api/v1/pop?namespace=%sns" % self.prefix])
        group = rng.choice(GROUPS)
        options = ["batch=%d" % rng.choice([1, 5])] + (["consumerGroup=" + group] if group else []) + rng.choice([[], ["autoAck=true"]])
        wait = rng.random() < 0.8
        if wait:
            options += ["wait=true", "timeout=%d" % timeout]
        r = self.ask("GET", path + ("&" if "?" in path else "?") + "&".join(options), limit=timeout / 1000 if wait else 0)
        if r is not None and r.status == 200 and "autoAck=true" not in options:
            self.held += [(group, m) for m in r.json["messages"]]

    def ack(self):
        some, self.held = self.held[:5], self.held[5:]
        for group, m in some:
            self.ask("POST", "/api/v1/ack", {"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": m.get("leaseId"),
                                             "status": self.rng.choice(["completed", "completed", "failed", "retry"]), "consumerGroup": group})

    def leave(self):
        self.held = []  # the leases end by themselves, after a second

    def configure(self):
        self.ask("POST", "/api/v1/configure", {"queue": self.queue(), "namespace": self.prefix + "ns", "options": {
            "leaseTime": 1, "retryLimit": 2, "delayedProcessing": self.rng.choice([0, 0, 1]), "windowBuffer": self.rng.choice([0, 0, 1]),
            "retryPolicy": self.rng.choice([{"mode": "inline"}, {"mode": "scheduled", "strategy": "fixed", "base": 1, "floor": 1, "cap": 1}])}})

    def delete_queue(self):
        self.ask("DELETE", "/api/v1/resources/queues/" + self.queue())

    def delete_group(self):
        self.ask("DELETE", "/api/v1/consumer-groups/%s" % self.rng.choice(GROUPS[1:]))

    def seek(self):
        self.ask("POST", "/api/v1/consumer-groups/%s/queues/%s/seek" % (self.rng.choice(GROUPS[1:]), self.queue()),
                 self.rng.choice([{"toEnd": True}, {"timestamp": "2020-01-01T00:00:00Z"}]))

    def transact(self):
        operations = [{"type": "push", "items": [{"queue": self.queue(), "partition": self.rng.choice(PARTITIONS), "payload": 1}]}]
        if self.held:
            group, m = self.held.pop()
            operations.append({"type": "ack", "transactionId": m["transactionId"], "partitionId": m["partitionId"], "status": "completed",
                               "consumerGroup": group or "__QUEUE_MODE__"})
        self.ask("POST", "/api/v1/transaction", {"operations": operations, "requiredLeases": []})

    def push_later(self):
        self.ask("POST", "/api/v1/push", {"items": [{"queue": self.queue(), "payload": 1, "delaySeconds": self.rng.choice([1, 60])},
                                                    {"queue": self.queue(), "payload": 2}]})

    def extend(self):
        if self.held:
            self.ask("POST", "/api/v1/lease/%s/extend" % self.held[0][1].get("leaseId"), {"seconds": 2})

    def look(self):
        self.ask("GET", self.rng.choice(["/api/v1/status", "/api/v1/resources/queues", "/api/v1/resources/queues/" + self.queue(), "/api/v1/dlq",
                                         "/api/v1/messages?queue=%s&limit=5" % self.queue(), "/api/v1/consumer-groups", "/api/v1/scheduled?limit=5",
                                         "/api/v1/status/queues/" + self.queue(), "/api/v1/resources/partitions?limit=20"]))

    def run(self):
        acts = [self.push] * 8 + [self.pop] * 12 + [self.ack] * 6 + [self.leave, self.configure, self.seek, self.transact, self.push_later,
                                                                     self.extend, self.look]
        acts += [self.delete_queue, self.delete_group] if self.rng.random() < 0.5 else []
        while time.monotonic() < self.end:
            self.rng.choice(acts)()
        return self


def test_no_request_is_forgotten(broker, queue):
    end = time.monotonic() + SECONDS
    clients = in_parallel([Client(broker, queue + "-", n, end).run for n in range(24)], timeout=SECONDS + 60 * TIME_FACTOR)
    wrong = [w for c in clients for w in c.wrong]
    assert not wrong, "%d of %d:\n%s" % (len(wrong), sum(c.done for c in clients), "\n".join(wrong[:20]))
    print("%d answers" % sum(c.done for c in clients))
