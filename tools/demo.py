#!/usr/bin/python3
"""demo.py: a broker with a shop's traffic, a platform and five tenants with data and live events, until Ctrl-C.   make demo

Everything lives in a folder of its own that is removed at the end; nothing that runs already is touched.

    DEMO_BROKER_PORT=6632  DEMO_PLATFORM_PORT=6642  DEMO_CUSTOMERS=500 (of each tenant)  DEMO_RATE=50 (events a second)
    DEMO_SECONDS: ends by itself after so long
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from datetime import datetime, timedelta, timezone
from urllib.parse import quote

from demo_shop import Shop

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUEEN = os.environ.get("QUEEN_BIN", os.path.join(REPO, "build", "queen"))
BROKER_PORT = int(os.environ.get("DEMO_BROKER_PORT", "6632"))
PLATFORM_PORT = int(os.environ.get("DEMO_PLATFORM_PORT", "6642"))
CUSTOMERS = int(os.environ.get("DEMO_CUSTOMERS", "500"))
RATE = float(os.environ.get("DEMO_RATE", "50"))
SECONDS = float(os.environ.get("DEMO_SECONDS", "0"))
BROKER, PLATFORM = "http://localhost:%d" % BROKER_PORT, "http://localhost:%d" % PLATFORM_PORT
TENANTS = ["acme", "bakery", "cinema", "dojo", "emporium"]
CITIES = ["Lisbon", "Porto", "Berlin", "Vienna", "Rome", "Madrid"]
NAMES = ["Ann", "Bob", "Carla", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas"]


class Stop(Exception):
    """Somebody wants us to end."""


def on_signal(number, frame):
    raise Stop


def ask(method, path, body=None, base=PLATFORM):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"Content-Type": "application/json"}, method=method)
    end = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(request, timeout=120) as r:
                return json.load(r)
        except urllib.error.HTTPError as e:
            # 503 means: try again. The platform answers so while it creates its queue at the broker.
            if e.code != 503 or path == "/ready" or time.monotonic() > end:
                raise
            time.sleep(0.2)


class Process:
    """A child with its log in the demo's folder."""

    def __init__(self, folder, name, *args):
        self.name, self.log = name, os.path.join(folder, name + ".log")
        with open(self.log, "wb") as log:
            # Its own group: Ctrl-C reaches us alone, and we end our children in the right order.
            self.child = subprocess.Popen([QUEEN, *args], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)

    def wait_ready(self, url):
        end = time.monotonic() + 90
        while time.monotonic() < end:
            if self.child.poll() is not None:
                break
            try:
                ask("GET", "/ready", base=url)
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        with open(self.log, errors="replace") as f:
            sys.exit("demo: %s did not start:\n%s" % (self.name, f.read()[-2000:]))

    def stop(self):
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(30)
            except subprocess.TimeoutExpired:
                self.child.kill()
        return self.child.wait()


class Business:
    """Customers of one tenant, and what they do."""

    def __init__(self, tenant):
        self.tenant, self.rng = tenant, random.Random(tenant)
        self.customers = [self.id() for _ in range(CUSTOMERS)]
        self.wallets = {c: self.id() for c in self.customers}

    def id(self):
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def event(self, kind, data, at):
        return {"id": str(uuid.uuid4()), "type": kind, "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "data": data}

    def history(self):
        """Each customer once, with a year behind them."""
        r, now = self.rng, datetime.now(timezone.utc)
        for i, c in enumerate(self.customers):
            at = now - timedelta(days=r.randrange(30, 365))
            name = r.choice(NAMES)
            yield self.event("customer.upserted", {
                "customer_id": c, "first_name": name, "last_name": "No. %d" % i, "email": "%s%d@%s.example" % (name.lower(), i, self.tenant),
                "city": r.choice(CITIES), "country": "EU", "tags": r.sample(["vip", "new", "newsletter"], r.randrange(3)),
                "email_opt_in": r.random() < 0.6}, at)
            yield self.event("wallet.changed", {"customer_id": c, "id": self.wallets[c], "status": "active", "balance": r.randrange(0, 20000) / 100,
                                                "currency": "EUR"}, at)
            if r.random() < 0.4:
                yield self.event("subscription.changed", {"customer_id": c, "id": self.id(), "status": r.choice(["active", "active", "paused", "cancelled"]),
                                                          "price": r.choice([9.9, 19.9, 49]), "currency": "EUR", "billing_period": "month"}, at)
            for _ in range(r.randrange(6)):
                yield self.doing(c, at + timedelta(days=r.randrange(1, 30)))

    def doing(self, customer, at):
        r = self.rng
        kind = r.choice(["transaction.recorded", "transaction.recorded", "visit.recorded", "purchase.recorded", "wallet.adjusted"])
        data = {"customer_id": customer, "id": self.id()}
        if kind == "transaction.recorded":
            data.update(kind="sale", amount=r.randrange(500, 15000) / 100, payment_method=r.choice(["card", "cash"]), location_code="L%d" % r.randrange(4))
        elif kind == "visit.recorded":
            data.update(service=r.choice(["cut", "colour", "wash"]), duration_minutes=r.randrange(10, 90), rating=r.randrange(1, 6))
        elif kind == "purchase.recorded":
            data.update(product_id=r.randrange(100), category=r.choice(["care", "tools"]), quantity=1, amount=r.randrange(300, 6000) / 100)
        else:
            data.update(id=self.wallets[customer], delta=r.randrange(-500, 2000) / 100)
        return self.event(kind, data, at)

    def send(self, events):
        ask("POST", "/api/v1/tenants/%s/events" % self.tenant, events)


def fill(business):
    batch = []
    for e in business.history():
        batch.append(e)
        if len(batch) == 500:
            business.send(batch)
            batch = []
    if batch:
        business.send(batch)


SEGMENTS = [("rich in Lisbon or Porto", {"and": [{"attribute": "wallet_balance", "operator": "gt", "value": 50},
                                                 {"or": [{"attribute": "city", "operator": "eq", "value": c} for c in ("Lisbon", "Porto")]}]}),
            ("credit over 100", {"attribute": "wallet_balance", "operator": "gt", "value": 100})]


def audience(tenant):
    """Saved segments, a queue for their changes, and campaigns."""
    path = "/api/v1/tenants/%s/" % tenant
    for name, tree in SEGMENTS:
        ask("POST", path + "segments", {"name": name, "filter": tree})
    ask("PUT", path + "segments/%s/subscription" % quote(SEGMENTS[1][0]), {"queue": "segments.rich", "everySeconds": 10, "initial": False})
    for name, segment, when in (("Spring greetings", SEGMENTS[0][0], "now"), ("Thank you", SEGMENTS[1][0], "entering"),
                                ("Weekly news", SEGMENTS[0][0], {"cron": "0 9 * * 1", "timezone": "Europe/Lisbon"})):
        ask("POST", path + "campaigns", {"name": name, "segment": segment, "when": when, "queue": "campaigns.email", "channel": "email",
                                         "template": {"subject": "Hello {{first_name}}"}})


def count_segments(tenant):
    for name, _ in SEGMENTS:
        ask("POST", "/api/v1/tenants/%s/segments/%s/count" % (tenant, quote(name)), {})


def wait_counted(tenant, wanted):
    """Until the tenant's customers are in its tables."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if ask("POST", "/api/v1/tenants/%s/segments/count" % tenant, {"filter": {"all": True}})["count"] >= wanted:
            return
        time.sleep(0.3)
    print("demo: the events of %s take long; go on anyway" % tenant)


def hints():
    rich = '{"attribute": "wallet_balance", "operator": "gt", "value": 150}'
    print("""
Running: dashboard %(broker)s/, platform %(platform)s, tenants %(tenants)s; about %(rate)g events a second.

Try, in another terminal:

  export PLATFORM_URL=%(platform)s QUEEN_URL=%(broker)s
  %(queen)s tenant ls
  %(queen)s pools
  %(queen)s segment attributes
  %(queen)s segment count acme '%(rich)s'
  %(queen)s segment preview acme '%(rich)s' -n 5
  %(queen)s segment save acme rich '%(rich)s'
  %(queen)s queue ls

  curl %(platform)s/api/v1/tenants
  curl %(platform)s/api/v1/tenants/acme/health
  curl %(platform)s/api/v1/tenants/acme/read-models
  curl -X POST %(platform)s/api/v1/tenants/acme/segments/count -H 'Content-Type: application/json' \\
       -d '{"filter": %(rich)s}'
  curl %(platform)s/metrics/prometheus

Ctrl-C ends everything.
""" % {"broker": BROKER, "platform": PLATFORM, "tenants": ", ".join(TENANTS), "rate": RATE, "queen": os.path.relpath(QUEEN), "rich": rich}, flush=True)


def live(businesses):
    """Things happen until somebody stops us."""
    end = time.monotonic() + SECONDS if SECONDS else None
    sent, shown, counted = 0, time.monotonic(), 0
    while end is None or time.monotonic() < end:
        b = random.choice(businesses)
        now = datetime.now(timezone.utc)
        n = max(1, round(RATE / 10))
        b.send([b.doing(b.rng.choice(b.customers), now) for _ in range(n)])
        sent += n
        if time.monotonic() - counted > 30:
            counted = time.monotonic()
            count_segments(TENANTS[0])
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print("%d live events sent" % sent, flush=True)
        time.sleep(n / RATE)


def main():
    if not os.path.exists(QUEEN):
        sys.exit("demo: %s is missing; run make first" % QUEEN)
    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    folder = tempfile.mkdtemp(prefix="queen-demo-")
    os.chmod(folder, 0o755)  # PostgreSQL runs as another user when we are root
    processes, code = [], 0
    shop = Shop(BROKER)
    try:
        print("Dashboard: %s/\nPlatform:  %s/\n" % (BROKER, PLATFORM), flush=True)
        print("Starting a broker and a platform in %s ..." % folder, flush=True)
        processes.append(Process(folder, "broker", "serve", "--port", str(BROKER_PORT), "--data-dir", os.path.join(folder, "broker")))
        processes.append(Process(folder, "platform", "platform", "--port", str(PLATFORM_PORT), "--data-dir", os.path.join(folder, "platform"),
                                 "--queen-url", BROKER))
        processes[0].wait_ready(BROKER)
        shop.start()
        processes[1].wait_ready(PLATFORM)
        businesses = []
        for tenant in TENANTS:
            ask("POST", "/api/v1/tenants", {"name": tenant})
            businesses.append(Business(tenant))
            fill(businesses[-1])
            print("  %s: %d customers" % (tenant, CUSTOMERS), flush=True)
        for tenant in TENANTS:
            wait_counted(tenant, CUSTOMERS)
        audience(TENANTS[0])
        hints()
        live(businesses)
    except Stop:
        pass
    except urllib.error.HTTPError as e:
        code = 1
        print("demo: %s: %s" % (e, e.read().decode(errors="replace")), file=sys.stderr)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("\nStopping ...", flush=True)
        shop.stop()
        ends = [(p.name, p.stop()) for p in reversed(processes)]
        shutil.rmtree(folder, ignore_errors=True)
        print("Stopped: " + ", ".join("%s (%d)" % e for e in ends), flush=True)
    sys.exit(code or max((e[1] for e in ends), default=0))


if __name__ == "__main__":
    main()
