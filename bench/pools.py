#!/usr/bin/python3
"""pools.py: 150 tenants, 20 pools, skewed traffic: hit rate, time to get a pool, memory.   bench/pools.py [--seconds 60]

A throw-away PostgreSQL, one platform, real databases. Clients ask for the health of tenants, which takes a pool, sends one
statement and puts it back. A client works for one tenant for a while (--session, requests on average: a person at a screen, a
batch of events), then for another. Who comes next follows Zipf's law (--skew) over tenants that change places every second,
so that over the run all of them are asked for. --session 1 is the worst case: every request for somebody else.
"""
import argparse
import json
import os
import random
import sys
import threading
import time

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(REPO, "tests", "support"), os.path.join(REPO, "tests", "e2e", "platform")]
import harness  # noqa: E402
from process import Platform  # noqa: E402


def rss(p):
    return p.get("/metrics").json["memory"]["rss"]


def make_tenants(pg, p, n):
    """Databases copied from one that has the schema, while nobody is connected to it: making each would take minutes."""
    template = p.add_tenant("bench-000")["database"]
    p.terminate()
    p.forget()
    conn = pg.connect()
    cur = conn.cursor()
    control = pg.connect(database=p.env["PLATFORM_PG_DB"])
    for i in range(1, n):
        name = "bench-%03d" % i
        cur.execute('create database "tenant_%s" template "%s"' % (name, template))
        control.cursor().execute("insert into platform.tenant (name, kind, database, made, state, schema_version) "
                                 "values (%s, 'postgresql', %s, true, 'ready', 1)", (name, "tenant_" + name))
    conn.close()
    control.close()
    p.start()


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--tenants", type=int, default=150)
    args.add_argument("--pools", type=int, default=20)
    args.add_argument("--clients", type=int, default=8)
    args.add_argument("--seconds", type=float, default=60)
    args.add_argument("--skew", type=float, default=1.1)
    args.add_argument("--session", type=float, default=25)
    a = args.parse_args()

    pg = harness.Postgres()
    pg.start()
    p = Platform({"PLATFORM_PG_HOST": pg.host, "PLATFORM_PG_PORT": pg.port, "PLATFORM_PG_USER": pg.user, "PLATFORM_PG_PASSWORD": "x", "PLATFORM_PG_DB": "platform",
                  "PLATFORM_POOLS_MAX": a.pools, "QUEEN_URL": "http://127.0.0.1:9", "LOG_LEVEL": "error"})
    try:
        p.start()
        make_tenants(pg, p, a.tenants)
        weights = [1 / (i + 1) ** a.skew for i in range(a.tenants)]
        begun = time.monotonic()
        end = begun + a.seconds
        failures, asked, seen = [], [0] * a.clients, set()

        def client(k):
            rng = random.Random(k)
            ranks = range(a.tenants)
            while time.monotonic() < end:
                shift = int(time.monotonic() - begun)
                i = (rng.choices(ranks, weights)[0] + shift) % a.tenants
                seen.add(i)
                for _ in range(1 + int(rng.expovariate(1 / (a.session - 1))) if a.session > 1 else 1):
                    r = p.get("/api/v1/tenants/bench-%03d/health" % i)
                    asked[k] += 1
                    if r.status != 200:
                        failures.append(r.text)

        before = p.pools()
        threads = [threading.Thread(target=client, args=(k,)) for k in range(a.clients)]
        for t in threads:
            t.start()
        memory, most = [], 0
        while any(t.is_alive() for t in threads):
            time.sleep(1)
            memory.append(rss(p))
            most = max(most, p.pools()["open"])
        s = p.pools()
        hits, misses = s["hits"] - before["hits"], s["misses"] - before["misses"]
        third = max(1, len(memory) // 3)
        print(json.dumps({
            "tenants": a.tenants, "askedFor": len(seen), "pools": a.pools, "seconds": a.seconds, "clients": a.clients, "skew": a.skew, "session": a.session,
            "gets": hits + misses, "perSecond": round((hits + misses) / a.seconds), "failures": len(failures),
            "hitRate": round(hits / max(1, hits + misses), 4), "hitMs": s["get"]["hit"], "missMs": s["get"]["miss"],
            "evictions": s["evictions"], "mostPools": most,
            "rssMB": {"afterOneThird": round(memory[third - 1] / 1e6, 1), "atTheEnd": round(memory[-1] / 1e6, 1)},
        }, indent=1))
        if failures:
            print(failures[0], file=sys.stderr)
    finally:
        p.dispose()
        pg.stop()


if __name__ == "__main__":
    main()
