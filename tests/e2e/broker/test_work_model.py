"""Random operations on a work queue through two brokers and SQL, compared with a naive queue in memory."""
import json
import os
import random

import pytest

from harness import patience, wait_until

SEEDS = int(os.environ.get("QUEEN_MODEL_SEEDS", "6"))
PARTITIONS = ("a", "a~p4", "b")  # keys with priorities
RETRY_LIMIT = 2


class Job:
    def __init__(self, partition, place):
        self.partition, self.place, self.failures = partition, place, 0
        self.state, self.lease, self.since = "new", None, 0  # new, back, held, later, over


class Queue:
    """What the jobs are, without a clock: leases end when the test says so."""

    def __init__(self, most, key_most):
        self.most, self.key_most, self.now = most, key_most, 0
        self.jobs = {p: [] for p in PARTITIONS}

    def held(self, key=None):
        return sum(j.state == "held" for p in PARTITIONS for j in self.jobs[p] if key in (None, p[0]))

    def pop(self, partition, batch, auto):
        """The jobs that a pop gets: those that came back, in the order in which they did, then new ones. The answer has them by place."""
        room = batch if auto else min([batch] + [most - self.held(key) for most, key in ((self.most, None), (self.key_most, partition[0])) if most])
        free = [j for j in self.jobs[partition] if j.state in ("back", "new")]
        free.sort(key=lambda j: (j.state == "new", j.since if j.state == "back" else 0, j.place))
        return sorted(free[:max(room, 0)], key=lambda j: j.place)

    def give_back(self, jobs):
        self.now += 1
        for j in jobs:
            j.state, j.since = "back", self.now


class Run:
    def __init__(self, seed, brokers, db, queue):
        self.rnd, self.brokers, self.cur, self.queue = random.Random(seed), brokers, db.cursor(), queue
        self.model = Queue(self.rnd.choice((0, 0, 5, 9)), self.rnd.choice((0, 2, 3)))
        self.ways, self.leases, self.history = ("http", "http", "sql"), [], []  # leases: (id, [(job, message)])
        options = {"maxInFlight": self.model.most, "keyMaxInFlight": self.model.key_most}
        brokers[0].configure(queue, ordering="none", leaseTime=3000, retryLimit=RETRY_LIMIT, retryDelay=0, maxDeliveries=0,
                             **{k: v for k, v in options.items() if v})

    def check(self, ok, *more):
        if not ok:
            pytest.fail("\n".join(["limits %s %s" % (self.model.most, self.model.key_most), *self.history[-60:], "found: %s" % (more,)]), pytrace=False)

    def sql(self, function, argument):
        self.cur.execute("select queen.%s(%%s::jsonb)" % function, [json.dumps(argument)])
        return self.cur.fetchone()[0]

    def way(self):
        way = self.rnd.choice(self.ways)
        return way, self.rnd.choice(self.brokers)

    def push(self):
        (way, b), partition = self.way(), self.rnd.choice(PARTITIONS)
        jobs = self.model.jobs[partition]
        places = range(len(jobs), len(jobs) + self.rnd.randint(1, 8))
        items = [{"queue": self.queue, "concurrencyKey": partition[0], "priority": int((partition + "~p0")[3]), "payload": n} for n in places]
        self.history.append("push %d to %s by %s" % (len(items), partition, way))
        results = self.sql("push_messages_v3", items)["items"] if way == "sql" else b.push(items).expect(201).json
        self.check([r["status"] for r in results] == ["queued"] * len(items), results)
        jobs += [Job(partition, n) for n in places]

    def take(self, way, b, partition, batch, auto, some):
        """some: jobs are expected, so a claim that finds the partition locked by a chore is repeated."""
        if way == "http":
            return b.take(self.queue, partition, batch=batch, autoAck=auto, **({"wait": True, "timeout": 20000} if some else {}))
        got = []

        def found():
            result = self.sql("pop_unified_batch", [{"idx": 0, "queue_name": self.queue, "partition_name": partition, "batch_size": batch, "auto_ack": auto}])[0]
            got[:] = (result.get("result") or result)["messages"]
            return got or not some

        wait_until(found, patience(20), "messages for a SQL session")
        return got

    def pop(self):
        (way, b), partition = self.way(), self.rnd.choice(PARTITIONS)
        batch, auto = self.rnd.choice((1, 2, 5, 20)), self.rnd.random() < 0.1
        want = self.model.pop(partition, batch, auto)
        self.history.append("pop %d of %s by %s%s: %s" % (batch, partition, way, ", autoAck" if auto else "", [j.place for j in want]))
        got = self.take(way, b, partition, batch, auto, want)
        found = [(m["data"], m["retryCount"]) for m in got]
        self.check(found == [(j.place, j.failures) for j in want], found)
        for j in want:
            j.state, j.lease = ("over", None) if auto else ("held", got[0]["leaseId"])
        if got and not auto:
            self.leases.append((got[0]["leaseId"], list(zip(want, got))))

    def some(self):
        """Some jobs of a lease, which may have lost them; None: there is no lease."""
        if not self.leases:
            return None, []
        lease, pairs = self.rnd.choice(self.leases[-12:])
        return lease, self.rnd.sample(pairs, self.rnd.randint(1, len(pairs)))

    def settle(self):
        lease, pairs = self.some()
        entries, expected, back = [], [], []
        for j, m in pairs:
            ours = j.state == "held" and j.lease == lease
            if not ours and j.state == "over":
                continue  # a repeated acknowledgement: test_work_queue.py
            status = self.rnd.choice(("completed", "completed", "completed", "failed", "retry", "dlq"))
            after = self.rnd.choice((None, 600)) if status == "retry" else None
            entries.append({"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": lease, "status": status,
                            **({"retryAfter": after} if after else {})})
            expected.append(ours)
            if not ours:
                continue
            j.lease = None
            if status == "failed" and j.failures < RETRY_LIMIT:
                j.failures += 1
                back.append(j)
            elif status == "retry" and not after:
                back.append(j)
            else:
                j.state = "later" if status == "retry" else "over"
        if not entries:
            return
        way, b = self.way()
        self.history.append("settle by %s: %s" % (way, [(m["data"], e["status"], e.get("retryAfter")) for (_, m), e in zip(pairs, entries)]))
        results = self.sql("ack_messages_v2", entries) if way == "sql" else b.ack_batch(entries)
        self.check([r["success"] for r in results] == expected, results)
        self.model.give_back(back)

    def expire(self):
        lease, _ = self.some()
        held = [j for j, _ in self.jobs_of(lease) if j.state == "held" and j.lease == lease]
        if not held:
            return
        self.history.append("expire the lease of %s" % [(j.partition, j.place) for j in held])
        self.cur.execute("update queen.holds set until = now() where lease = queen.transaction_key(%s) and until > now()", [lease])
        self.model.give_back(held)

    def jobs_of(self, lease):
        return next((pairs for id, pairs in self.leases if id == lease), [])

    def extend(self):
        lease, pairs = self.some()
        if not pairs:
            return
        r = self.rnd.choice(self.brokers).post("/api/v1/lease/%s/extend" % lease, {"seconds": 3000})
        held = any(j.state == "held" and j.lease == lease for j, _ in self.jobs_of(lease))
        self.history.append("extend %s" % [m["data"] for _, m in pairs])
        self.check((r.status == 200) == held, r)

    def go(self, steps):
        acts = [self.push] * 3 + [self.pop] * 6 + [self.settle] * 6 + [self.expire] + [self.extend]
        for _ in range(steps):
            self.rnd.choice(acts)()
        # Everything that waits is delivered once more, and nothing else.
        self.brokers[0].configure(self.queue, ordering="none", leaseTime=3000, retryLimit=RETRY_LIMIT, maxDeliveries=0)
        self.model.most = self.model.key_most = 0
        for partition in PARTITIONS:
            want = self.model.pop(partition, 1000, False)
            got = self.take("http", self.brokers[1], partition, 1000, False, want)
            self.check([m["data"] for m in got] == [j.place for j in want], partition, [m["data"] for m in got], [j.place for j in want])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_operations_match_the_naive_queue(broker, broker2, db, queue, seed):
    Run(seed, (broker, broker2), db, queue).go(150)
