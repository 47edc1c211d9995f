#!/usr/bin/python3
"""More clients than can be served, measured: throughput, latency and memory before, during and after.

    bench/overload.py [--seconds 10] [--times 10]

Pushes one message a request as fast as answers come; first with as many clients as keep the broker busy, then with `--times` as many, then
as before.  The broker may hold as many waiting requests as there are clients in the first step, so the others are refused (429) and,
as this client does not wait before it tries again, cost what a refusal costs.  A row without a limit follows for comparison.
"""
import argparse

from rig import Rig

CLIENTS = 64


def rss_mb(pid, what="VmRSS"):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith(what)) / 1024


def rows(title, env, args):
    rig = Rig(env)
    try:
        for clients in (CLIENTS, CLIENTS * args.times, CLIENTS):
            r = rig.bench("-w", "push", "-c", clients, "-d", args.seconds, refusals=True)
            print("| %s | %d | %.0f | %.1f | %.1f | %d | %.1f | %.1f |" % (
                title, clients, r["pushPerSecond"], r["pushMs"]["p50"], r["pushMs"]["p99"], r["httpErrors"],
                rss_mb(rig.broker.process.pid), rss_mb(rig.broker.process.pid, "VmHWM")), flush=True)
    finally:
        rig.close()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seconds", type=int, default=10)
    p.add_argument("--times", type=int, default=10)
    args = p.parse_args()
    print("| limit | clients | stored/s | p50 ms | p99 ms | refused | MB | MB at most |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    rows("%d a worker" % CLIENTS, {"QUEEN_MAX_PENDING": str(CLIENTS)}, args)
    rows("20,000 a worker (default)", {}, args)


if __name__ == "__main__":
    main()
