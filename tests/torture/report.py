"""Statistics of a run: faults by kind, checks, recovery times; and the shortest history of a violation."""
import collections

from history import OK

WINDOW = 1.0  # seconds over which a rate is taken
SHOWN = 40    # events of a violation at most


def recoveries(events, rate):
    """[(kind of fault, {operation: seconds from the end of the fault to its first success, "95 %": ... to that rate})]"""
    done = {"push": sorted(e.t1 for e in events if e.kind == "push" and e.outcome == OK and e.stored == "queued"),
            "pop": sorted(e.t1 for e in events if e.kind == "pop"),
            "ack": sorted(e.t1 for e in events if e.kind == "ack" and e.outcome == OK),
            "transaction": sorted(e.t1 for e in events if e.kind == "txn" and e.outcome == OK)}
    pushed = sorted((e.t1, e.count) for e in events if e.kind == "push" and e.outcome == OK)
    faults = sorted((e for e in events if e.kind == "fault"), key=lambda e: e.t0)
    found = []
    for fault in faults:
        times = {op: next((t - fault.t1 for t in ts if t > fault.t1), None) for op, ts in done.items()}
        times["95 %"] = _to_rate(pushed, fault.t1, 0.95 * rate)
        found.append((fault.name, times))
    return found


def _to_rate(pushed, since, rate):
    """Seconds until a window begins in which so much was pushed per second; None if none does."""
    at = [(t, n) for t, n in pushed if t >= since]
    low, total = 0, 0
    for high, (t, n) in enumerate(at):
        total += n
        while t - at[low][0] > WINDOW:
            total -= at[low][1]
            low += 1
        if total >= rate * WINDOW:
            return at[low][0] - since
    return None


def lateness(events):
    """Seconds from the time of each scheduled message to its first delivery."""
    due, late = {}, {}
    for e in events:
        if e.kind == "schedule" and e.outcome == OK:
            due[e.queue, e.partition, e.producer, e.n] = e.t1 + e.delay
    for e in events:
        if e.kind == "pop":
            for producer, n, _ in e.messages:
                key = (e.queue, e.partition, producer, n)
                if key in due:
                    late[key] = min(late.get(key, 1e9), e.t1 - due[key])
    return sorted(late.values())


class Totals:
    """Summed over rounds."""

    def __init__(self):
        self.counts, self.faults = collections.Counter(), collections.Counter()
        self.times = collections.defaultdict(lambda: collections.defaultdict(list))  # fault -> operation -> seconds
        self.seconds, self.late = 0.0, []

    def add(self, result):
        self.late = sorted(self.late + result["lateness"])
        self.counts.update(result["counts"])
        for name, times in result["recoveries"]:
            self.faults[name] += 1
            for op, t in times.items():
                if t is not None:
                    self.times[name][op].append(t)

    def lines(self):
        yield "%.0f s of load, %d faults" % (self.seconds, sum(self.faults.values()))
        yield "; ".join("%s %d" % (k, v) for k, v in sorted(self.counts.items()))
        if self.late:
            yield "scheduled messages, seconds late: median %.3f, 99 %% %.3f, longest %.3f" % (
                self.late[len(self.late) // 2], self.late[len(self.late) * 99 // 100], self.late[-1])
        yield "seconds from the end of a fault, median / longest:"
        ops = ("push", "pop", "ack", "transaction", "95 %")
        yield "  %-18s %5s  %s" % ("fault", "times", "".join("%-15s" % op for op in ops))
        for name, n in sorted(self.faults.items()):
            cells = []
            for op in ops:
                ts = sorted(self.times[name][op])
                cells.append("%-15s" % ("%.2f / %.2f" % (ts[len(ts) // 2], ts[-1]) if ts else "-"))
            yield "  %-18s %5d  %s" % (name, n, "".join(cells))


def counts(events):
    c = collections.Counter()
    for e in events:
        if e.kind == "push":
            if e.outcome == OK:
                c["messages pushed"] += e.count
                c["buffered"] += e.count if e.stored == "buffered" else 0
            else:
                c["pushes of unknown outcome"] += 1
        elif e.kind == "pop":
            c["messages delivered"] += len(e.messages)
        elif e.kind == "txn":
            c["transactions"] += 1
        elif e.kind == "ack":
            c["acknowledgements " + e.outcome] += 1
        elif e.kind == "schedule":
            c["scheduled"] += 1
        elif e.kind == "take":
            c["messages delivered"] += len(e.messages)
            c["jobs delivered"] += len(e.messages)
        elif e.kind == "settle":
            c.update("jobs %s %s" % (m[1], m[3]) for m in e.messages)
        elif e.kind == "try":
            c["messages delivered"] += len(e.messages)
            c["retries"] += sum(m[2] > 1 for m in e.messages)
    return c


def story(violation, events):
    """The events that the violation is about, oldest first, as lines."""
    wanted = set(violation.messages)
    leases = {e.lease for e in events if e.kind == "pop" and e.group == violation.group and any(m[2] in wanted for m in e.messages)}
    lines = []
    for e in events:
        if e.kind == "fault":
            lines.append((False, "%10.3f - %10.3f  FAULT %s of broker %s" % (e.t0, e.t1, e.name, e.target)))
        elif (getattr(e, "queue", None), getattr(e, "partition", None)) == violation.partition:
            text = _concerns(e, violation.group, wanted, leases)
            if text:
                lines.append((True, "%10.3f - %10.3f  %s" % (e.t0, e.t1, text)))
    first = next((i for i, (about, _) in enumerate(lines) if about), 0)
    last = max((i for i, (about, _) in enumerate(lines) if about), default=-1)
    lines = [text for _, text in lines[max(0, first - 1):last + 1]]
    return lines[:SHOWN] + (["... %d more" % (len(lines) - SHOWN)] if len(lines) > SHOWN else [])


def _concerns(e, group, wanted, leases):
    if e.kind == "push":
        if any(id in wanted for id in e.ids or ()) or (group is None and not e.ids):
            return "push %s %d..%d to broker %d: %s %s" % (e.producer, e.first, e.first + e.count - 1, e.broker, e.outcome, e.stored)
    elif e.kind == "pop" and group in (None, e.group):
        hit = [m for m in e.messages if m[2] in wanted]
        if hit:
            return "pop by %s of broker %d, lease %s: %d messages %s..%s, with %s" % (
                e.group, e.broker, e.lease, len(e.messages), e.messages[0][:2], e.messages[-1][:2],
                " ".join("%s/%d=%s" % (p, n, id.hex()) for p, n, id in hit[:3]))
    elif e.kind == "take" and group in (None, e.group):
        hit = [m for m in e.messages if m[2] in wanted]
        if hit:
            return "pop by %s of broker %d, lease %s: %d messages, with %s" % (
                e.group, e.broker, e.lease, len(e.messages), " ".join("%s/%d=%s" % (p, n, id.hex()) for p, n, id in hit[:3]))
    elif e.kind == "settle" and e.group == group:
        hit = [m for m in e.messages if m[0] in wanted]
        if hit:
            return "settled under %s: %s" % (e.lease, " ".join("%s %s %s after %s s" % (m[0].hex(), m[1], m[3], m[2]) for m in hit[:3]))
    elif e.kind == "ack" and e.group == group and e.lease in leases:
        return "ack by %s under %s through %s: %s%s" % (e.group, e.lease, e.through.hex() if e.through else "none", e.outcome,
                                                        ", ends it" if e.ends else "")
    elif e.kind == "txn" and e.group == group and wanted & set(e.sources):
        return "transaction under %s: %s, made %s .." % (e.lease, e.outcome, e.made[0])
    return None
