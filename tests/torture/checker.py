"""Finds violations in a history.  Pure: no clock, no network, no files.

check(events, rules) gives Violations. A round ends with every fault over and all consumers having found nothing more; then:

  lost         what was answered, or seen by anybody, is delivered to every group (autoAck: unless an answer to a pop was lost)
  doubled      a message has one id, hence one place in its partition
  forged       what is delivered was pushed, to that partition
  reordered    one producer's messages lie in the order in which they were answered
  overtaken    a delivery begins right behind what its group may have passed, and has no holes
  redelivered  nothing is delivered by a pop that began after its acknowledgement was answered
  two leases   a partition is not leased to a group while another lease certainly lives
  lease lost   an acknowledgement under a lease that certainly lives is not refused
  torn         of a transaction all happened or nothing, as was answered, and of each source exactly one transaction
  early        a scheduled message is not delivered before its time, nor a retry
  retries      of a queue with scheduled retries: each failure has one retry, nothing else has one, and in the end each message is
               completed or dead
  held twice   a message of a work queue is not delivered while another lease certainly holds it
  limit        no more messages of a work queue with maxInFlight are certainly leased at once
  key limit    likewise of one key with keyMaxInFlight, with all its priorities

lost, redelivered, early and lease lost hold for each message of a work queue alone.

A Loss (an asynchronous standby was promoted) makes doubtful what was answered between its two times, and nothing else: such a push
may be missing, such an acknowledgement may be undone. Requests answered before it are kept, and so are requests sent after it.
A doubtful delivery still counts as one: the client has seen the message.
"""
import bisect
import collections

from history import OK, REJECTED, UNKNOWN
from jobs import jobs

# PostgreSQL's clock and CLOCK_MONOTONIC drift apart a little while a lease lasts.
SLACK = 0.05

# partition: (queue, name); group and messages (ids): whom it concerns, for the history that shows it.
Violation = collections.namedtuple("Violation", "rule text partition group messages")
# All by queue: seconds of a lease; {group: whether it is autoAck}; (group, seconds between attempts, most attempts) of those that
# retry later, which have no other groups; (group, seconds of a lease, maxInFlight, keyMaxInFlight) of work queues, likewise.
Rules = collections.namedtuple("Rules", "lease_seconds groups retried works", defaults=({}, {}))


def check(events, rules):
    """The violations, in no order."""
    log = Log(events)
    found = list(log.doubled)
    for p in log.partitions.values():
        found += forged(p)
        found += reordered(p)
        for group, auto in rules.groups.get(p.name[0], {}).items():
            pops, acks = p.pops[group], p.acks[group]
            if auto:
                acks = [Passed(e.t0, e.t1, e.messages[-1][2], True, OK, e.lease) for e in pops]
                acks += [Passed(e.t0, e.t1, e.messages[-1][2], True, UNKNOWN, e.lease) for e in p.doubtful[group]]
            else:
                found += lost(p, group)
                found += leases(p, group, rules.lease_seconds[p.name[0]], log.renewals)
            if not p.order_unknown:
                found += cursor(p, group, acks, may_skip=auto)
    found += lost_by_auto_ack(log, rules)
    found += torn(log)
    found += early(log)
    for queue, policy in rules.retried.items():
        found += retries(log, queue, policy)
    for queue, policy in rules.works.items():
        found += jobs(log, queue, policy, SLACK, Violation)
    return found


# A group's cursor is moved by an acknowledgement, a transaction or an autoAck delivery.
Passed = collections.namedtuple("Passed", "t0 t1 through ends outcome lease")


class Partition:
    """The state of one partition."""

    def __init__(self, name):
        self.name = name
        self.ids = {}                                 # (producer, n) -> id, the first that was seen
        self.all_ids = set()
        self.pushes = collections.defaultdict(list)   # producer -> Push
        self.answered = set()                         # (producer, n) that must be there
        self.sent = set()                             # (producer, n) that may be there
        self.pops = collections.defaultdict(list)     # group -> Pop
        self.acks = collections.defaultdict(list)     # group -> Passed
        self.place = {}                               # id -> place in the partition; of one that may be lost: of the one before it
        self.doubtful = collections.defaultdict(list)  # group -> Pop that a loss may have undone
        self.maybe_taken = set()                      # ((producer, n), id) of a work queue, by deliveries that a loss may have undone
        self.order_unknown = False                    # positions have no meaning

    def seen_by(self, group):
        """((producer, n), id) of all that was delivered to a group."""
        return {((m[0], m[1]), m[2]) for e in self.pops[group] + self.doubtful[group] for m in e.messages}

    def missing(self, group):
        """Messages that must have been delivered to a group and were not."""
        seen = self.seen_by(group)
        names = {name for name, _ in seen}
        return [m for m in self.answered if m not in self.ids and m not in names] + [m for m, id in self.ids.items() if (m, id) not in seen]

    def maybe_there(self):
        """(producer, n) that were seen while a loss was under way."""
        return {(m[0], m[1]) for es in self.doubtful.values() for e in es for m in e.messages}

    def delivery_order(self):
        """The messages by the times at which they were first seen."""
        pops = sorted((e for es in self.pops.values() for e in es), key=lambda e: e.t1)
        return dict.fromkeys(m[2] for e in pops for m in e.messages)


class Log:
    """The history, sorted out by what it is about."""

    def __init__(self, events):
        self.partitions = {}
        self.renewals = collections.defaultdict(list)  # lease -> Renew
        self.lost_pops, self.transactions, self.schedules = [], [], []
        self.tries, self.verdicts = collections.defaultdict(list), collections.defaultdict(list)  # queue -> events
        self.takes, self.settles = collections.defaultdict(list), collections.defaultdict(list)  # queue -> events
        self.doubled = []
        self.shaken = set()  # (queue, partition, producer, n) with attempts or verdicts that a loss may have undone
        self.losses = [e for e in events if e.kind == "loss"]
        shaky = {e.lease for e in events if self.losses and hasattr(e, "lease") and self.may_be_undone(e)}
        for e in events:
            if self.losses and (self.may_be_undone(e) or e.kind == "ack" and e.lease in shaky):
                self._doubt(e)
            else:
                getattr(self, "_" + e.kind)(e)
        # Scheduled messages keep the ids that they were given when they were scheduled; others sort by them.
        waited = {(e.queue, e.partition) for e in self.schedules}
        for p in self.partitions.values():
            if p.name in waited:
                # Fired again after a loss, they may lie in another order than the one that was seen.
                p.order_unknown = bool(self.losses)
                p.place = {id: i for i, id in enumerate(p.delivery_order())}
                continue
            doubtful = {id for es in p.doubtful.values() for e in es for _, _, id in e.messages} - p.all_ids
            at = -1
            for id in sorted(p.all_ids | doubtful):
                at += id in p.all_ids
                p.place[id] = at

    def may_be_undone(self, e):
        """It was answered after a loss began, and sent before it ended."""
        return any(e.t1 > loss.t0 and e.t0 < loss.t1 for loss in self.losses)

    def _doubt(self, e):
        """As if the outcome were unknown; a delivery counts for the client that got it, and proves nothing about the database."""
        if e.kind == "pop":
            self.at(e.queue, e.partition).doubtful[e.group].append(e)
        elif e.kind == "push":
            self._push(e._replace(outcome=UNKNOWN if e.outcome == OK else e.outcome, stored="", ids=None))
        elif e.kind in ("txn", "schedule", "verdict"):
            getattr(self, "_" + e.kind)(e._replace(outcome=UNKNOWN if e.outcome == OK else e.outcome))
        elif e.kind == "ack" and e.outcome != REJECTED:
            self._ack(e._replace(outcome=UNKNOWN))
        elif e.kind == "take":
            self.at(e.queue, e.partition).maybe_taken.update(((producer, n), id) for producer, n, id in e.messages)
        elif e.kind == "settle":
            self._settle(e._replace(messages=[m[:3] + (UNKNOWN if m[3] == OK else m[3],) for m in e.messages]))
        elif e.kind in ("try", "lostpop", "fault", "loss"):
            getattr(self, "_" + e.kind)(e)
        if e.kind in ("try", "verdict"):
            self.shaken.update((e.queue, e.partition, m[0], m[1]) for m in e.messages)

    def at(self, queue, partition):
        name = (queue, partition)
        p = self.partitions.get(name)
        if p is None:
            p = self.partitions[name] = Partition(name)
        return p

    def _know(self, p, message, id):
        p.all_ids.add(id)
        if p.ids.setdefault(message, id) != id:
            self.doubled.append(Violation("doubled", "%s is stored twice" % (message,), p.name, None, [id, p.ids[message]]))

    def _push(self, e):
        p = self.at(e.queue, e.partition)
        numbers = range(e.first, e.first + e.count)
        p.pushes[e.producer].append(e)
        p.sent.update((e.producer, n) for n in numbers)
        if e.outcome == OK:
            p.answered.update((e.producer, n) for n in numbers)
        for n, id in zip(numbers, e.ids or ()):
            self._know(p, (e.producer, n), id)

    def _pop(self, e):
        p = self.at(e.queue, e.partition)
        p.pops[e.group].append(e)
        for producer, n, id in e.messages:
            self._know(p, (producer, n), id)

    def _lostpop(self, e):
        self.lost_pops.append(e)

    def _ack(self, e):
        self.at(e.queue, e.partition).acks[e.group].append(Passed(e.t0, e.t1, e.through, e.ends, e.outcome, e.lease))

    def _renew(self, e):
        self.renewals[e.lease].append(e)

    def _txn(self, e):
        self.transactions.append(e)
        self.at(e.queue, e.partition).acks[e.group].append(Passed(e.t0, e.t1, e.sources[-1], True, e.outcome, e.lease))
        for queue, partition, producer, n in e.made:
            p = self.at(queue, partition)
            p.sent.add((producer, n))
            if e.outcome == OK:
                p.answered.add((producer, n))

    def _schedule(self, e):
        self.schedules.append(e)
        p = self.at(e.queue, e.partition)
        p.sent.add((e.producer, e.n))
        if e.outcome == OK:
            p.answered.add((e.producer, e.n))

    def _try(self, e):
        self.tries[e.queue].append(e)

    def _verdict(self, e):
        self.verdicts[e.queue].append(e)

    def _take(self, e):
        p = self.at(e.queue, e.partition)
        for producer, n, id in e.messages:
            self._know(p, (producer, n), id)
        self.takes[e.queue].append(e)

    def _settle(self, e):
        self.settles[e.queue].append(e)

    def _fault(self, e):
        pass

    _loss = _fault


def forged(p):
    wrong = [m for m in p.ids if m not in p.sent]
    if wrong:
        yield Violation("forged", "%d messages that nobody pushed, such as %s" % (len(wrong), wrong[0]), p.name, None,
                        [p.ids[m] for m in wrong[:3]])


def lost(p, group):
    gone = p.missing(group)
    if gone:
        yield Violation("lost", "%d messages were never delivered to %s, such as %s" % (len(gone), group, min(gone)), p.name, group,
                        [p.ids[m] for m in gone[:3] if m in p.ids])


def lost_by_auto_ack(log, rules):
    """The missing messages of an autoAck group must fit into its lost answers."""
    for queue, groups in rules.groups.items():
        for group in (g for g, auto in groups.items() if auto):
            room = sum(e.batch for e in log.lost_pops if (e.queue, e.group) == (queue, group))
            gone, example = 0, None
            for p in log.partitions.values():
                if p.name[0] != queue:
                    continue
                missing = p.missing(group)
                gone += len(missing)
                if missing and example is None:
                    example = p.name, missing[0]
            if gone > room:
                yield Violation("lost", "%d messages were never delivered to %s, such as %s; lost answers explain %d"
                                % (gone, group, example[1], room), example[0], group, [])


def reordered(p):
    """A push must lie behind all that was answered before it began, unless that waits in the buffer of another broker."""
    for pushes in p.pushes.values():
        stored = -1                                      # highest place that was in the database
        waiting = collections.defaultdict(lambda: -1)    # broker -> highest place that was in its buffer
        attempts, last = [], None
        for e in sorted(pushes, key=lambda e: e.t0):
            if e.first != last:
                attempts, last = [], e.first
                repeated = False
            attempts.append(e)
            if repeated:
                continue  # sent again though it was answered; where it lies has been looked at
            if e.outcome != OK:
                continue
            repeated = True
            places = [p.place.get(p.ids.get((e.producer, n))) for n in range(e.first, e.first + e.count)]
            places = [x for x in places if x is not None]  # those that are lost are another matter
            if not places:
                continue
            brokers = {a.broker for a in attempts}
            floor = max(stored, waiting[e.broker] if len(brokers) == 1 else -1)
            if places != sorted(places) or places[0] <= floor:
                yield Violation("reordered", "messages %d to %d of producer %s lie wrongly"
                                % (e.first, e.first + e.count - 1, e.producer), p.name, None,
                                [p.ids.get((e.producer, n)) for n in (e.first, e.first + e.count - 1)])
            if e.stored == "queued":
                stored = max(stored, places[-1])
            else:
                waiting[e.broker] = max(waiting[e.broker], places[-1])


class HighWater:
    """The highest place that was reached before a time."""

    def __init__(self, pairs):
        self.times, self.places = [], []
        best = -1
        for t, place in sorted(pairs):
            best = max(best, place)
            self.times.append(t)
            self.places.append(best)

    def before(self, t):
        i = bisect.bisect_left(self.times, t)
        return self.places[i - 1] if i else -1


def cursor(p, group, acks, may_skip):
    """Where each delivery begins, against what was certainly and what was possibly acknowledged by then."""
    moves = [a for a in acks if a.through is not None and a.outcome != REJECTED]
    certain = HighWater((a.t1, p.place[a.through]) for a in moves if a.outcome == OK)
    possible = HighWater((a.t0, p.place[a.through]) for a in moves)
    for e in p.pops[group]:
        places = [p.place[m[2]] for m in e.messages]
        if places != list(range(places[0], places[0] + len(places))):
            yield Violation("overtaken", "a delivery to %s has holes" % group, p.name, group, [m[2] for m in e.messages])
        if places[0] <= certain.before(e.t0):
            yield Violation("redelivered", "%s gets %s again after its acknowledgement" % (group, e.messages[0][:2]), p.name, group,
                            [e.messages[0][2]])
        elif not may_skip and places[0] > possible.before(e.t1) + 1:
            yield Violation("overtaken", "%s gets %s though it has not passed what lies before" % (group, e.messages[0][:2]), p.name,
                            group, [e.messages[0][2]])


def leases(p, group, seconds, renewals):
    """Deliveries and refusals while a lease certainly lives: from its answer until it may have ended."""
    ends = collections.defaultdict(list)  # lease -> when acknowledgements that end it were sent
    for a in p.acks[group]:
        if a.ends and a.outcome != REJECTED:
            ends[a.lease].append(a.t0)
    alive = []
    for e in p.pops[group]:
        until = max([e.t0 + seconds] + [r.t0 + r.seconds for r in renewals[e.lease] if r.outcome == OK]) - SLACK
        alive.append((e.t1, min([until] + ends[e.lease]), until, e))
    by_start = sorted(alive, key=lambda x: x[0])
    starts, latest = [x[0] for x in by_start], []
    for x in by_start:
        latest.append(x if not latest or x[1] > latest[-1][1] else latest[-1])
    for e in p.pops[group]:
        i = bisect.bisect_right(starts, e.t0)
        if i and latest[i - 1][1] > e.t1:
            other = latest[i - 1][3]
            yield Violation("two leases", "%s is given %s while lease %s lives" % (group, e.lease, other.lease), p.name, group,
                            [e.messages[0][2], other.messages[0][2]])
    until = {x[3].lease: x[2] for x in alive}
    for a in p.acks[group]:
        if a.outcome == REJECTED and a.lease in until and a.t1 < until[a.lease] and not any(t < a.t1 for t in ends[a.lease]):
            yield Violation("lease lost", "%s may not acknowledge under %s though it lives" % (group, a.lease), p.name, group,
                            [a.through] if a.through else [])


def torn(log):
    committed = collections.Counter()  # (queue, partition, source id) -> transactions
    perhaps = collections.Counter()    # likewise those of which a loss leaves open whether they happened
    maybe = {p.name: p.maybe_there() for p in log.partitions.values()}
    for e in log.transactions:
        names = [((queue, partition), (producer, n)) for queue, partition, producer, n in e.made]
        there = {message in log.at(*name).ids for name, message in names
                 if message in log.at(*name).ids or message not in maybe[name]}
        want = {OK: [True], REJECTED: [False], UNKNOWN: [True, False]}[e.outcome]
        if len(there) > 1 or not there <= set(want):
            yield Violation("torn", "some of %d pushes of a transaction (%s) happened, or none" % (len(names), e.outcome),
                            (e.queue, e.partition), e.group, e.sources)
        happened = committed if True in there or e.outcome == OK else perhaps if not there else None
        if happened is not None:
            happened.update((e.queue, e.partition, e.group, s) for s in e.sources)
    for (queue, partition, group), sources in _sources(log).items():
        wrong = [s for s in sources for key in [(queue, partition, group, s)]
                 if not committed[key] <= 1 <= committed[key] + perhaps[key]]
        if wrong:
            yield Violation("torn", "%d messages were not in exactly one transaction" % len(wrong), (queue, partition), group, wrong[:3])


def _sources(log):
    """Everything that was delivered to the groups that acknowledge in transactions."""
    sources = {}
    for queue, partition, group in {(e.queue, e.partition, e.group) for e in log.transactions}:
        sources[queue, partition, group] = {m[2] for e in log.at(queue, partition).pops[group] for m in e.messages}
    return sources


def early(log):
    due = {}
    for e in log.schedules:
        key = (e.queue, e.partition, e.producer, e.n)
        due[key] = min(due.get(key, e.t0 + e.delay), e.t0 + e.delay)
    for queue, partition in {(e.queue, e.partition) for e in log.schedules}:
        for pops in log.at(queue, partition).pops.values():
            for e in pops:
                for producer, n, id in e.messages:
                    at = due.get((queue, partition, producer, n))
                    if at is not None and e.t1 < at - SLACK:
                        yield Violation("early", "%s came %.3f s before its time" % ((producer, n), at - e.t1), (queue, partition),
                                        e.group, [id])


def retries(log, queue, policy):
    group, delay, most = policy
    delivered = collections.defaultdict(list)  # (partition, producer, n, attempt) -> deliveries
    said = collections.defaultdict(list)       # likewise -> (verdict, failed, dead)
    last = collections.Counter()               # (partition, producer, n) -> highest attempt that was delivered
    for e in log.tries[queue]:
        for producer, n, attempt in e.messages:
            delivered[e.partition, producer, n, attempt].append(e)
            last[e.partition, producer, n] = max(last[e.partition, producer, n], attempt)
    for e in log.verdicts[queue]:
        for producer, n, attempt, failed, dead in e.messages:
            if e.outcome != REJECTED:
                said[e.partition, producer, n, attempt].append((e, failed, dead))

    def wrong(rule, text, key):
        return Violation(rule, "%s of %s" % (text, key[1:]), (queue, key[0]), group, [])

    for key, deliveries in delivered.items():
        partition, producer, n, attempt = key
        answered = [e.t1 for e, _, _ in said[key] if e.outcome == OK]
        if answered and max(e.t0 for e in deliveries) > min(answered):
            yield wrong("redelivered", "an attempt after its acknowledgement", key)
        if attempt > 1:
            failures = [e for e, failed, _ in said[partition, producer, n, attempt - 1] if failed]
            if not failures:
                yield wrong("retries", "an attempt without a failure before it", key)
            elif min(e.t1 for e in deliveries) < min(e.t0 for e in failures) + delay - SLACK:
                yield wrong("early", "a retry", key)
    for p in log.partitions.values():
        if p.name[0] != queue:
            continue
        for producer, n in p.answered:
            key = (p.name[1], producer, n)
            final = said[key + (last[key],)]
            if (queue,) + key in log.shaken:  # the last attempt may be one that was undone
                final = [v for attempt in range(1, last[key] + 1) for v in said[key + (attempt,)]]
            if not last[key]:
                yield wrong("lost", "no delivery", key)
            elif not any(not failed or last[key] == most for _, failed, _ in final):
                yield wrong("retries", "no retry after the last failure (attempt %d)" % last[key], key)
