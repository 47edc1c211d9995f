#!/usr/bin/python3
"""Events into the tables of many tenants, measured: from the push to the commit in the tenant's database, and what it costs.

    bench/platform_ingest.py [--tenants 100] [--seconds 60] [--rate 3333] [--burst 10000] [--burst-seconds 10] [--even] [--fsync]

Broker, its PostgreSQL, one platform process and the PostgreSQL of the tenants, all on this machine; events are pushed straight to the broker in requests of
100.  Tenants are used by a Zipf law (the first of 100 gets 19 % of the events, the last 0.2 %), with --even all the same.  First the records of
all customers, then a warm-up, then the steady rate, then the burst.
Each phase ends when all of its events are applied; then the applied ids are counted against those pushed.
"""
import argparse
import json
import random
import re
import sys
import threading
import time

from rig import Rig, cpu, harness, stat

sys.path.insert(0, harness.REPO + "/tests/e2e/platform")
from event_model import Maker  # noqa: E402
from rig_events import Platform, tenant_cursor  # noqa: E402


CUSTOMERS = 200  # of each tenant; whole requests, whatever the number of tenants


class Events:
    """Endless items to push, made before they are needed: making them is not what is measured."""

    def __init__(self, queue, tenants, even):
        self.queue = queue
        self.makers = [Maker(t, 1, customers=CUSTOMERS) for t in tenants]
        self.weights = [1 if even else 1 / (i + 1) for i in range(len(tenants))]
        self.rng, self.sent = random.Random(1), {t: 0 for t in tenants}

    def item(self, e):
        self.sent[e["tenant"]] += 1
        return {"queue": self.queue, "partitionKey": e["tenant"], "transactionId": e["id"], "payload": e}

    def customers(self, size=100):
        """The record of each customer, tenants in turn."""
        items = []
        for i in range(CUSTOMERS):
            for m in self.makers:
                e = m.event("customer.upserted")
                e["data"]["customer_id"] = m.customers[i]
                items.append(self.item(e))
        return [body(items[i:i + size]) for i in range(0, len(items), size)]

    def requests(self, n, size=100):
        out = []
        for _ in range(max(1, n // size)):
            items = []
            for m in self.rng.choices(self.makers, self.weights, k=size):
                e = m.event()
                while e["type"] == "customer.deleted":
                    e = m.event()
                items.append(self.item(e))
            out.append(body(items))
        return out


def body(items):
    return json.dumps({"items": items}).encode()


def push(port, requests, rate, threads=12):
    """One request after the other, evenly, from so many connections that waiting for answers does not hold it up; all are stored when it returns."""
    begin, lock, at = time.monotonic(), threading.Lock(), [0]

    def work():
        client = harness.Client("127.0.0.1", port)
        while True:
            with lock:
                i = at[0]
                at[0] += 1
            if i >= len(requests):
                return
            time.sleep(max(0, begin + i * 100 / rate - time.monotonic()))
            client.request("POST", "/api/v1/push", requests[i], {"Content-Type": "application/json"}).expect(201)
    workers = [threading.Thread(target=work) for _ in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return time.monotonic() - begin


class Histogram:
    """A histogram of /metrics/prometheus; minus an earlier one: what came in between."""

    def __init__(self, platform, name):
        text = platform.get("/metrics/prometheus").text
        self.buckets = [(float(le), int(n)) for le, n in re.findall(r'%s_bucket\{le="([^"]+)"\} (\d+)' % name, text)]

    def quantile(self, earlier, q):
        new = [(le, n - m) for (le, n), (_, m) in zip(self.buckets, earlier.buckets)]
        total = new[-1][1]
        return next(le for le, n in new if n >= q * total) if total else 0



def measure(title, rig, tenant_pg, platform, requests, rate):
    first, begin = platform.numbers()["applied"], time.monotonic()
    clock = {"broker": lambda: stat(rig.broker.process.pid)[1], "broker's PostgreSQL": rig.cpu, "platform": lambda: stat(platform.process.pid)[1],
             "tenants' PostgreSQL": lambda: cpu(platform.process.pid, tenant_pg.process.pid) - stat(platform.process.pid)[1]}
    used = {k: f() for k, f in clock.items()}
    visible, writes = Histogram(platform, "queen_platform_event_visible_seconds"), Histogram(platform, "queen_platform_write_events")
    took = push(rig.broker.port, requests, rate)
    n = len(requests) * 100
    harness.wait_until(lambda: platform.numbers()["applied"] - first >= n, 300, "all events are applied", 0.05)
    late = time.monotonic() - begin - took
    used = {k: f() - used[k] for k, f in clock.items()}
    used["broker's PostgreSQL"] -= used["broker"]
    after = Histogram(platform, "queen_platform_event_visible_seconds")
    transactions = Histogram(platform, "queen_platform_write_events")
    print("%-12s %7d events, %6.0f/s pushed, all applied %5.2f s after the last push; visible p50 <= %g s, p90 <= %g s, p99 <= %g s; "
          "%.1f events a transaction" % (title, n, n / took, late, after.quantile(visible, 0.5), after.quantile(visible, 0.9), after.quantile(visible, 0.99),
                                         n / max(1, transactions.buckets[-1][1] - writes.buckets[-1][1])))
    print("             CPU-s per 1M events: %s; %.0f %% of a core" % (
        ", ".join("%s %.0f" % (k, v / n * 1e6) for k, v in used.items()), sum(used.values()) / (took + late) * 100), flush=True)


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--tenants", type=int, default=100)
    args.add_argument("--seconds", type=int, default=60)
    args.add_argument("--rate", type=int, default=3333)
    args.add_argument("--burst", type=int, default=10000)
    args.add_argument("--burst-seconds", type=int, default=10)
    args.add_argument("--even", action="store_true", help="all tenants get the same")
    args.add_argument("--fsync", action="store_true", help="commits reach the disk")
    args.add_argument("--set", action="append", default=[], help="NAME=VALUE of the platform")
    a = args.parse_args()
    durable = {"fsync": "on", "full_page_writes": "on"} if a.fsync else {}
    rig = Rig(**durable)
    tenant_pg = harness.Postgres()
    tenant_pg.settings = {"max_connections": str(100 + 3 * a.tenants), "max_locks_per_transaction": "128", **durable}
    tenant_pg.start()
    platform = Platform(tenant_pg, rig.broker.url, PLATFORM_POOLS_MAX=a.tenants, PLATFORM_POOL_SIZE=2, **dict(s.split("=") for s in a.set))
    try:
        platform.start()
        begin = time.monotonic()
        tenants = ["t%d" % i for i in range(a.tenants)]
        for t in tenants:
            platform.add_tenant(t)
        print("%d tenants made in %.0f s" % (a.tenants, time.monotonic() - begin), flush=True)
        events = Events("platform.events", tenants, a.even)
        known = events.customers()
        warm, steady = events.requests(5 * a.rate), events.requests(a.seconds * a.rate)
        burst = events.requests(a.burst_seconds * a.burst)
        measure("customers", rig, tenant_pg, platform, known, a.rate)
        measure("warm-up", rig, tenant_pg, platform, warm, a.rate)
        measure("steady", rig, tenant_pg, platform, steady, a.rate)
        measure("burst", rig, tenant_pg, platform, burst, a.burst)
        wrong = []
        for t in tenants:
            cursor = tenant_cursor(tenant_pg, t)
            cursor.execute("select count(*) from crm.applied_event")
            n = cursor.fetchone()[0]
            cursor.connection.close()
            if n != events.sent[t]:
                wrong.append("%s: %d of %d" % (t, n, events.sent[t]))
        print("every event applied once" if not wrong else "wrong: " + ", ".join(wrong))
        return 1 if wrong else 0
    finally:
        platform.dispose()
        tenant_pg.stop()
        rig.close()


if __name__ == "__main__":
    sys.exit(main())
