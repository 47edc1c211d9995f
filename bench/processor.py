#!/usr/bin/python3
"""The event processor, measured: events a second, bursts, and processes that come, go, die and sleep.

    bench/processor.py [--seconds 60] [--stops 20] [--churn-minutes 10] [--expiry 60] [--churn-rate 1000]

Three processes (tests/support/client_worker.c: one line per event) share 32 partitions.  First a steady 3,333 events/s, then bursts of
10,000/s for five seconds out of fifteen, then clean stops, one of six processes each time, then churn: kill -9, SIGSTOP until well past the expiry, SIGTERM and starts, between one and six
processes.  At the end every event must have been handled, in the order of its partition, and nobody may have gone on with a partition after
somebody else had it.  The exit status is 1 if not.
"""
import argparse
import json
import random
import signal
import sys
import threading
import time

from rig import Rig, cpu, harness, percentile, stat
from test_processor import Crew

LOOK_MS = 500  # the library's default


class Pusher(threading.Thread):
    """Pushes `rate()` events a second until stopped; payloads carry a number and the time."""

    def __init__(self, crew, rate):
        super().__init__()
        self.crew, self.rate, self.over = crew, rate, threading.Event()

    def run(self):
        due = time.monotonic()
        while not self.over.is_set():
            first, size = self.crew.n, max(1, int(self.rate() / 20))
            self.crew.broker.push([{"queue": self.crew.queue, "partitionKey": "k%d" % (i % 400),
                                    "payload": {"n": i, "at": time.monotonic()}} for i in range(first, first + size)]).expect(201)
            self.crew.n += size
            due = max(due + 0.05, time.monotonic() - 1)
            time.sleep(max(0, due - time.monotonic()))

    def finish(self):
        self.over.set()
        self.join()


def drain(crew):
    harness.wait_until(lambda: sum(o["lag"] for o in crew.records()) == 0, 600, "everything is acknowledged", 0.2)


def load(rig, crew, title, seconds, rate):
    first, used, begin = crew.n, cpu(rig.broker.process.pid, rig.pg.process.pid), time.monotonic()
    workers = sum(stat(w.process.pid)[1] for w in crew.made)
    pusher = Pusher(crew, rate)
    pusher.start()
    time.sleep(seconds)
    pusher.finish()
    pushed, end = crew.n - first, time.monotonic()
    drain(crew)
    late = time.monotonic() - end
    used = cpu(rig.broker.process.pid, rig.pg.process.pid) - used
    workers = sum(stat(w.process.pid)[1] for w in crew.made) - workers
    ages = [at - e["at"] for w in crew.made for at, _, _, e in w.events() if e["n"] >= first]
    print("%s: %d events, %.0f/s, drained %.1f s after the last push; push to handler p50 %.0f ms, p99 %.0f ms; "
          "CPU s per 1M: broker and PostgreSQL %.1f, workers %.1f" % (
              title, pushed, pushed / (end - begin), late, percentile(ages, .5) * 1000, percentile(ages, .99) * 1000,
              used * 1e6 / pushed, workers * 1e6 / pushed), flush=True)


def check(crew):
    """The mistakes, and how many events were handled more than once."""
    wrong, last, holder, times = [], {}, {}, {}
    steps = sorted((at, w.name, line) for w in crew.made for at, line in list(w.lines))
    for at, name, line in steps:
        word, partition = line.split(" ", 2)[:2] if " " in line else (line, "")
        if word == "opened":
            holder[partition] = name
        elif word == "event":
            n = json.loads(line.split(" ", 3)[3])["n"]
            times[n] = times.get(n, 0) + 1
            if holder.get(partition) != name:
                wrong.append("%s handled %d of %s, which %s has" % (name, n, partition, holder.get(partition)))
            if times[n] == 1:
                if n < last.get(partition, -1):
                    wrong.append("%d after %d in %s" % (n, last[partition], partition))
                last[partition] = n
    missing = [n for n in range(crew.n) if n not in times]
    if missing:
        wrong.append("%d events were never handled, %d among them" % (len(missing), missing[0]))
    return wrong, sum(t > 1 for t in times.values())


def settle(crew, alive):
    """Until each has its share, one more or less."""
    def even():
        counts = [list(crew.owners().values()).count(w.name) for w in alive]
        return sum(counts) == 32 and max(counts) - min(counts) <= 1
    harness.wait_until(even, 60, "they share evenly", 0.1)


def stops(crew, alive, args):
    """Six processes under load; one is stopped: how long until others have all its partitions?"""
    took, pusher = [], Pusher(crew, lambda: args.churn_rate)
    pusher.start()
    for i in range(args.stops):
        while len(alive) < 6:
            alive.append(crew.start("s%d" % len(crew.made), expiry=args.expiry, look_ms=LOOK_MS))
        settle(crew, alive)
        time.sleep(random.uniform(0, LOOK_MS / 1000))
        w, begin = alive.pop(i * 5 % 6), time.monotonic()
        w.signal(signal.SIGTERM)
        harness.wait_until(lambda: w.name not in crew.owners().values() and len(crew.owners()) == 32, 60, "they have new owners", 0.01)
        took.append(time.monotonic() - begin)
        w.stop()
    pusher.finish()
    drain(crew)
    print("clean stop of one of six, %d times: new owners of its partitions after p50 %.0f ms, at most %.0f ms" % (
        len(took), percentile(took, .5) * 1000, max(took) * 1000), flush=True)


class Churn:
    def __init__(self, crew, args):
        self.crew, self.args, self.random = crew, args, random.Random(7)
        self.alive, self.asleep, self.n = [w for w in crew.made if w.process.poll() is None], [], len(crew.made)
        self.took = {"kill": [], "stop": []}

    def start(self):
        self.n += 1
        self.alive.append(self.crew.start("w%d" % self.n, expiry=self.args.expiry, look_ms=LOOK_MS))

    def settled(self, gone):
        return gone not in self.crew.owners().values() and len(self.crew.owners()) == 32

    def remove(self, how):
        w = self.alive.pop(self.random.randrange(len(self.alive)))
        begin = time.monotonic()
        if how == "kill":
            w.process.kill()
        else:
            w.stop()
        harness.wait_until(lambda: self.settled(w.name), self.args.expiry + 60, "its partitions have new owners", 0.1)
        self.took[how].append(time.monotonic() - begin)

    def sleep(self):
        w = self.alive.pop(self.random.randrange(len(self.alive)))
        w.signal(signal.SIGSTOP)
        self.asleep.append((time.monotonic() + self.args.expiry + 5, w))

    def run(self):
        end = time.monotonic() + 60 * self.args.churn_minutes
        pusher = Pusher(self.crew, lambda: self.args.churn_rate)
        pusher.start()
        while time.monotonic() < end:
            for due, w in [s for s in self.asleep if s[0] < time.monotonic()]:
                w.signal(signal.SIGCONT)
                self.asleep.remove((due, w))
                self.alive.append(w)
            choice = self.random.choice(["start"] * (2 if len(self.alive) < 3 else 1) + ["kill", "stop", "sleep"])
            if choice == "start" and len(self.alive) < 6:
                self.start()
            elif choice == "sleep" and len(self.alive) > 1:
                self.sleep()
            elif choice in self.took and len(self.alive) > 1:
                self.remove(choice)
            time.sleep(self.random.uniform(1, 5))
        pusher.finish()
        for _, w in self.asleep:
            w.signal(signal.SIGCONT)
        drain(self.crew)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seconds", type=int, default=60)
    p.add_argument("--stops", type=int, default=20)
    p.add_argument("--churn-minutes", type=float, default=10)
    p.add_argument("--expiry", type=int, default=60)
    p.add_argument("--churn-rate", type=int, default=1000)
    args = p.parse_args()
    rig = Rig()
    crew = Crew(rig.broker, "bench", "workers")
    try:
        rig.broker.configure("bench", partitions=32)
        for i in range(3):
            crew.start("w%d" % (i + 1), expiry=args.expiry, look_ms=LOOK_MS)
        harness.wait_until(lambda: len(crew.owners()) == 32, 30, "all partitions have owners")
        if args.seconds > 0:
            load(rig, crew, "steady", args.seconds, lambda: 3333)
            load(rig, crew, "bursts", args.seconds, lambda: 10000 if time.monotonic() % 15 < 5 else 100)
        if args.stops > 0:
            stops(crew, list(crew.made), args)
        churn = Churn(crew, args)
        churn.run()
        wrong, twice = check(crew)
        for how, took in churn.took.items():
            print("%s: %d times, new owners of all partitions after at most %.1f s" % (how, len(took), max(took, default=0)))
        print("%d events, %d processes in all; %d events handled more than once; %d things wrong%s" % (
            crew.n, churn.n, twice, len(wrong), "".join("\n  " + w for w in wrong[:10])))
        return 1 if wrong else 0
    finally:
        for w in crew.made:
            if w.process.poll() is None:
                w.signal(signal.SIGCONT)
                w.process.kill()
                w.process.wait()
        rig.close()


if __name__ == "__main__":
    sys.exit(main())
