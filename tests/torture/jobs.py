"""The rules of work queues, for checker.py.  Pure, like it."""
import collections

from history import OK, REJECTED, key_of

# A delivery of one message: to, from when and until when a client certainly has it.
Held = collections.namedtuple("Held", "take since until message")


class Jobs:
    """The history of the messages of one work queue for its one group."""

    def __init__(self, log, queue, seconds, slack):
        self.first = {}                                   # (lease, id) -> when its first settlement was sent that may have had an effect
        self.settled = collections.defaultdict(list)      # id -> (t0, t1, lease, status, delay, outcome)
        self.takes = log.takes[queue]
        for e in sorted(log.settles[queue], key=lambda e: e.t0):
            for id, status, delay, outcome in e.messages:
                self.settled[id].append((e.t0, e.t1, e.lease, status, delay, outcome))
                if outcome != REJECTED:
                    self.first.setdefault((e.lease, id), e.t0)
        self.held = collections.defaultdict(list)         # id -> Held
        for e in self.takes:
            ends = max([e.t0 + seconds] + [r.t0 + r.seconds for r in log.renewals[e.lease] if r.outcome == OK])
            for m in e.messages:
                own = max([ends] + [r.t0 + r.seconds for r in log.renewals[e.lease, m[2]] if r.outcome == OK]) - slack
                self.held[m[2]].append(Held(e, e.t1, min(own, self.first.get((e.lease, m[2]), own)), m))


def jobs(log, queue, policy, slack, violation):
    """policy: group, seconds of a lease, maxInFlight, keyMaxInFlight.  Yields violations."""
    group, seconds, most, key_most = policy
    j = Jobs(log, queue, seconds, slack)

    def wrong(rule, text, partition, message):
        return violation(rule, "%s: %s" % (text, message[:2]), (queue, partition), group, [message[2]])

    for id, held in j.held.items():
        held.sort(key=lambda h: h.take.t0)
        done = [t1 for t0, t1, _, status, _, outcome in j.settled[id] if status == "completed" and outcome == OK]
        until = None
        for h in held:
            if until is not None and h.take.t0 > until.since and h.take.t1 < until.until:
                yield wrong("held twice", "delivered while lease %s holds it" % until.take.lease, h.take.partition, h.message)
            if done and h.take.t0 > min(done):
                yield wrong("redelivered", "delivered after its acknowledgement", h.take.partition, h.message)
            if until is None or h.until > until.until:
                until = h
            yield from _judge(j, h, slack, wrong)
    everything = [h for held in j.held.values() for h in held]
    yield from _in_flight(everything, most, "limit", queue, group, violation)
    for key in sorted({key_of(h.take.partition) for h in everything}):
        yield from _in_flight([h for h in everything if key_of(h.take.partition) == key], key_most, "key limit", queue, group, violation)
    for p in log.partitions.values():
        if p.name[0] != queue:
            continue
        ids = collections.defaultdict(set)
        for message, id in list(p.ids.items()) + sorted(p.maybe_taken):
            ids[message].add(id)
        for message in sorted(p.answered):
            if not any(s[3] == "completed" and s[5] != REJECTED for id in ids[message] for s in j.settled[id]):
                yield violation("lost", "never completed: %s" % (message,), p.name, group, sorted(ids[message]))


def _judge(j, h, slack, wrong):
    """Refusals of this delivery, and what was delivered too early after it."""
    id, lease = h.message[2], h.take.lease
    mine = [s for s in j.settled[id] if s[2] == lease]
    for t0, t1, _, _, _, outcome in mine:
        # Not refused while the lease lives, unless an earlier settlement may have done it.
        if outcome == REJECTED and t1 < h.until and j.first.get((lease, id), t1) >= t1:
            yield wrong("lease lost", "a settlement is refused while its lease lives", h.take.partition, h.message)
    back = [(t0, t1, delay) for t0, t1, _, status, delay, outcome in mine if status == "retry" and delay and outcome == OK]
    if back:
        due, known = j.first[lease, id] + back[0][2] - slack, back[0][1]
        for later in j.held[id]:
            if later.take.t0 > known and later.take.t1 < due:
                yield wrong("early", "delivered before its delay was over", later.take.partition, later.message)


def _in_flight(held, most, rule, queue, group, violation):
    """Messages that are certainly leased at the same time."""
    if not most:
        return
    held = [h for h in held if h.until > h.since]
    changes = sorted([(h.since, 1, h) for h in held] + [(h.until, -1, h) for h in held], key=lambda c: c[:2])
    n = 0
    for _, step, h in changes:
        n += step
        if n > most:
            yield violation(rule, "%d messages are in flight" % n, (queue, h.take.partition), group, [h.message[2]])
            return
