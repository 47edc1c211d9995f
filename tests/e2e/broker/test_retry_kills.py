"""Exactly one pending retry per failure, whatever process is killed: two brokers, two groups, real kills, every id checked."""
import collections
import os
import random
import signal
import threading
import time

import psycopg2
import pytest

import harness

MESSAGES, GROUPS, ATTEMPTS = 40, ("ga", "gb"), 4
POLICY = {"mode": "scheduled", "strategy": "fixed", "base": 0.1, "maxAttempts": ATTEMPTS}


def failures_of(number):
    """How often the message fails; the last kind never succeeds."""
    return number % (ATTEMPTS + 1)


class Consumer(threading.Thread):
    """Pops, fails or completes according to failures_of(), and ignores lost answers."""

    def __init__(self, ports, queue, group, stop, rng):
        super().__init__(daemon=True)
        self.clients = [harness.Client("127.0.0.1", p) for p in ports]
        self.queue, self.group, self.stop, self.rng = queue, group, stop, rng

    def run(self):
        while not self.stop.is_set():
            client = self.rng.choice(self.clients)
            try:
                r = client.pop(self.queue, consumerGroup=self.group, batch=self.rng.randint(1, 7), wait="true", timeout=300, http_timeout=5)
                if r.status != 200:
                    continue
                entries = [client.ack_entry(m, "failed" if m.get("attempt", 1) <= failures_of(m["data"]) else "completed",
                                            error="attempt %d" % m.get("attempt", 1)) for m in r.json["messages"]]
                self.rng.choice(self.clients).post("/api/v1/ack/batch", {"acknowledgments": entries, "consumerGroup": self.group},
                                                   timeout=5)
            except Exception: # whatever was killed
                client.forget()
                time.sleep(0.05)


def rows(pg, statement, *args):
    conn = pg.connect()
    try:
        with conn.cursor() as cur:
            cur.execute(statement, args or None)
            return cur.fetchall()
    finally:
        conn.close()


PENDING = """ -- per message and group: retries that wait, and copies that are due and not consumed
    select k.grp, k.key, count(*) from (
        select w.grp, w.key from queen.scheduled w where w.kind = 'r'
         union all
        select c.grp, encode(substr(s.keys, i * 16 + 1, 16), 'hex')::uuid
          from queen.lanes r join queen.consumers c on c.lane = r.num cross join lateral queen.latest_state(c.num) st
          join queen.segments s on s.lane = r.num and s.first_seq + s.count - 1 > st.cursor_seq
          cross join generate_series(0, s.count - 1) i
         where r.origin is not null and s.first_seq + i > st.cursor_seq
           and (st.acked_mask is null or s.first_seq + i not between st.lease_first and st.lease_last
                or get_bit(st.acked_mask, (s.first_seq + i - st.lease_first)::int) = 0)) k
     group by 1, 2 having count(*) > 1"""


@pytest.fixture
def own_pg(frail_pg):
    """rows() and the brokers use one database of it."""
    frail_pg.database, old = frail_pg.create_database("retries_%d" % time.monotonic_ns()), frail_pg.database
    yield frail_pg
    frail_pg.database = old


def test_one_retry_per_failure_despite_kills(own_pg, queue):
    rng = random.Random(11)
    env = {**own_pg.env(), "SIDECAR_POOL_SIZE": "4"}
    brokers = [harness.Broker(env).start(), harness.Broker(env).start()]
    stop = threading.Event()
    consumers = []
    try:
        brokers[0].configure(queue, leaseTime=2, retryPolicy=POLICY)
        for i in range(MESSAGES):
            brokers[0].put(queue, [i], partition="p%d" % (i % 3), ids=["m-%d" % i])
        consumers = [Consumer([b.port for b in brokers], queue, g, stop, random.Random(n)) for n, g in enumerate(GROUPS * 2)]
        for c in consumers:
            c.start()
        deadline = time.monotonic() + 9
        kinds = iter(["backends", "broker", "backends", "postmaster", "broker", "backends"] * 10)
        while time.monotonic() < deadline:
            time.sleep(rng.uniform(0.2, 0.6))
            kind = next(kinds)
            if kind == "broker":
                victim = rng.choice(brokers)
                os.kill(victim.process.pid, signal.SIGKILL)
                victim.process.wait()
                victim.start()
            elif kind == "backends":
                try:
                    rows(own_pg, "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and random() < 0.6")
                except psycopg2.Error:
                    pass
            else:
                own_pg.halt()
                own_pg.launch()
            assert rows(own_pg, PENDING) == []

        def settled():
            left = rows(own_pg, "select count(*) from queen.scheduled")[0][0]
            behind = rows(own_pg, """select count(*) from queen.consumers c cross join lateral queen.latest_state(c.num) st
                                       join lateral (select max(s.first_seq + s.count) as next_seq from queen.segments s
                                                      where s.lane = c.lane) h on true
                                      where h.next_seq > st.cursor_seq + 1 or st.lease_until > now()""")[0][0]
            return left == 0 and behind == 0
        harness.wait_until(settled, 40, "all messages to be settled", 0.2)
        stop.set()
        for c in consumers:
            c.join(10)

        for b in brokers: # connections to those that were killed
            b.forget()
        history = collections.defaultdict(list)
        for name, grp, attempt, outcome in rows(
                own_pg, "select transaction_id, grp, attempt, outcome::text from queen.attempts order by transaction_id, grp, nth"):
            history[name, grp].append((attempt, outcome))
        for i in range(MESSAGES):
            fails = failures_of(i)
            wanted = [(n, "r") for n in range(1, min(fails, ATTEMPTS - 1) + 1)]
            if fails >= ATTEMPTS:
                wanted.append((ATTEMPTS, "d"))
            elif fails > 0:
                wanted.append((fails + 1, "c"))
            for grp in GROUPS:
                assert history["m-%d" % i, grp] == wanted, (i, grp)
                t = brokers[1].get("/api/v1/messages/timeline?" + harness.urlencode(
                    {"transactionId": "m-%d" % i, "queue": queue, "consumerGroup": grp})).expect(200).json
                assert t["status"] == ("FAILED" if fails >= ATTEMPTS else "DELIVERED"), (i, grp)
        dead = collections.Counter((d["transactionId"], d["consumerGroup"]) for d in
                                   brokers[0].get("/api/v1/dlq?limit=1000&queue=" + queue).json["messages"])
        assert dead == {("m-%d" % i, g): 1 for i in range(MESSAGES) if failures_of(i) >= ATTEMPTS for g in GROUPS}
    finally:
        stop.set()
        for b in brokers:
            b.dispose()
