#!/usr/bin/python3
"""A transaction that is left open, measured: what it does to throughput, latency, dead rows and disk.

    bench/held_xmin.py [--minutes 60] [--before 5] [--rate 5000] [--work-queue]

Load at a steady rate (push, pop, ack) with retention of consumed messages after a minute; first some minutes as they are, then one REPEATABLE
READ transaction is held open for the rest.  One line a minute, and at the end the dead rows of every table.  Starts a PostgreSQL and a broker of
its own.
"""
import argparse
import threading

from rig import Rig

QUEUE = "held"

FIGURES = """
    select coalesce(sum(n_dead_tup) filter (where relname = 'segments'), 0)::bigint,
           coalesce(sum(n_dead_tup) filter (where relname <> 'segments'), 0)::bigint,
           coalesce((array_agg(relname || ' ' || n_dead_tup order by n_dead_tup desc) filter (where relname <> 'segments'))[1], ''),
           (select sum(pg_total_relation_size(c.oid)) / 1048576 from pg_class c join pg_namespace n on n.oid = c.relnamespace
             where n.nspname = 'queen' and c.relkind = 'r')::bigint
      from pg_stat_user_tables where schemaname = 'queen'"""

TABLES = """
    select relname, n_live_tup, n_dead_tup, n_tup_upd, n_tup_del, pg_total_relation_size(relid) / 1024
      from pg_stat_user_tables where schemaname = 'queen' and n_dead_tup > 0 order by n_dead_tup desc"""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--minutes", type=int, default=60)
    p.add_argument("--before", type=int, default=5, help="minutes without it")
    p.add_argument("--rate", type=int, default=5000)
    p.add_argument("--work-queue", action="store_true", help="a work queue with one partition; messages are acknowledged")
    args = p.parse_args()
    kind = ("-K", "-p", 1, "-L", 60) if args.work_queue else ()
    rig = Rig()
    try:
        def configure():
            rig.broker.configure(QUEUE, retentionEnabled=True, completedRetentionSeconds=60, **({"ordering": "none"} if args.work_queue else {}))

        configure()
        print("| minute | held | delivered/s | p50 ms | p99 ms | CPU s per 1M | dead segments | dead rows of other tables | most of them in | MB |")
        print("|" + " --- |" * 10, flush=True)
        holder = None
        for n in range(args.before + args.minutes):
            if n == args.before:
                holder = rig.pg.connect(autocommit=False)
                holder.set_session(isolation_level="REPEATABLE READ")
                holder.cursor().execute("select txid_current()")
            if args.work_queue:  # the load generator configures a work queue without retention when it begins
                threading.Timer(3, configure).start()
            r = rig.bench("-w", "e2e", "-q", QUEUE, "-r", args.rate, "-b", 10, "-a", "-d", 58, *kind)
            dead, others, where, size = rig.sql(FIGURES)[0]
            print("| %d | %s | %.0f | %.1f | %.1f | %.1f | %d | %d | %s | %d |" % (
                n, "yes" if holder else "no", r["popPerSecond"], r["e2eMs"]["p50"], r["e2eMs"]["p99"],
                r["cpuBrokerPerM"] + r["cpuPgPerM"], dead, others, where, size), flush=True)
        print("\n| table | live rows | dead rows | updated so far | removed so far | kB |")
        print("|" + " --- |" * 6)
        for row in rig.sql(TABLES):
            print("| %s | %d | %d | %d | %d | %d |" % row)
    finally:
        rig.close()


if __name__ == "__main__":
    main()
