#!/usr/bin/env python3
"""The table of a run of bench/run.sh: one line per row, beside the goals of the design."""
import argparse
import datetime
import json
import os
import platform


def cpu(r):
    """CPU seconds per million messages, broker + PostgreSQL; None where one is unknown."""
    if r.get("cpuBrokerPerM") is None or r.get("cpuPgPerM") is None:
        return None
    return r["cpuBrokerPerM"] + r["cpuPgPerM"]


def at(*path):
    def get(r):
        for key in path:
            r = r.get(key) if isinstance(r, dict) else None
        return r
    return get


def idle_cores(r):
    if r.get("coresBroker") is None or r.get("coresPg") is None:
        return None
    return (r["coresBroker"] + r["coresPg"]) * 100


def growth(later, earlier, count):
    return lambda r: (r[later] - r[earlier]) / r[count] if r.get(count) and r.get("brokerPid") else None


def wrong(r):
    return r["lost"] + r["repeated"] + r["disordered"]


def pace(r):
    """Popped per pushed during the measured time."""
    return r.get("popPerSecond", 0) / r["pushPerSecond"] if r.get("pushPerSecond") else None


WAL = at("probePerMessage")
P50, P99 = at("e2eMs", "p50"), at("e2eMs", "p99")
KEEPS_UP = [("wrong", wrong, "<=", 0, None), ("left", at("leftOver"), "<=", 0, None), ("pop/push", pace, ">=", 0.95, None)]


def end_to_end(p50, p99):
    return [("p50 ms", P50, "<=", p50, None), ("p99 ms", P99, "<=", p99, None)]


# row -> (what, value, comparison, goal, second goal)
GOALS = {
    "A1": [("CPU", cpu, "<=", 300, None)],
    "A3": [("CPU", cpu, "<=", 35, 20), ("p99 ms", at("pushMs", "p99"), "<", 10, None), ("WAL B", WAL, "<=", 250, None)],
    "A6": [("CPU", cpu, "<=", 8, 4.4), ("WAL B", WAL, "<=", 200, None)],
    "A8": [("CPU", cpu, "<=", 5, None), ("WAL B", WAL, "<=", 200, None)],
    "A9": [("CPU", cpu, "<=", 50, 35)],
    "B1": [("CPU", cpu, "<=", 4, 3)],
    "B2": [("CPU", cpu, "<=", 60, 35)],
    "B3": [("CPU", cpu, "<=", 8, 6)],
    "C1": [("CPU", cpu, "<=", 700, None)] + end_to_end(1.0, 4),
    "C2": [("CPU", cpu, "<=", 1000, None)] + end_to_end(3, 10),
    "C4": [("CPU", cpu, "<=", 80, 50)] + KEEPS_UP,
    "C5": [("CPU", cpu, "<=", 20, 12)] + KEEPS_UP,
    "D1": [("CPU", cpu, "<=", 4, 3)],
    "E1": [("CPU", cpu, "<=", 20, 12)],
    "E2": [("CPU", cpu, "<=", 60, None), ("slowest pop ms", at("popMs", "max"), "<", 500, None)],
    "P": [("CPU", cpu, "<=", 20, 8), ("p50 ms", P50, "<=", 50, None), ("pop/push", pace, ">=", 0.95, None)],
    "W2": [("CPU", cpu, "<=", 12, None)],
    "W3": [("jobs/s", at("popPerSecond"), ">=", 4750, None)],
    "W4": end_to_end(3, 10),
    "I": [("% of a core", idle_cores, "<", 2, None),
          ("KB a queue", growth("rssQueuesKb", "rssBareKb", "queues"), "<", 1, None),
          ("KB a consumer", growth("rssParkedKb", "rssQueuesKb", "parked"), "<", 1, None)],
}


def number(v, digits=1):
    if v is None:
        return ""
    return f"{v:,.0f}" if abs(v) >= 1000 else f"{v:.{digits}f}"


def holds(value, comparison, goal):
    return {"<": value < goal, "<=": value <= goal, ">=": value >= goal}[comparison]


def judge(r):
    """Text of the goal column and whether all first goals are met (None: nothing to judge)."""
    texts, verdicts = [], []
    for what, value_of, comparison, goal, then in GOALS.get(r["label"], []):
        value = value_of(r)
        if value is None:
            texts.append(f"{what} {comparison} {goal}: not measured")
            continue
        met = holds(value, comparison, goal)
        mark = "met" if met else "MISSED"
        if met and then is not None:
            mark = f"met, then {then} too" if holds(value, comparison, then) else f"met, not yet {then}"
        texts.append(f"{what} {number(value, 2)} {comparison} {goal}: {mark}")
        verdicts.append(met)
    return "; ".join(texts), all(verdicts) if verdicts else None


def rates(r):
    parts = [f"{op} {number(r[op + 'PerSecond'], 0)}" for op in ("push", "pop", "ack") if r.get(op + "PerSecond")]
    return ", ".join(parts)


def latency(r):
    parts = []
    for key, name in (("pushMs", "push"), ("popMs", "pop"), ("ackMs", "ack"), ("e2eMs", "e2e")):
        # With long polls a pop takes as long as the next message does: not a latency.
        if key in r and not (key == "popMs" and r["waitMs"] > 0):
            parts.append(f"{name} {r[key]['p50']:.2f} / {r[key]['p99']:.2f}")
    return ", ".join(parts)


def health(r):
    bad = {k: r[k] for k in ("lost", "repeated", "disordered", "leftOver", "httpErrors", "connErrors", "notAccepted",
                             "acksRefused") if r.get(k)}
    return ", ".join(f"{k} {v}" for k, v in bad.items()) or "clean"


def markdown(result):
    out = [f"# {result['date']}, commit {result['commit']}", "",
           f"{result['cores']} cores, {result['machine']}, PostgreSQL {result['postgresql'] or 'not reached'}, "
           f"{result['secondsPerRow']} s a row.", "",
           "| row | msg/s | p50 / p99 ms | CPU-s per 1M: broker + PostgreSQL | WAL B/msg | checks | goal | |",
           "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for r in result["rows"]:
        goal, met = judge(r)
        cpus = f"{number(r.get('cpuBrokerPerM'))} + {number(r.get('cpuPgPerM'))}" if cpu(r) is not None else ""
        out.append(f"| {r['label']} | {rates(r)} | {latency(r)} | {cpus} | {number(r.get('probePerMessage'), 0)} | "
                   f"{health(r)} | {goal} | {'' if met is None else 'pass' if met else 'FAIL'} |")
    out += ["", "Raw limit of the same PostgreSQL in the same run (binary COPY of 100-byte rows):", "",
            "| connections | rows a transaction | rows/s | p50 / p99 ms | CPU-s per 1M | WAL B/row |",
            "| --- | --- | --- | --- | --- | --- |"]
    for r in result["raw"]:
        out.append(f"| {r['connections']} | {r['rowsPerTransaction']} | {r['rowsPerSecond']:,.0f} | "
                   f"{r['p50Ms']:.2f} / {r['p99Ms']:.2f} | {r['cpuPgPerM']:.1f} | {r['walPerRow']:.0f} |")
    return "\n".join(out) + "\n"


def read_lines(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("rows", "raw", "commit", "json", "markdown"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--pg-version", default="")
    args = parser.parse_args()
    result = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": args.commit, "secondsPerRow": args.seconds, "postgresql": args.pg_version,
        "cores": os.cpu_count(), "machine": platform.platform(),
        "rows": read_lines(args.rows), "raw": read_lines(args.raw),
    }
    with open(args.json, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    text = markdown(result)
    with open(args.markdown, "w") as f:
        f.write(text)
    print(text, end="")


main()
