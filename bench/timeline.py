#!/usr/bin/python3
"""GET /api/v1/messages/timeline, measured with many messages stored.

    bench/timeline.py [--messages 10000000] [--partitions 100] [--asks 300]

Every message has a transaction id of its producer's, every fourth a correlation id.  A group consumes the first 100,000 and fails with every
tenth of 1000 of them; another 1000 messages waited for their time.  Then questions about messages chosen at random, one after the other;
CPU is what broker and PostgreSQL worked for one of them.
"""
import argparse
import os
import random
import time
from urllib.parse import urlencode

from rig import Rig, percentile, push_all

QUEUE, GROUP = "orders", "mailer"


def item(i, partitions):
    it = {"queue": QUEUE, "partition": str(i % partitions), "transactionId": "order-%d" % i, "payload": {"order": i, "state": "paid"}}
    if i % 4 == 0:
        it["correlationId"] = "case-%d" % i
    return it


class Bench(Rig):
    def __init__(self, args):
        super().__init__(shared_buffers="1GB")
        self.args = args
        self.rng = random.Random(1)

    def fill(self):
        n, partitions = self.args.messages, self.args.partitions
        self.broker.configure(QUEUE, retryPolicy={"mode": "scheduled"})
        begin = time.monotonic()
        push_all(self.broker, (item(i, partitions) for i in range(n)), batch=1000)
        print("%d messages in %.0f s" % (n, time.monotonic() - begin), flush=True)
        self.fired = [r["messageId"] for k in range(10) for r in self.broker.push(
            [{"queue": QUEUE, "partition": str(i % partitions), "payload": i, "delaySeconds": 0.5} for i in range(k * 100, k * 100 + 100)]
        ).expect(201).json]
        while self.sql("select exists (select from queen.scheduled where kind = 'p')")[0][0]:
            time.sleep(0.1)

    def consume(self):
        self.ids, self.failed = [], []
        for nth in range(min(100, self.args.messages // 1000)):
            ms = self.broker.take(QUEUE, batch=1000, partitions=10, consumerGroup=GROUP)
            self.ids += [m["id"] for m in ms]
            entries = []
            for i, m in enumerate(ms):
                bad = nth == 0 and i % 10 == 9
                if bad:
                    self.failed.append(m["id"])
                entries.append(self.broker.ack_entry(m, "failed" if bad else "completed"))
            self.broker.ack_batch(entries, group=GROUP)

    def ask(self):
        n, asks, partitions = self.args.messages, self.args.asks, self.args.partitions
        some = [self.rng.randrange(n // 4) * 4 for _ in range(asks)]
        kinds = {
            "`correlationId`": [{"correlationId": "case-%d" % i} for i in some],
            "`transactionId`, `queue` and `partition`": [{"transactionId": "order-%d" % i, "queue": QUEUE, "partition": i % partitions}
                                                         for i in some],
            "`transactionId` and `queue` (%d partitions)" % partitions: [{"transactionId": "order-%d" % i, "queue": QUEUE} for i in some],
            "`messageId`": [{"messageId": self.rng.choice(self.ids)} for _ in some],
            "`messageId`, failed and waiting for its retry": [{"messageId": self.rng.choice(self.failed)} for _ in some],
            "`messageId`, waited for its time": [{"messageId": self.rng.choice(self.fired)} for _ in some],
        }
        print("load %.1f; database %s" % (os.getloadavg()[0], self.sql("select pg_size_pretty(pg_database_size(current_database()))")[0][0]))
        print("| by | p50 ms | p99 ms | CPU ms |\n| --- | --- | --- | --- |")
        for kind, questions in kinds.items():
            before = self.cpu()
            ms = self.times(["/api/v1/messages/timeline?" + urlencode(q) for q in questions])
            used = (self.cpu() - before) * 1000 / len(ms)
            print("| %s | %.1f | %.1f | %.1f |" % (kind, percentile(ms, 0.5), percentile(ms, 0.99), used), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10000000)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--asks", type=int, default=300)
    bench = Bench(parser.parse_args())
    try:
        bench.fill()
        bench.consume()
        for _ in range(2):  # the second time what the first has read is in memory
            bench.ask()
    finally:
        bench.close()


if __name__ == "__main__":
    main()
