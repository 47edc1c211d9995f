#!/usr/bin/python3
"""Segments on a large tenant: the four queries of the seed, fallback against read model, and a mixed load during ingestion.

    bench/segments.py [--customers 1000000] [--transactions 10000000] [--seconds 30]
    bench/segments.py --platform URL --tenant NAME        # one that is there, with its models built

Without --platform it starts a PostgreSQL (fsync off), a broker and a platform of its own, makes a tenant with bench/segments_tenant.sql and builds its
read models.  Every question goes through the platform's interface with "maxAgeMs": 0: nothing comes from memory.  Both paths are asked in one
run, in turn, so that whatever else runs on the machine slows both.
"""
import argparse
import hashlib
import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "e2e", "platform"))
sys.path.insert(0, HERE)
import rig as bench_rig  # noqa: E402


def leaf(attribute, operator, value=None, **more):
    return {"attribute": attribute, "operator": operator, **({} if value is None else {"value": value}), **more}


SUBSCRIBER = leaf("is_active_subscriber", "eq", True)
CREDIT = leaf("wallet_balance", "gt", 50)
BUSY = leaf("transaction_count", "gte", 3, withinDays=30)
# The figure in the seed: how many times faster than the fallback.
QUESTIONS = [
    ("is active subscriber", 600, SUBSCRIBER),
    ("subscriber, credit > 50", 437, {"and": [SUBSCRIBER, CREDIT]}),
    ("3+ transactions in 30 days", 375, BUSY),
    ("five filters", 300, {"and": [SUBSCRIBER, CREDIT, BUSY, leaf("location_codes", "any", ["LOC_1", "LOC_5"]),
                                   leaf("email_opt_in", "eq", True)]}),
]
# All of them have an index; a filter without one reads the model's table (see platform/docs/segments.md).
MIXED = [q for _, _, q in QUESTIONS] + [
    {"and": [leaf("package_ids", "any", [3, 7]), leaf("location_codes", "any", ["LOC_2"])]},
    {"and": [leaf("location_codes", "all", ["LOC_4"]), SUBSCRIBER, leaf("sms_opt_in", "eq", True)]},
    {"and": [leaf("product_ids", "all", [11, 12])]},
    {"and": [SUBSCRIBER, BUSY]},
]


def percentile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


class Asking:
    """A connection that stays open, as a dashboard's does."""

    def __init__(self, url, tenant):
        self.at, self.path = urllib.parse.urlparse(url), "/api/v1/tenants/%s/" % tenant
        self.connection = http.client.HTTPConnection(self.at.hostname, self.at.port, timeout=300)

    def post(self, path, body):
        self.connection.request("POST", self.path + path, json.dumps(body), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise SystemExit("%s: %d %s" % (path, answer.status, data[:300]))
        return json.loads(data)

    def count(self, tree, path=None):
        begin = time.monotonic()
        answer = self.post("segments/count", {"filter": tree, "maxAgeMs": 0, **({"path": path} if path else {})})
        return (time.monotonic() - begin) * 1000, answer


def build_models(sql):
    """As crm.fill_live() leaves them, but at one go and with the indexes made afterwards."""
    for model in ("customer_attributes", "customer_transactions"):
        sql("select crm.start_live('%s')" % model)
        query, version = sql("select crm.read_model_query('%s', false), crm.read_model_version('%s')" % (model, model))[0]
        sql("drop table crm.%s_live_next" % model)
        sql("create table crm.%s_live_next with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05) as %s" % (model, query))
        sql("select crm.index_read_model('%s', '%s_live_next', '%s', true)" % (model, model, version))
        sql("select crm.finish_live('%s')" % model)
        sql("vacuum (analyze) crm.%s_live" % model)


def make_tenant(args):
    import psycopg2
    from segment_rig import Rig, ask
    # The platform must not build the models while we do.
    rig = Rig(PLATFORM_SEGMENT_TIMEOUT_MS="300000", PLATFORM_REFRESH_POLL_MS="86400000")
    status, made = ask(rig.platform, "POST", "/api/v1/tenants", {"name": "big"}, timeout=120)
    assert status == 201, made
    begin = time.monotonic()
    subprocess.run(["psql", "-q", "-h", rig.pg.host, "-p", str(rig.pg.port), "-U", rig.pg.user, made["database"],
                    "-v", "customers=%d" % args.customers, "-v", "transactions=%d" % args.transactions,
                    "-f", os.path.join(HERE, "segments_tenant.sql")], check=True, stdout=subprocess.DEVNULL)
    connection = psycopg2.connect(host=rig.pg.host, port=rig.pg.port, user=rig.pg.user, dbname=made["database"])
    connection.autocommit = True

    def sql(text):
        with connection.cursor() as cur:
            cur.execute(text)
            return cur.fetchall() if cur.description else []
    sql("set work_mem = '256MB'")
    build_models(sql)
    print("made in %d s" % (time.monotonic() - begin), file=sys.stderr)
    return rig, "http://127.0.0.1:%d" % rig.platform.port, "big"


def compare(url, tenant, rounds, slow_rounds, clock):
    """Rows of the table.  Both paths in turn for the times; then one after the other for the CPU of PostgreSQL, which does not depend on
    what else runs on the machine."""
    ask, rows = Asking(url, tenant), []
    for name, seed, tree in QUESTIONS:
        fast, slow = [], []
        ask.count(tree), ask.count(tree, "fallback")  # once, so that both have their pages in memory
        for i in range(rounds):
            ms, answer = ask.count(tree)
            fast.append(ms)
            if i % max(1, rounds // slow_rounds) == 0:
                ms, checked = ask.count(tree, "fallback")
                slow.append(ms)
                if checked["count"] != answer["count"]:
                    raise SystemExit("%s: %s says %d, the fallback %d" % (name, answer["path"], answer["count"], checked["count"]))
        begin = clock()
        for _ in range(slow_rounds):
            ask.count(tree, "fallback")
        between = clock()
        for _ in range(rounds):
            ask.count(tree)
        slow_cpu, fast_cpu = (between - begin) / slow_rounds * 1000, (clock() - between) / rounds * 1000
        rows.append((name, answer["count"], answer["path"], percentile(slow, 0.5), percentile(fast, 0.5), percentile(fast, 0.95),
                     percentile(fast, 0.99), percentile(slow, 0.5) / percentile(fast, 0.5), slow_cpu, fast_cpu, slow_cpu / max(fast_cpu, 0.01), seed))
    return rows


def event(r, customers):
    """A sale to somebody of bench/segments_tenant.sql."""
    who = uuid.UUID(hashlib.md5(b"customer %d" % (1 + r.randrange(customers))).hexdigest())
    return {"id": str(uuid.uuid4()), "type": "transaction.recorded", "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "data": {"id": str(uuid.uuid4()), "customer_id": str(who), "kind": "sale", "amount": 12.5, "location_code": "LOC_1"}}


def mixed(url, tenant, seconds, per_second, events_per_second, customers):
    """Questions at a fixed rate from 8 connections while events come in; latencies count from when a question was due."""
    took, lock, begin = [], threading.Lock(), time.monotonic() + 0.5
    total = int(seconds * per_second)
    turn = iter(range(total))

    def work():
        ask, r = Asking(url, tenant), random.Random(threading.get_ident())
        while True:
            with lock:
                n = next(turn, None)
            if n is None:
                return
            due = begin + n / per_second
            time.sleep(max(0, due - time.monotonic()))
            ask.count(MIXED[r.randrange(len(MIXED))])
            with lock:
                took.append((time.monotonic() - due) * 1000)

    stop, sent = threading.Event(), [0]

    def ingest():
        ask, r, n = Asking(url, tenant), random.Random(1), 0
        while not stop.is_set():
            due = begin + n * 100 / max(1, events_per_second)
            time.sleep(max(0, due - time.monotonic()))
            ask.post("events", [event(r, customers) for _ in range(100)])
            n, sent[0] = n + 1, sent[0] + 100

    workers = [threading.Thread(target=work) for _ in range(8)]
    feeder = threading.Thread(target=ingest) if events_per_second else None
    for t in workers + [feeder] * bool(feeder):
        t.start()
    for t in workers:
        t.join()
    stop.set()
    if feeder:
        feeder.join()
    return len(took), sent[0], [percentile(took, q) for q in (0.5, 0.95, 0.99)], max(took)


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--customers", type=int, default=1000000)
    args.add_argument("--transactions", type=int, default=10000000)
    args.add_argument("--rounds", type=int, default=200)
    args.add_argument("--slow-rounds", type=int, default=5)
    args.add_argument("--seconds", type=float, default=30)
    args.add_argument("--rate", type=float, default=50, help="questions a second of the mixed load")
    args.add_argument("--events", type=int, default=1000, help="events a second beside it; 0: none")
    args.add_argument("--platform")
    args.add_argument("--tenant", default="big")
    args.add_argument("--postmaster", type=int, help="process id, with --platform: for the CPU of PostgreSQL")
    args = args.parse_args()
    rig, url, tenant = make_tenant(args) if not args.platform else (None, args.platform, args.tenant)
    postmaster = rig.pg.process.pid if rig else args.postmaster or os.getpid()

    def clock():
        return bench_rig.cpu(postmaster, postmaster) - bench_rig.stat(postmaster)[1]
    try:
        print("| question | customers | fallback p50 ms | path | p50 | p95 | p99 | times faster | CPU ms fallback | read model | times less | seed |\n|"
              + " --- |" * 12)
        for row in compare(url, tenant, args.rounds, args.slow_rounds, clock):
            print("| %s | %d | %.0f | %s | %.1f | %.1f | %.1f | %.0f | %.0f | %.1f | %.0f | %d |" % (*row[:2], row[3], row[2], *row[4:]))
        n, events, (p50, p95, p99), worst = mixed(url, tenant, args.seconds, args.rate, args.events, args.customers)
        print("\nmixed load: %d questions at %g/s, %d events beside it: p50 %.1f ms, p95 %.1f, p99 %.1f, worst %.1f (load average %.1f)"
              % (n, args.rate, events, p50, p95, p99, worst, os.getloadavg()[0]))
    finally:
        if rig:
            rig.close()


if __name__ == "__main__":
    main()
