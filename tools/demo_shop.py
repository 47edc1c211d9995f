"""demo_shop.py: a shop's traffic on the broker of the demo, so that every page of the dashboard has something to show.

A fast consumer group and one that falls behind, payments that fail and are retried later, e-mails and webhooks of which some become dead letters, messages
for later, recurring messages, and sensors with many partitions.
"""
import json
import random
import threading
import time
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone

ERRORS = [("card declined", "DECLINED"), ("connect ECONNREFUSED 10.0.0.7:443", "UNREACHABLE"), ("timeout after 30 s", "TIMEOUT"), ("HTTP 503 from gateway", "HTTP_503")]

REFUSALS = [("410 Gone: the shop has closed", "HTTP_410"), ("certificate has expired", "TLS"), ("422 Unprocessable: field total is missing", "HTTP_422")]


class Shop:
    def __init__(self, url):
        self.url, self.stopped, self.numbers = url, threading.Event(), {}
        self.threads = []

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as r:
            raw = r.read()
            return json.loads(raw) if raw else None

    def push(self, queue, partition, payload, **more):
        n = self.numbers[queue] = self.numbers.get(queue, 0) + 1
        self.ask("POST", "/api/v1/push", {"items": [{"queue": queue, "partition": partition, "payload": payload,
                                                     "transactionId": "%s-%05d" % (queue, n), **more}]})

    def configure(self, queue, namespace, **options):
        self.ask("POST", "/api/v1/configure", {"queue": queue, "namespace": namespace, "options": options})

    def prepare(self):
        self.configure("orders", "shop", leaseTime=30)
        self.configure("payments", "billing", leaseTime=30, retryPolicy={"mode": "scheduled", "strategy": "exponential", "base": 20, "maxAttempts": 5})
        self.configure("emails", "notify", leaseTime=20, retryLimit=2)
        self.configure("reports", "analytics", leaseTime=60)
        self.configure("invoices", "billing", leaseTime=60)
        for i in range(12):
            self.configure("sensors-%02d" % i, "devices", completedRetentionSeconds=3600)
        self.configure("telemetry", "devices", partitions=16)
        self.configure("webhooks", "notify", leaseTime=20)
        self.query = self.ask("POST", "/streams/v1/queries", {"name": "revenue-by-customer", "source_queue": "orders", "sink_queue": "revenue",
                                                              "config_hash": "1"})["query_id"]
        now = datetime.now(timezone.utc)
        for i in range(60):
            due = now + timedelta(seconds=random.randint(60, 6 * 86400))
            self.push("invoices", "account-%d" % (i % 9), {"invoice": i}, scheduledAt=due.isoformat().replace("+00:00", "Z"))
        self.ask("POST", "/api/v1/schedules", {"name": "nightly-report", "queue": "reports", "partition": "daily", "cron": "0 3 * * *",
                                               "timezone": "Europe/Rome", "payload": {"kind": "nightly"}})
        self.ask("POST", "/api/v1/schedules", {"name": "heartbeat", "queue": "reports", "partition": "heartbeat", "cron": "* * * * *", "payload": {}})

    # ---- producers: one step each ----

    def order(self):
        for _ in range(random.randint(1, 8)):
            self.push("orders", "customer-%d" % random.randint(1, 40), {"order": random.randint(1000, 9999), "total": random.randint(5, 500),
                                                                        "items": [{"sku": "A-%d" % random.randint(1, 99), "count": 1}]})
        return random.random()

    def payment(self):
        self.push("payments", "account-%d" % random.randint(1, 25), {"amount": random.randint(1, 900), "currency": "EUR"})
        return 0.4

    def email(self):
        self.push("emails", "Default", {"to": "user%d@example.org" % random.randint(1, 999), "template": "welcome"})
        return 1

    def webhook(self):
        """Receivers that refuse some of their messages for good: dead letters of several kinds."""
        self.push("webhooks", "shop-%d" % random.randint(1, 8), {"event": "order.paid", "url": "https://shop%d.example/hook" % random.randint(1, 8)})
        answer = self.ask("GET", "/api/v1/pop/queue/webhooks?batch=1&consumerGroup=sender")
        for m in (answer or {}).get("messages", []):
            ack = {"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": m["leaseId"], "status": "completed", "consumerGroup": "sender"}
            if random.random() < 0.25:
                error, code = random.choice(REFUSALS)
                ack.update(status="dlq", error=error, errorCode=code, worker="sender-1")
            self.ask("POST", "/api/v1/ack", ack)
        return 0.7

    def revenue(self):
        """A stream: the turnover of each customer, as state and as messages."""
        answer = self.ask("GET", "/api/v1/pop/queue/orders?batch=20&wait=true&timeout=2000&consumerGroup=streams.revenue-by-customer")
        messages = (answer or {}).get("messages", [])
        if messages:
            last, total = messages[-1], sum(m["data"]["total"] for m in messages)
            self.ask("POST", "/streams/v1/cycle", {
                "query_id": self.query, "partition_id": last["partitionId"], "consumer_group": "streams.revenue-by-customer",
                "state_ops": [{"type": "upsert", "key": "turnover", "value": {"sum": total}}],
                "push_items": [{"queue": "revenue", "partition": last["partition"], "payload": {"sum": total}}],
                "ack": {"transactionId": last["transactionId"], "leaseId": last["leaseId"], "status": "completed", "count": len(messages)}, "release_lease": True})
        return 0.2

    def report(self):
        self.push("reports", "daily", {"report": random.randint(1, 99)})
        return 1.5

    def telemetry(self):
        """Processors own the partitions of a queue. The third comes and goes: it releases its partitions, or dies and they expire."""
        n = self.numbers["telemetry"] = self.numbers.get("telemetry", 0) + 1
        path, group = "/api/v1/consumer-groups/aggregator/queues/telemetry/owners", "aggregator"
        names = ["aggregator-1", "aggregator-2"] + (["aggregator-3"] if n % 60 > 30 else [])
        steps = {}
        for i, o in enumerate(self.ask("GET", path)["owners"]):
            goal, part = names[i % len(names)], {"partition": o["partition"], "epoch": o["epoch"]}
            if o["expired"]:
                steps.setdefault(("claim", goal), []).append(part)
            elif o["owner"] == goal:
                steps.setdefault(("renew", goal), []).append(part)
            elif o["owner"] in names or n // 60 % 2 == 0:
                steps.setdefault(("release", o["owner"]), []).append(part)
        for (action, owner), parts in steps.items():
            self.ask("POST", path + "/" + action, {"owner": owner, "partitions": parts, **({} if action == "release" else {"expirySeconds": 20})})
            for p in random.sample(parts, min(2, len(parts))) if action == "renew" else ():
                answer = self.ask("GET", "/api/v1/pop/queue/telemetry/partition/%s?batch=10&consumerGroup=%s&owner=%s&epoch=%d" % (p["partition"], group, owner, p["epoch"]))
                acks = [{"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": m["leaseId"], "status": "completed"}
                        for m in (answer or {}).get("messages", [])]
                if acks:
                    self.ask("POST", "/api/v1/ack/batch", {"acknowledgments": acks, "consumerGroup": group})
        self.ask("POST", "/api/v1/push", {"items": [{"queue": "telemetry", "partition": str(random.randint(0, 15)), "payload": {"rpm": random.randint(500, 4000)}} for _ in range(4)]})
        return 2

    def trace(self):
        """A client notes what it did with an order."""
        answer = self.ask("GET", "/api/v1/messages?queue=orders&limit=1")
        for m in answer["messages"]:
            self.ask("POST", "/api/v1/traces", {"partitionId": m["partitionId"], "transactionId": m["transactionId"], "traceNames": ["warehouse", "orders"],
                                                "eventType": "info", "data": {"text": "reserved on shelf %d" % random.randint(1, 40)}})
        return 5

    def sensor(self):
        self.ask("POST", "/api/v1/push", {"items": [{"queue": "sensors-%02d" % random.randint(0, 11), "partition": "device-%d" % random.randint(1, 300),
                                                     "payload": {"celsius": round(random.gauss(21, 3), 1)}} for _ in range(40)]})
        return 0.5

    def consumer(self, queue, group, batch, failing, pause):
        """A step of a consumer that fails with the given probability."""
        def step():
            answer = self.ask("GET", "/api/v1/pop/queue/%s?batch=%d&wait=true&timeout=2000&consumerGroup=%s" % (queue, batch, group))
            acks = []
            for m in (answer or {}).get("messages", []):
                ack = {"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": m["leaseId"], "status": "completed"}
                if random.random() < failing:
                    error, code = random.choice(ERRORS)
                    ack.update(status="failed", error=error, errorCode=code, worker=group + "-1")
                acks.append(ack)
            if acks:
                self.ask("POST", "/api/v1/ack/batch", {"acknowledgments": acks, "consumerGroup": group})
            return pause
        return step

    def loop(self, step):
        pause = 0
        while not self.stopped.wait(pause):
            try:
                pause = step()
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                pause = 1  # the broker may be restarted by the person who looks at the demo

    def start(self):
        self.prepare()
        steps = [self.order, self.payment, self.email, self.report, self.sensor, self.telemetry, self.trace, self.webhook, self.revenue]
        steps += [self.consumer(*c) for c in (("orders", "fulfilment", 20, 0, 0.05), ("orders", "analytics", 5, 0, 2), ("payments", "ledger", 5, 0.3, 0.05),
                                              ("emails", "mailer", 1, 0.4, 0.2), ("reports", "bi", 1, 0, 3),
                                              *(("sensors-%02d" % i, "dashboards", 100, 0, 1) for i in range(6)))]
        self.threads = [threading.Thread(target=self.loop, args=(s,), daemon=True) for s in steps]
        for t in self.threads:
            t.start()

    def stop(self):
        self.stopped.set()
        for t in self.threads:
            t.join(10)
