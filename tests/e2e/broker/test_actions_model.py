"""Random pushes, deletions, pops, acks, seeks and moves on two brokers, compared with a list in Python."""
import random

import pytest

EPOCH = "1970-01-01T00:00:00Z"
GROUPS = ("one", "two")


class Model:
    """One partition: the next message of each group, and the messages that must not be delivered."""

    def __init__(self):
        self.log = []           # transaction ids, in order, deleted ones too
        self.gone = set()       # places
        self.cursor = {g: 0 for g in GROUPS}   # places consumed
        self.passed = {g: set() for g in GROUPS}
        self.lease = {g: None for g in GROUPS}  # (messages, places)

    def next(self, g, n):
        """The messages that a pop may deliver: a run that ends before the next skipped place."""
        out = []
        for place in range(self.cursor[g], len(self.log)):
            if place in self.gone or place in self.passed[g]:
                if out:
                    break
                continue
            out.append(place)
            if len(out) == n:
                break
        return out

    def left(self, g):
        return [self.log[p] for p in range(self.cursor[g], len(self.log)) if p not in self.gone | self.passed[g]]


class Run:
    def __init__(self, seed, brokers, queue):
        self.rnd, self.brokers, self.queue = random.Random(seed), brokers, queue
        self.m, self.n = Model(), 0
        self.partition = None

    def b(self):
        return self.rnd.choice(self.brokers)

    def push(self):
        ids = ["t%d" % (self.n + i) for i in range(self.rnd.randint(1, 6))]
        self.n += len(ids)
        out = self.b().put(self.queue, ids, ids=ids)
        self.partition = out[0].get("partition_id") or out[0]["partitionId"]
        self.m.log += ids

    def at(self, place, action=""):
        return "/api/v1/messages/%s/%s%s" % (self.partition, self.m.log[place], action)

    def some(self):
        alive = [p for p in range(len(self.m.log)) if p not in self.m.gone]
        return self.rnd.choice(alive) if alive else None

    def delete(self):
        place = self.some()
        if place is not None:
            assert self.b().request("DELETE", self.at(place)).expect(200).json["success"] is True
            self.remove(place)

    def remove(self, place):
        self.m.gone.add(place)
        for g in GROUPS:
            held = self.m.lease[g]
            if held and place in held[1]:
                held[1].remove(place)
                if not held[1]:
                    self.m.lease[g] = None

    def pop(self):
        g = self.rnd.choice(GROUPS)
        n = self.rnd.randint(1, 8)
        got = self.b().take(self.queue, self.rnd.choice((None, "Default")), consumerGroup=g, batch=n)
        if self.m.lease[g]:
            assert got == []
            return
        want = self.m.next(g, n)
        assert [x["data"] for x in got] == [self.m.log[p] for p in want], (g, n)
        if got:
            self.m.cursor[g] = want[0]
            self.m.lease[g] = (got, list(want))

    def ack(self):
        g = self.rnd.choice(GROUPS)
        if not self.m.lease[g]:
            return
        got, places = self.m.lease[g]
        status = self.rnd.choice(("completed", "completed", "completed", "failed", "retry"))
        for message in list(got):
            place = self.m.log.index(message["transactionId"])
            if place not in places:
                if place in self.m.gone:
                    assert self.b().ack(message)["error"] == "Message not found"
                continue
            r = self.b().ack(message, status)
            assert r["success"] is True, r
            if status != "completed":
                self.m.lease[g] = None
                return
            places.remove(place)
            self.m.cursor[g] = place + 1
            if not places:
                assert r["leaseReleased"] is True
        self.m.lease[g] = None

    def seek(self):
        g = self.rnd.choice(GROUPS)
        end = self.rnd.random() < 0.4
        r = self.b().post("/api/v1/consumer-groups/%s/queues/%s/seek" % (g, self.queue),
                          {"toEnd": True} if end else {"timestamp": EPOCH}).expect(200).json
        if r["partitionsUpdated"]:
            self.m.cursor[g] = len(self.m.log) if end else 0
            self.m.lease[g] = None
            self.m.passed[g].clear()

    def bury(self):
        place, g = self.some(), self.rnd.choice(GROUPS)
        if place is None or (self.m.lease[g] and place in self.m.lease[g][1]):
            return
        self.b().post(self.at(place, "/dlq"), {"consumerGroup": g}).expect(200)
        if place >= self.m.cursor[g]:
            self.m.passed[g].add(place)

    def clear(self):
        self.b().request("DELETE", "/api/v1/queues/%s/clear" % self.queue).expect(200)
        self.m.gone = set(range(len(self.m.log)))
        for g in GROUPS:
            self.m.lease[g] = None

    def go(self, steps):
        self.push()
        acts = [self.push] * 4 + [self.pop] * 6 + [self.ack] * 6 + [self.delete] * 4 + [self.bury] * 2 + [self.seek]
        for i in range(steps):
            self.rnd.choice(acts)()
            if self.rnd.random() < 0.01:
                self.clear()
        for g in GROUPS:
            if self.m.lease[g]:
                self.b().ack(self.m.lease[g][0][0], "retry")
                lost = self.m.lease[g] and self.m.log.index(self.m.lease[g][0][0]["transactionId"]) in self.m.gone
                if lost:  # that one was deleted: end the lease by a seek to where it is
                    self.b().post("/api/v1/consumer-groups/%s/queues/%s/seek" % (g, self.queue), {"toEnd": True})
                    self.m.cursor[g] = len(self.m.log)
                    self.m.passed[g].clear()
            assert [x["data"] for x in self.b().drain(self.queue, consumerGroup=g)] == self.m.left(g)


@pytest.mark.parametrize("seed", range(8))
def test_against_the_model(broker, broker2, sql, queue, seed):
    broker.configure(queue, retryLimit=100000)
    run = Run(seed, (broker, broker2), queue)
    run.go(90)
    alive = [t for i, t in enumerate(run.m.log) if i not in run.m.gone]
    assert [r[0] for r in sql("select transaction_id from queen.messages where partition_id = %s order by id",
                              run.partition)] == alive
    sql("delete from queen.queues where name = %s", queue)
