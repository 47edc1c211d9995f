#!/usr/bin/python3
"""Torture: clients of all kinds use brokers while a nemesis injects faults; a checker examines the histories of the clients.

  tests/torture/torture.py --minutes 5 --seed 7            two brokers on one PostgreSQL
  tests/torture/torture.py --brokers 1                     one broker with the PostgreSQL inside
  tests/torture/torture.py --standby                       two brokers, a primary and a standby (synchronous until PromoteLagging)
  tests/torture/torture.py --only KillBroker,CrashPostgres these faults alone
  tests/torture/torture.py --check FOLDER                  the checker again, over the history that a failed round left

A run is a row of rounds. Each ends with everything healed and consumed, and is checked while the next one runs. The exit status is 1 if
something was wrong; the history of that round is kept and its folder named.
"""
import argparse
import concurrent.futures
import multiprocessing
import os
import pickle
import random
import shutil
import sys
import tempfile
import time

import checker
import history
import report
from cluster import Cluster
from nemesis import Nemesis
from scene import Scene

QUIET = 4.0  # seconds of load before the first fault and after the last


def say(text):
    print(text, flush=True)


def examine(folder, rules, rate):
    """In a process of its own: the verdict on one round."""
    events = history.read(folder)
    violations = checker.check(events, rules)
    return {"counts": report.counts(events), "recoveries": report.recoveries(events, rate),
            "lateness": report.lateness(events),
            "violations": [(v, report.story(v, events)) for v in violations[:10]], "n_violations": len(violations)}


def tell(folder, result):
    say("  %d violations; history in %s" % (result["n_violations"], folder))
    for violation, lines in sorted(result["violations"], key=lambda x: len(x[1]))[:5]:
        say("  %s: %s (partition %s of %s)" % (violation.rule.upper(), violation.text, violation.partition[1], violation.partition[0]))
        for line in lines:
            say("      " + line)


def play(cluster, nemesis, scene, seconds):
    """One round under load; how many seconds it was, and what went wrong besides what the checker finds."""
    notes = history.Writer(os.path.join(scene.folder, "nemesis.history"))
    begin = time.monotonic()
    scene.start()
    try:
        nemesis.torment(nemesis.plan(seconds - 2 * QUIET), notes, say)
        time.sleep(QUIET)
        cluster.heal()
        wrong = scene.finish()
    finally:
        scene.abandon()
        notes.close()
    return time.monotonic() - begin, wrong


def run(args, folder, prepare=None):
    """Rules that were broken; "clients" stands for those that did not end. prepare(cluster) runs before the first round."""
    totals, broken = report.Totals(), set()
    cluster = Cluster(folder, args.brokers, args.standby)
    nemesis = Nemesis(cluster, args.seed, args.only)
    pool = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    pending = []  # (folder, future) of rounds that are being checked

    def collect(patience):
        while len(pending) > patience:
            where, future = pending.pop(0)
            result = future.result()
            totals.add(result)
            if result["violations"]:
                broken.update(v.rule for v, _ in result["violations"])
                tell(where, result)
            elif not args.keep:
                shutil.rmtree(where)

    try:
        cluster.start()
        if prepare:
            prepare(cluster)
        n, deadline = 0, time.monotonic() + 60 * args.minutes  # a slow start leaves the time for the rounds
        while time.monotonic() < deadline - 10 and not broken:
            where = os.path.join(folder, "round-%d" % n)
            os.mkdir(where)
            say("round %d" % n)
            scene = Scene("%s-%d" % (args.name, n), "%s/%d" % (args.seed, n), cluster, where, args.rate, n % 2 == 1)
            seconds, wrong = play(cluster, nemesis, scene, min(args.round, deadline - time.monotonic()))
            with open(os.path.join(where, "rules"), "wb") as f:
                pickle.dump((scene.rules, args.rate), f)
            totals.seconds += seconds
            pending.append((where, pool.submit(examine, where, scene.rules, args.rate)))
            for text in wrong:
                say("  WRONG: " + text)
                broken.add("clients")
            collect(0 if broken else 1)
            if not broken:
                scene.remove()
            n += 1
        collect(0)
    finally:
        pool.shutdown()
        cluster.dispose()
        for line in totals.lines():
            say(line)
    return broken


def arguments(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--minutes", type=float, default=1.5)
    p.add_argument("--round", type=float, default=90, help="seconds of a round")
    p.add_argument("--seed", default=None, help="decides faults and clients; a new one by default")
    p.add_argument("--brokers", type=int, choices=(1, 2), default=2)
    p.add_argument("--standby", action="store_true")
    p.add_argument("--rate", type=float, default=2000, help="messages pushed per second")
    p.add_argument("--only", type=lambda s: s.split(","), default=())
    p.add_argument("--keep", action="store_true", help="keep the histories of good rounds, too")
    p.add_argument("--folder", default=None, help="where to work")
    p.add_argument("--check", metavar="FOLDER")
    args = p.parse_args(argv)
    args.seed = args.seed or str(random.SystemRandom().randrange(10 ** 6))
    args.name = "t" + args.seed
    return args


def main():
    args = arguments()
    if args.check:
        with open(os.path.join(args.check, "rules"), "rb") as f:
            result = examine(args.check, *pickle.load(f))
        tell(args.check, result)
        return 1 if result["violations"] else 0
    folder = tempfile.mkdtemp(prefix="queen-torture-", dir=args.folder)
    os.chmod(folder, 0o755)
    say("seed %s, %d broker(s), in %s" % (args.seed, args.brokers, folder))
    broken = run(args, folder)
    say("FAILED: make torture SEED=%s" % args.seed if broken else "nothing wrong")
    if not broken and not args.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
