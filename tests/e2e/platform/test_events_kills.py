"""kill -9 of everything that takes part in bringing events into tables, at random moments, under load: the tables equal a recomputation.

One broker with its PostgreSQL, two platform processes that share the partitions, and a PostgreSQL with the control database and the tenants.
EVENTS_KILLS_SECONDS (20) and EVENTS_KILLS_SEED make longer and other runs.
"""
import os
import random
import signal
import threading
import time
import uuid

import psycopg2
import pytest

import harness
from event_model import Maker, Model, differences, live_differences
from harness import wait_until
from rig_events import Platform, tenant_cursor

SECONDS = float(os.environ.get("EVENTS_KILLS_SECONDS", "20"))
SEED = int(os.environ.get("EVENTS_KILLS_SEED", "1"))
TENANTS = ["t%d" % i for i in range(5)]


class World:
    def __init__(self):
        self.rng = random.Random(SEED)
        self.queue = "events-" + uuid.uuid4().hex[:8]
        self.broker_pg, self.tenant_pg = harness.Postgres().start(), harness.Postgres().start()
        self.broker = harness.Broker({**self.broker_pg.env(), "SIDECAR_POOL_SIZE": "4"}).start()
        self.platforms = [Platform(self.tenant_pg, self.broker.url, PLATFORM_QUEUE=self.queue, PLATFORM_PARTITIONS=8, PLATFORM_EXPIRY_S=2, PLATFORM_PROBE_MS=200,
                                   PLATFORM_ID="p%d" % i, PLATFORM_WRITE_PAUSE_MS=100 * i) for i in range(2)]
        harness.living.extend(self.platforms + [self.broker])  # their logs belong into the report of a failure
        self.platforms[0].start()
        for t in TENANTS:
            self.platforms[0].add_tenant(t)
        self.platforms[1].start()
        self.done, self.log, self.lock = threading.Event(), [], threading.Lock()
        self.models = {t: Model() for t in TENANTS}

    # ---- load: each tenant's events one chunk after the other, each chunk until it is stored ----

    def load(self, tenant):
        maker, client = Maker(tenant, SEED), harness.Client("127.0.0.1", self.broker.port)
        while not self.done.is_set():
            self.push(tenant, client, [maker.event() for _ in range(maker.rng.randrange(1, 12))])
            time.sleep(maker.rng.random() * 0.1)

    def push(self, tenant, client, events):
        # Every other tenant as the platform does it, the others scattered.
        items = [{"queue": self.queue, "partitionKey": tenant if TENANTS.index(tenant) % 2 else "%s/%s" % (tenant, e["data"]["customer_id"]),
                  "transactionId": e["id"], "payload": e} for e in events]
        while True:
            try:
                if client.post("/api/v1/push", {"items": items}, timeout=10).status == 201:
                    break
            except (OSError, harness.http.client.HTTPException):
                client.forget()
            time.sleep(0.1)
        for e in events:
            self.models[tenant].apply(e)

    # ---- harm ----

    def kill_platform(self):
        p = self.rng.choice(self.platforms)
        p.kill()
        time.sleep(self.rng.random() * 3)
        p.spawn()

    def kill_broker(self):
        self.broker.kill()
        time.sleep(self.rng.random())
        self.broker.spawn()

    def kill_server(self, pg):
        pg.process.send_signal(signal.SIGKILL)
        pg.process.wait()
        time.sleep(1 + self.rng.random())
        pg.launch()

    def kill_tenant_server(self):
        self.kill_server(self.tenant_pg)

    def kill_backends(self, pg=None):
        """Some of the connections, with -9 where that takes the whole server through recovery, or as an administrator would."""
        pg = pg or self.rng.choice([self.tenant_pg, self.broker_pg])
        with pg.connect() as c, c.cursor() as cur:
            cur.execute("select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
            pids = [r[0] for r in cur.fetchall()]
            if self.rng.random() < 0.3 and pids:
                os.kill(self.rng.choice(pids), signal.SIGKILL)
            else:
                cur.execute("select pg_terminate_backend(p) from unnest(%s) p", (self.rng.sample(pids, len(pids) // 2),))

    def cut_tenant(self):
        t = self.rng.choice(TENANTS)
        with self.tenant_pg.connect() as c, c.cursor() as cur:
            cur.execute("alter database tenant_%s allow_connections false" % t)
            cur.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'tenant_%s'" % t)
        time.sleep(2 * self.rng.random())
        self.mend(t)

    def mend(self, t):
        with self.tenant_pg.connect() as c, c.cursor() as cur:
            cur.execute("alter database tenant_%s allow_connections true" % t)

    def freeze_platform(self):
        """Past its expiry: when it wakes up, its partitions are somebody else's."""
        p = self.rng.choice(self.platforms)
        if p.alive:
            p.process.send_signal(signal.SIGSTOP)
            time.sleep(2.5)
            p.process.send_signal(signal.SIGCONT)

    def harm(self):
        what = self.rng.choice([self.kill_platform, self.kill_platform, self.kill_broker, self.kill_tenant_server, self.kill_backends, self.kill_backends,
                                self.cut_tenant, self.freeze_platform])
        self.log.append("%.1f %s" % (time.monotonic(), what.__name__))
        try:
            what()
        except psycopg2.Error as e:  # the server is in recovery
            self.log.append(str(e).strip())

    def heal(self):
        for t in TENANTS:
            wait_until(lambda: self.tried(self.mend, t), 30, "the tenants' server answers")
        for p in self.platforms + [self.broker]:
            if not p.alive:
                p.spawn()
        for p in self.platforms + [self.broker]:
            p.wait_ready(60)

    def describe(self):
        """Where the events are, for the report of a failure."""
        owners = self.broker.get("/api/v1/consumer-groups/platform/queues/%s/owners" % self.queue).json["owners"]
        lines = ["harm: " + ", ".join(self.log)]
        lines += ["partition %(partition)s: %(owner)s, epoch %(epoch)s, expired %(expired)s, lag %(lag)s" % o for o in owners]
        lines += ["%s: %s %s" % (p.env["PLATFORM_ID"], p.ask("GET", "/metrics")[1]["events"], p.held()) for p in self.platforms]
        return "\n".join(lines)

    def check(self):
        """Every event is applied, and the tables match the events."""
        for t in TENANTS:
            cursor = tenant_cursor(self.tenant_pg, t)

            def applied():
                cursor.execute("select count(*) from crm.applied_event")
                return cursor.fetchone()[0]
            try:
                wait_until(lambda: applied() >= len(self.models[t].seen), 90 * harness.TIME_FACTOR, "all events of %s are applied" % t)
            except AssertionError as e:
                raise AssertionError("%s: %d of %d\n%s\n%s" % (e, applied(), len(self.models[t].seen), self.describe(), self.where(t, cursor))) from None
            assert applied() == len(self.models[t].seen)
            assert differences(cursor, self.models[t]) == "", "\n".join(self.log)
            assert live_differences(cursor) in (0, None), "\n".join(self.log)
            cursor.connection.close()

    def where(self, tenant, cursor):
        """The events that are missing in the tables as the broker's log has them, and what waits in lanes."""
        cursor.execute("select id::text from crm.applied_event")
        missing = self.models[tenant].seen - {r[0] for r in cursor.fetchall()}
        lines = ["missing: %s" % m for m in self.messages(self.queue) if m["transactionId"] in missing]
        lines += ["held: %s" % m for m in self.messages(self.queue + ".held") if m["status"] != "completed"]
        return "\n".join(lines)

    def messages(self, queue):
        found = []
        while True:
            page = self.broker.get("/api/v1/messages?queue=%s&limit=1000&offset=%d" % (queue, len(found))).json["messages"]
            if not page:
                return found
            found += page

    def tried(self, function, *args):
        try:
            function(*args)
            return True
        except psycopg2.Error:
            return False

    def close(self):
        self.done.set()
        for p in self.platforms + [self.broker]:
            harness.living.remove(p)
            p.dispose()
        self.broker_pg.stop()
        self.tenant_pg.stop()


@pytest.fixture
def world():
    w = World()
    yield w
    w.close()


def test_partitions_that_are_given_up_while_neither_tenants_nor_lanes_can_be_reached(world):
    """Their events go back to the queue: what went into a lane that was not noted would be found by nobody."""
    first, second = world.platforms
    second.terminate()
    world.tenant_pg.process.send_signal(signal.SIGKILL)
    world.tenant_pg.process.wait()
    client = harness.Client("127.0.0.1", world.broker.port)
    for t in TENANTS:
        maker = Maker(t, SEED)
        world.push(t, client, [maker.event() for _ in range(20)])
    wait_until(lambda: first.log_text().count("held.record_failed") >= 8, 30 * harness.TIME_FACTOR, "all partitions wait for the control database")
    assert first.terminate() == 0
    world.tenant_pg.launch()
    first.start()
    world.check()


def test_the_tables_equal_a_recomputation_whatever_was_killed(world):
    threads = [threading.Thread(target=world.load, args=(t,), daemon=True) for t in TENANTS]
    for t in threads:
        t.start()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        world.harm()
        time.sleep(world.rng.random() * 2)
    world.heal()
    world.done.set()
    for t in threads:
        t.join(harness.patience(60))
        assert not t.is_alive(), "a sender did not end"
    total = sum(len(m.seen) for m in world.models.values())
    world.check()
    wait_until(lambda: not world.platforms[0].held(), 90 * harness.TIME_FACTOR, "no lane is left")
    assert world.broker.get("/api/v1/dlq?queue=%s" % world.queue).json["total"] == 0
    print("%d events, %d acts of harm: %s" % (total, len(world.log), ", ".join(l.split(" ", 1)[1] for l in world.log)))
