#!/usr/bin/python3
"""The cost of applying events inside a tenant's database, by the size of the transaction: no broker, no platform.

    bench/ingest_sql.py [--mode live|views] [--sizes 1,3,10,50] [--events 1500] [--functions N]

One tenant with 200 customers, one connection, the statement that the platform sends.  CPU is that of the backend, the lower quartile of the calls: on a
machine that does other things, use the mean for those.  --functions: what each SQL function takes (wall clock) in transactions of N events.
"""
import argparse
import json
import os
import sys
import time

from rig import harness

sys.path[:0] = [harness.REPO + "/tests/e2e/platform", harness.REPO + "/tools"]
import embed_sql  # noqa: E402
import readmodels  # noqa: E402
from event_model import PACKAGE, SUBSCRIPTION, WALLET, Maker  # noqa: E402

TABLES = ["customer.upserted", "subscription.changed", "wallet.changed", "wallet.adjusted", "package.changed", "transaction.recorded",
          "visit.recorded", "purchase.recorded"]
STATUS = {"subscription.changed": SUBSCRIPTION, "wallet.changed": WALLET, "package.changed": PACKAGE}
CALL = "execute ingest(%s, %s::text[], %s::int8[], %s::uuid[], %s::uuid[]" + ", %s" * len(TABLES) + ", %s::uuid[]" * len(TABLES) + ")"


class Tenant:
    def __init__(self, pg, mode, customers=200):
        self.cursor = pg.connect(database=pg.create_database("tenant_x")).cursor()
        readmodels.load(self.cursor.connection)
        statements = {name: text for name, text, _ in embed_sql.load_statements(os.path.join(harness.REPO, "platform/sql/tenant"), [], False)}
        self.cursor.execute("prepare ingest as " + statements["ingest"])
        self.maker = Maker("x", 1, customers)
        for c in self.maker.customers:
            self.cursor.execute("insert into crm.customer (customer_uuid, created_at, updated_at) values (%s, now(), now())", (c,))
        for model in readmodels.MODELS if mode == "live" else ():
            while self.one("select crm.fill_live(%s, 500)", model) != "ready":
                pass
        self.pid = self.one("select pg_backend_pid()")

    def one(self, text, *args):
        self.cursor.execute(text, args)
        return self.cursor.fetchone()[0]

    def cpu(self):
        """Microseconds that the backend has worked."""
        with open("/proc/%d/schedstat" % self.pid) as f:
            return int(f.read().split()[0]) / 1000

    def event(self):
        e = self.maker.event()
        return self.event() if e["type"] == "customer.deleted" else e

    def parameters(self, n):
        """As platform/src/ingest/fold.c and write_pg.c make them."""
        rows = {t: {} for t in TABLES}
        events = [self.event() for _ in range(n)]
        for e in events:
            row = {**e["data"], "at": e["at"], "created_at": e["at"]}
            if e["type"] in STATUS:
                row["status"] = STATUS[e["type"]].index(row["status"]) + 1
            rows[e["type"]][row.get("id", row["customer_id"])] = row
        partitions = [str(i) for i in range(min(n, 8))]
        return ["q", partitions, [int(time.time() * 1e6)] * len(partitions), [e["id"] for e in events], [],
                *(json.dumps(list(r.values())) if r else None for r in rows.values()),
                *([row["customer_id"] for row in r.values()] for r in rows.values())]

    def apply(self, n, times):
        """CPU of each transaction."""
        used = []
        for _ in range(times):
            parameters = self.parameters(n)
            before = self.cpu()
            self.cursor.execute(CALL, parameters)
            assert self.cursor.fetchall() == []
            used.append(self.cpu() - before)
        return used


def functions(tenant, n, times=300):
    for text in ("set track_functions = 'all'", "select pg_stat_reset()"):
        tenant.cursor.execute(text)
    tenant.apply(n, times)
    tenant.cursor.execute("select pg_stat_force_next_flush()")
    tenant.cursor.execute("select funcname, self_time from pg_stat_user_functions order by self_time desc")
    for name, ms in tenant.cursor.fetchall():
        print("    %-45s %6.0f us" % (name, ms * 1000 / times))


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--mode", choices=["live", "views"], default="live")
    args.add_argument("--sizes", default="1,3,10,50")
    args.add_argument("--events", type=int, default=1500)
    args.add_argument("--functions", type=int)
    a = args.parse_args()
    pg = harness.Postgres()
    pg.start()
    try:
        tenant = Tenant(pg, a.mode)
        tenant.apply(100, 40)
        for n in map(int, a.sizes.split(",")):
            used = sorted(tenant.apply(n, max(20, a.events // n)))
            us = used[len(used) // 4]
            print("%s, %3d events: %6.0f us a transaction, %5.0f us an event" % (a.mode, n, us, us / n), flush=True)
        if a.functions:
            functions(tenant, a.functions)
    finally:
        pg.stop()


if __name__ == "__main__":
    main()
