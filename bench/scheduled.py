#!/usr/bin/python3
"""Scheduled delivery, measured: CPU of inserting and firing beside plain push; lateness and pages with many waiting.

    bench/scheduled.py [--messages 100000] [--waiting 1000,100000,10000000] [--samples 200]

Starts a PostgreSQL (fsync off: this is about CPU) and a broker of its own.  CPU is that of the broker and of all processes of
PostgreSQL, from /proc; the client's is not in it.  Lateness is by PostgreSQL's clock: created_at of the delivered message minus its time.
"""
import argparse
import random
import threading
import time
from datetime import datetime, timedelta, timezone

from rig import Rig, percentile, push_all

FIRST = 10 ** 15  # numbers of generated messages


class Bench(Rig):
    def __init__(self, args):
        super().__init__()
        self.args = args

    def measured(self, what, n, work):
        before, begin = self.cpu(), time.monotonic()
        work()
        wall = time.monotonic() - begin
        used = self.cpu() - before
        print("| %s | %d | %.1f | %.0f |" % (what, n, used * 1e6 / n, n / wall), flush=True)

    def throughput(self):
        n = self.args.messages
        print("| what | messages | CPU-s per million | per second |\n| --- | --- | --- | --- |")
        items = lambda **more: [dict({"queue": "q", "partition": str(i % 100), "payload": {"n": i}}, **more) for i in range(n)]  # noqa: E731
        self.measured("plain push", n, lambda: push_all(self.broker, items()))
        when = (datetime.now(timezone.utc) + timedelta(hours=1, minutes=30)).isoformat()
        self.measured("scheduled push", n, lambda: push_all(self.broker, items(scheduledAt=when)))
        self.sql("update queen.scheduled set due_at = now() + interval '3 seconds', slice = 0")
        self.sql("vacuum analyze queen.scheduled")
        self.broker.post("/api/v1/schedules", {"name": "wake", "queue": "none", "cron": "@yearly"})
        while self.sql("select min(due_at) > now() from queen.scheduled")[0][0]:
            time.sleep(0.01)

        def fired():
            while self.sql("select exists (select from queen.scheduled)")[0][0]:
                time.sleep(0.05)
        self.measured("firing", n, fired)

    def fill(self, n):
        """Up to n messages wait for times from tomorrow to two years ahead."""
        have = self.sql("select coalesce(max(num), %s) - %s from queen.scheduled where num > %s", FIRST, FIRST, FIRST)[0][0]
        self.broker.push([{"queue": "fill", "partition": str(i), "payload": i, "scheduledAt": "2034-01-01T00:00:00Z"} for i in range(100)])
        self.sql("select * from queen.maintain_slices()")
        lanes = [r[0] for r in self.sql("select l.num from queen.lanes l join queen.queues q on q.id = l.queue_id where q.name = 'fill'")]
        while have < n:
            some = min(500000, n - have)
            self.sql("""with k as materialized (
                            select %s + g as num, (%s::bigint[])[1 + g %% 100] as lane, gen_random_uuid() as key,
                                   now() + interval '1 day' + random() * interval '729 days' as due
                              from generate_series(1, %s) g),
                        m as (insert into queen.message_keys (lane, key, seq) select lane, key, -num from k)
                        insert into queen.scheduled (num, due_at, created_at, lane, id, key, kind, transaction_id, message)
                        select num, due, now(), lane, ('00000000-0000-7000-8' || lpad(to_hex(num), 15, '0'))::uuid, key, 'p', key::text,
                               queen.pack_message(null, null, null, false, key, null, '{"some": "payload of a usual length, say a hundred bytes or so ..."}')
                          from k""", FIRST + have, lanes, some)
            have += some
        self.sql("analyze queen.scheduled")

    def late(self, waiting):
        queue, rng, due, got = "late-%d" % waiting, random.Random(1), {}, []
        done = threading.Event()

        def take():
            while not done.is_set() or len(got) < len(due):
                got.extend(self.broker.take(queue, wait=True, timeout=1000, autoAck=True, batch=100))

        taker = threading.Thread(target=take)
        taker.start()
        for i in range(self.args.samples):
            (r,) = self.broker.push([{"queue": queue, "payload": i, "delaySeconds": 0.2 + rng.random() / 2}]).expect(201).json
            due[r["messageId"]] = datetime.fromisoformat(r["scheduledAt"].replace("Z", "+00:00"))
            time.sleep(0.05)
        done.set()
        taker.join()
        ms = [(datetime.fromisoformat(m["createdAt"].replace("Z", "+00:00")) - due[m["id"]]).total_seconds() * 1000 for m in got]
        return percentile(ms, 0.5), percentile(ms, 0.99), max(ms)

    def timed(self, path, times=20):
        return percentile(self.times([path] * times), 0.5)

    def crowd(self):
        print("\n| waiting | late p50 ms | p99 | worst | page of all ms | page of a partition | by prefix | one by id | count of a partition |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        for n in (int(x) for x in self.args.waiting.split(",")):
            self.fill(n)
            late = self.late(n)
            (num, tx), = self.sql("select id, transaction_id from queen.scheduled where num = %s", FIRST + n)
            print("| %d | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |" % (
                (n,) + late + (self.timed("/api/v1/scheduled"), self.timed("/api/v1/scheduled?queue=fill&partition=7"),
                               self.timed("/api/v1/scheduled?transactionIdPrefix=" + tx[:20]), self.timed("/api/v1/scheduled/%s" % num),
                               self.timed("/api/v1/scheduled/count?queue=fill&partition=7", times=3))), flush=True)

    def cancel(self):
        n = self.sql("select count(*) from (select from queen.scheduled limit 500000) s")[0][0]
        to = self.sql("select due_at from queen.scheduled order by due_at offset %s limit 1", n - 1)[0][0]
        begin = time.monotonic()
        r = self.broker.request("DELETE", "/api/v1/scheduled?to=" + to.isoformat().replace("+", "%2B"), timeout=300).expect(200).json
        print("\ncancelled %d in %.1f s" % (r["cancelled"], time.monotonic() - begin))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100000)
    parser.add_argument("--waiting", default="1000,100000,10000000")
    parser.add_argument("--samples", type=int, default=200)
    bench = Bench(parser.parse_args())
    try:
        bench.throughput()
        bench.crowd()
        bench.cancel()
    finally:
        bench.close()


if __name__ == "__main__":
    main()
