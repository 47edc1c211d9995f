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

    def acts(self):
        acts = [self.push] * 8 + [self.pop] * 12 + [self.ack] * 6 + [self.leave, self.configure, self.seek, self.transact, self.push_later,
                                                                     self.extend, self.look]
        return acts + ([self.delete_queue, self.delete_group] if self.rng.random() < 0.5 else [])

    def run(self):
        acts = self.acts()
        while time.monotonic() < self.end:
            self.rng.choice(acts)()
        return self


class Operator(Client):
    """Beside messages, rarer requests: owners, streams, dead letters, schedules, single messages."""
    query, schedules = None, ()

    def message(self, of):
        """A path of some message: one that is held, or one from a list."""
        if self.held and self.rng.random() < 0.5:
            m = self.held[-1][1]
        else:
            r = self.ask("GET", "/api/v1/messages?queue=%s&limit=5" % self.queue())
            m = r is not None and r.status == 200 and r.json["messages"] and self.rng.choice(r.json["messages"])
        return m and "/api/v1/%s/%s/%s" % (of, m["partitionId"], m["transactionId"])

    def one_message(self):
        path = self.message("messages")
        if path:
            method, more = self.rng.choice([("GET", ""), ("DELETE", ""), ("POST", "/retry"), ("POST", "/dlq")])
            self.ask(method, path + more, {} if method == "POST" else None)

    def trace(self):
        path = self.message("traces")
        if path:
            partition, transaction = path.split("/")[-2:]
            self.ask("POST", "/api/v1/traces", {"partitionId": partition, "transactionId": transaction, "traceNames": ["t"], "data": {"text": "x"}})
            self.ask("GET", self.rng.choice([path, "/api/v1/traces/names", "/api/v1/traces/by-name/t"]))

    def redrive(self):
        self.ask("POST", "/api/v1/dlq/redrive", {"queue": self.queue(), **self.rng.choice([{}, {"targetQueue": self.queue()}, {"ratePerSecond": 100}])})

    def owners(self):
        queue, group, rng = self.prefix + "owned", self.rng.choice(GROUPS[1:]), self.rng
        path = "/api/v1/consumer-groups/%s/queues/%s/owners" % (group, queue)
        self.ask("POST", "/api/v1/push", {"items": [{"queue": queue, "partitionKey": "k%d" % rng.randrange(9), "payload": 1} for _ in range(3)]})
        r = self.ask("GET", path)
        if r is None or r.status != 200 or not r.json["owners"] or rng.random() < 0.05:
            if rng.random() < 0.3:
                self.ask("DELETE", "/api/v1/resources/queues/" + queue)
            self.ask("POST", "/api/v1/configure", {"queue": queue, "options": {"partitions": 4, "leaseTime": 1}})
            return
        owner, one = "o%d" % rng.randrange(3), rng.choice(r.json["owners"])
        body = {"owner": owner, "partitions": [{"partition": one["partition"], "epoch": one.get("epoch") or 0}]}
        claimed = self.ask("POST", path + "/claim", {**body, "steal": rng.random() < 0.3})
        if claimed is None or claimed.status != 200 or claimed.json["results"][0].get("epoch") is None:
            return
        body["partitions"][0]["epoch"] = epoch = claimed.json["results"][0]["epoch"]
        timeout = rng.choice([50, 300])
        r = self.ask("GET", "/api/v1/pop/queue/%s/partition/%s?consumerGroup=%s&wait=true&timeout=%d&owner=%s&epoch=%d" % (
            queue, one["partition"], group, timeout, owner, epoch), limit=timeout / 1000)
        if r is not None and r.status == 200:
            self.held += [(group, m) for m in r.json["messages"]]
        self.ask("POST", path + "/" + rng.choice(["renew", "release", "ask"]), body)

    def stream(self):
        if not self.query or self.rng.random() < 0.1:
            r = self.ask("POST", "/streams/v1/queries", {"name": self.prefix + "query", "source_queue": self.prefix + "a", "sink_queue": self.prefix + "b",
                                                         "config_hash": "1"})
            self.query = r is not None and r.status == 200 and r.json["query_id"]
        if self.query and self.held:
            group, m = self.held.pop()
            self.ask("POST", "/streams/v1/cycle", {
                "query_id": self.query, "partition_id": m["partitionId"], "consumer_group": group or "__QUEUE_MODE__",
                "state_ops": [{"type": "upsert", "key": "k%d" % self.rng.randrange(3), "value": 1}],
                "push_items": [{"queue": self.queue(), "partition": self.rng.choice(PARTITIONS), "payload": 1}],
                "ack": {"transactionId": m["transactionId"], "leaseId": m.get("leaseId"), "status": self.rng.choice(["completed", "failed"])}})
            self.ask("POST", "/streams/v1/state/get", {"query_id": self.query, "partition_id": m["partitionId"]})

    def recurring(self):
        if not self.schedules:
            r = self.ask("POST", "/api/v1/schedules", {"name": "%s%d" % (self.prefix, self.rng.randrange(10 ** 9)), "cron": "* * * * *", "queue": self.queue(), "payload": 1})
            self.schedules = (r.json["id"],) if r is not None and r.status == 201 else ()
            return
        path = "/api/v1/schedules/" + self.schedules[0]
        method, more = self.rng.choice([("POST", "/run"), ("POST", "/pause"), ("POST", "/resume"), ("GET", ""), ("DELETE", "")])
        self.ask(method, path + more, {} if method == "POST" else None)
        if method == "DELETE":
            self.schedules = ()

    def cancel(self):
        self.ask("DELETE", "/api/v1/scheduled?queue=" + self.queue())

    def clear(self):
        self.ask("DELETE", "/api/v1/queues/%s/clear" % self.queue())

    def subscribe(self):
        self.ask("POST", "/api/v1/consumer-groups/%s/subscription" % self.rng.choice(GROUPS[1:]), {"subscriptionTimestamp": "2020-01-01T00:00:00Z"})

    def look_further(self):
        self.ask("GET", self.rng.choice(["/api/v1/consumer-groups/lagging?minLagSeconds=0", "/api/v1/consumer-groups/g1", "/api/v1/analytics/queue-lag",
                                         "/api/v1/analytics/queue-ops", "/api/v1/status/analytics", "/api/v1/status/queues/%s/messages" % self.queue(),
                                         "/api/v1/messages/timeline?correlationId=x", "/api/v1/schedules", "/api/v1/scheduled/count", "/metrics",
                                         "/metrics/prometheus", "/api/v1/status/buffers", "/api/v1/resources/overview", "/api/v1/system/shared-state"]))

    def acts(self):
        return super().acts() + 2 * [self.one_message, self.trace, self.redrive, self.owners, self.owners, self.stream, self.stream, self.recurring,
                                     self.cancel, self.clear, self.subscribe, self.look_further]


class Maintainer(Client):
    """Switches both kinds of maintenance on for a moment, now and then: pushes go to the file buffer, pops find nothing."""

    def run(self):
        while time.monotonic() < self.end:
            time.sleep(self.rng.random())
            path = self.rng.choice(["/api/v1/system/maintenance", "/api/v1/system/maintenance/pop"])
            self.ask("POST", path, {"enabled": True})
            time.sleep(0.2 * self.rng.random())
            self.ask("POST", path, {"enabled": False})
        return self


def run_all(clients):
    clients = in_parallel([c.run for c in clients], timeout=SECONDS + 60 * TIME_FACTOR)
    wrong = [w for c in clients for w in c.wrong]
    assert not wrong, "%d of %d:\n%s" % (len(wrong), sum(c.done for c in clients), "\n".join(wrong[:20]))
    print("%d answers" % sum(c.done for c in clients))


def test_no_request_is_forgotten(broker, queue):
    end = time.monotonic() + SECONDS
    run_all([Client(broker, queue + "-", n, end) for n in range(24)])


def test_no_request_of_an_operator_is_forgotten(broker, queue):
    end = time.monotonic() + SECONDS
    run_all([Operator(broker, queue + "-", n, end) for n in range(16)])


def test_no_request_is_forgotten_around_maintenance(broker, queue):
    end = time.monotonic() + SECONDS
    run_all([Operator(broker, queue + "-", n, end) for n in range(12)] + [Maintainer(broker, queue + "-", 99, end)])
