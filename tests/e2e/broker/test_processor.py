"""Processors of libqueenclient: sharing, order, retries, hand-over, and processors that die or sleep."""
import json
import os
import signal
import subprocess
import threading
import time

import pytest

import harness
from harness import REPO, patience, wait_until

PROGRAM = next((p for p in [os.environ.get("QUEEN_CLIENT_WORKER", "")] + [
    os.path.join(REPO, "build", b, "tests/unit/client/client_worker") for b in ("release", "debug", "asan")]
    if p and os.path.exists(p)), None)
PARTITIONS = 8


class Worker:
    def __init__(self, url, queue, group, name, expiry=2, mode="plain", look_ms=200, connections=0):
        assert PROGRAM, "client_worker is not built (make, or set QUEEN_CLIENT_WORKER)"
        self.name, self.lines = name, []
        self.process = subprocess.Popen([PROGRAM, url, queue, group, name, str(expiry), mode, str(look_ms), str(connections)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.rstrip("\n")))

    def events(self):
        """(time, partition, tried, payload) in the order they were handled"""
        out = []
        for at, line in list(self.lines):
            if line.startswith("event "):
                _, partition, tried, data = line.split(" ", 3)
                out.append((at, partition, int(tried), json.loads(data)))
        return out

    def owned(self):
        owned = set()
        for _, line in list(self.lines):
            if line.startswith("opened "):
                owned.add(line.split()[1])
            elif line.startswith("closed "):
                owned.discard(line.split()[1])
        return owned

    def has(self, text):
        return any(text in line for _, line in list(self.lines))

    def let(self, n):
        """So many of the events that wait go on."""
        self.process.stdin.write("." * n)
        self.process.stdin.flush()

    def let_all(self):
        """From now on none waits."""
        self.process.stdin.close()

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        self.signal(signal.SIGTERM)
        assert self.process.wait(15) == 0
        return self


class Crew:
    """start(name) starts a worker; push(n) pushes numbered events by key; owners() returns the owner of each partition."""

    def __init__(self, broker, queue, group):
        self.broker, self.queue, self.group, self.url = broker, queue, group, broker.url
        self.n, self.made = 0, []

    def start(self, name, **kw):
        self.made.append(Worker(self.url, self.queue, self.group, name, **kw))
        return self.made[-1]

    def push(self, n, **more):
        self.broker.push([{"queue": self.queue, "partitionKey": "k%d" % (i % 40), "payload": {"n": i, **more}}
                          for i in range(self.n, self.n + n)])
        self.n += n

    def records(self):
        return self.broker.get("/api/v1/consumer-groups/%s/queues/%s/owners" % (self.group, self.queue)).expect(200).json["owners"]

    def owners(self):
        return {o["partition"]: o["owner"] for o in self.records() if not o["expired"]}

    def seen(self):
        return sorted({e[3]["n"] for w in self.made for e in w.events()})

    def wait_all(self, timeout=20):
        wait_until(lambda: self.seen() == list(range(self.n)) and sum(o["lag"] for o in self.records()) == 0,
                   timeout * harness.TIME_FACTOR, "all events are handled and acknowledged")


@pytest.fixture
def crew(broker, queue, group):
    broker.configure(queue, partitions=PARTITIONS)
    c = Crew(broker, queue, group)
    yield c
    for w in c.made:
        if w.process.poll() is None:
            w.signal(signal.SIGCONT)
            w.process.kill()
        w.process.wait()
        w.process.stdin.close()


def in_order(events):
    last = {}
    for _, partition, tried, data in events:
        if tried == 0:
            assert data["n"] > last.get(partition, -1), "partition %s" % partition
            last[partition] = data["n"]
    return True


def test_one_has_all_and_handles_all_in_order(crew):
    crew.push(300)
    w = crew.start("a")
    crew.wait_all()
    assert len(w.owned()) == PARTITIONS and in_order(w.events())
    assert len(w.events()) == 300, "each once"
    crew.push(100)
    crew.wait_all()
    assert in_order(w.events()) and len(w.events()) == 400


@pytest.mark.parametrize("connections", [2, PARTITIONS])
def test_a_processor_with_as_many_partitions_as_connections_stays_the_owner(crew, connections):
    """Pops that wait took all connections: renewals waited behind them, and the partitions expired again and again."""
    w = crew.start("a", expiry=2, connections=connections)
    wait_until(lambda: len(w.owned()) == PARTITIONS, patience(10), "it owns all")
    epochs = {o["partition"]: o["epoch"] for o in crew.records()}
    time.sleep(5)
    assert not w.has("closed ") and not w.has("error ")
    crew.push(100)
    crew.wait_all()
    assert in_order(w.events()) and len(w.events()) == 100
    assert {o["partition"]: o["epoch"] for o in crew.records()} == epochs


def test_a_second_gets_its_share_and_nothing_is_handled_twice(crew):
    a = crew.start("a")
    wait_until(lambda: len(a.owned()) == PARTITIONS, 10, "a has all")
    b = crew.start("b")
    for _ in range(20):
        crew.push(20)
        time.sleep(0.1)
    wait_until(lambda: len(b.owned()) == PARTITIONS // 2, 15, "b has its half")
    crew.wait_all()
    assert len(a.owned()) == PARTITIONS // 2 and a.has("given")
    assert len(a.events()) + len(b.events()) == crew.n, "handed over between batches: no event was handled twice"
    assert in_order(a.events()) and in_order(b.events())
    before = crew.owners()
    time.sleep(1)
    assert crew.owners() == before, "and then nothing moves"


def test_a_stopped_worker_hands_over_at_once(crew):
    a, b = crew.start("a", expiry=60), crew.start("b", expiry=60)
    wait_until(lambda: {len(a.owned()), len(b.owned())} == {PARTITIONS // 2}, 15, "they share")
    crew.push(80, do="wait")
    wait_until(lambda: len(a.events()) == len(b.events()) == PARTITIONS // 2, 5 * harness.TIME_FACTOR, "each partition has one under way")
    a.signal(signal.SIGTERM)
    wait_until(lambda: a.has("stopping"), 5, "it knows")
    a.let(PARTITIONS // 2)
    assert a.process.wait(patience(5)) == 0, "it has ended what was under way: for the rest of its batches nobody lets it go on"
    wait_until(lambda: set(crew.owners().values()) == {"b"} and len(crew.owners()) == PARTITIONS, 1 * harness.TIME_FACTOR,
               "b has all within a second, long before a's claims would expire")
    b.let_all()
    crew.wait_all(30)
    assert len(a.events()) + len(b.events()) == 80, "what was given back was not handled twice"


def test_others_claim_partitions_reserved_for_a_dead_worker(crew):
    """The death of c is not visible yet.  Some of the partitions that a releases are the share of c."""
    a, b, c = (crew.start(name, expiry=60) for name in "abc")
    wait_until(lambda: sorted(len(w.owned()) for w in (a, b, c)) == [2, 3, 3], 20, "they share")
    c.signal(signal.SIGSTOP)
    asleep = c.owned()
    a.stop()
    wait_until(lambda: len(crew.owners()) == PARTITIONS, 1 * harness.TIME_FACTOR, "all have owners, long before c's claims expire")
    assert {p for p, o in crew.owners().items() if o == "b"} == set(crew.owners()) - asleep


def test_a_killed_workers_partitions_are_claimed_when_they_expire(crew):
    a, b = crew.start("a"), crew.start("b")
    wait_until(lambda: {len(a.owned()), len(b.owned())} == {PARTITIONS // 2}, 15, "they share")
    crew.push(200)
    a.signal(signal.SIGKILL)
    begin = time.monotonic()
    wait_until(lambda: len(b.owned()) == PARTITIONS, 2 + 5, "expiry and 5 s")
    assert time.monotonic() - begin < patience(2 + 5)
    crew.push(100)
    crew.wait_all()


def test_an_owner_that_slept_past_its_expiry_is_fenced(crew):
    """SIGSTOP in the middle of a batch: when the worker wakes up it handles nothing more, and its acknowledgements do not count."""
    a = crew.start("a")
    wait_until(lambda: len(a.owned()) == PARTITIONS, 10, "a has all")
    crew.push(80, do="wait")
    wait_until(lambda: len(a.events()) >= 4, 10, "a has begun with the first ones of its batches")
    a.signal(signal.SIGSTOP)
    b = crew.start("b")
    b.let_all()
    wait_until(lambda: len(b.owned()) == PARTITIONS, 15, "b has all")
    wait_until(lambda: len(b.events()) >= 8, 10, "b goes on")
    # The pipe now contains events that began before the sleep. From here on a must not begin an event of b.
    a.signal(signal.SIGCONT)
    a.let_all()
    wait_until(lambda: a.has("lost"), 10, "a finds out")
    crew.wait_all(40)
    again = {}
    for w in (a, b):
        for at, partition, _, data in w.events():
            again.setdefault(data["n"], []).append((w.name, at, partition))
    twice = [x for x in again.values() if len(x) > 1]
    # One event of each partition was under way when a fell asleep, and nothing else was handled twice.
    assert len(twice) <= PARTITIONS and all({w for w, _, _ in x} == {"a", "b"} for x in twice), twice
    assert len({p for x in twice for _, _, p in x}) == len(twice)
    assert a.has("error lease") or a.has("closed"), "its acknowledgements were refused, or it did not even try"
    assert a.process.poll() is None, "and a is alive: it may have its share again"


def test_failures_are_tried_again_and_then_dead(crew):
    w = crew.start("a")
    crew.push(1)
    crew.push(1, do="fail")
    crew.push(1, do="fail once")
    crew.push(1, do="hopeless")
    crew.push(20)
    crew.wait_all()
    tries = {}
    for _, _, tried, data in w.events():
        tries.setdefault(data["n"], []).append(tried)
    assert tries[1] == [0, 1, 2, 3] and tries[2] == [0, 1] and tries[3] == [0] and tries[10] == [0]
    wait_until(lambda: crew.broker.get("/api/v1/dlq?queue=%s" % crew.queue).json["total"] == 2, 5, "two dead letters")
    dead = crew.broker.get("/api/v1/dlq?queue=%s" % crew.queue).json["messages"]
    assert {(m["data"]["n"], m["errorMessage"]) for m in dead} == {(1, "as told"), (3, "no hope")}
    assert in_order(w.events()), "the others of the partition have waited"


@pytest.mark.parametrize("mode", ["plain", "batch"])
def test_the_history_has_each_try_of_the_processor(crew, mode):
    w = crew.start("a", mode=mode)
    crew.push(1, do="fail")
    crew.push(1, do="fail once")
    dead = wait_until(lambda: crew.broker.get("/api/v1/dlq?queue=%s" % crew.queue).json["messages"], 30, "a dead letter")[0]
    tries = [(a["attempt"], a["outcome"], a["error"]) for a in dead["attempts"]]
    assert tries == [(1, "triedAgain", "as told")] * 3 + [(1, "dlq", "as told")]
    times = [a["at"] for a in dead["attempts"]]
    assert times == sorted(times) and len(set(times)) == 4, "they are the times of the tries, not of the acknowledgement"
    line = crew.broker.get("/api/v1/messages/timeline?transactionId=%s&queue=%s" % (dead["transactionId"], crew.queue)).expect(200).json
    events = [e["event"] for m in line["messages"] for e in m["events"]]
    assert events == ["pushed", "delivered"] + ["failed", "triedAgain"] * 3 + ["failed", "deadLettered"]
    # One that worked in the end.
    wait_until(lambda: len([e for e in w.events() if e[3]["n"] == 1]) == 2, 30, "the second try")
    w.stop()
    done = [m for m in crew.broker.get("/api/v1/messages?queue=%s" % crew.queue).expect(200).json["messages"]
            if m["transactionId"] != dead["transactionId"]][0]
    line = crew.broker.get("/api/v1/messages/timeline?transactionId=%s&queue=%s" % (done["transactionId"], crew.queue)).expect(200).json
    assert [e["event"] for m in line["messages"] for e in m["events"]][:3] == ["pushed", "failed", "triedAgain"]
    assert line["status"] == "DELIVERED"


def test_failures_can_be_left_to_the_queues_policy(crew):
    crew.broker.configure(crew.queue, retryLimit=1)
    w = crew.start("a", mode="by-queue")
    crew.push(1, do="fail")
    wait_until(lambda: crew.broker.get("/api/v1/dlq?queue=%s" % crew.queue).json["total"] == 1, 15, "its retries are used up")
    assert len(w.events()) == 2 and {e[2] for e in w.events()} == {0}, "each delivery is handled once"


def test_everything_after_a_manual_checkpoint_is_redelivered(crew):
    crew.push(1, do="checkpoint")
    key = {"queue": crew.queue, "partitionKey": "k0"}
    crew.broker.push([{**key, "payload": {"n": i}} for i in (1, 2)])
    crew.n = 3
    a = crew.start("a", mode="manual")
    crew.wait_all()
    time.sleep(0.3)
    a.stop()
    b = crew.start("b", mode="manual")
    wait_until(lambda: [e[3]["n"] for e in b.events()] == [1, 2], 10, "the two behind the checkpoint")


def test_handled_events_are_recognised_when_delivered_again(crew):
    """Without a checkpoint everything is delivered again when partitions change hands.  The same process recognises its events."""
    crew.push(30)
    # A claim that expires on a busy machine is claimed again.  With 2 s that happened between reading the list and stealing.
    w = crew.start("a", mode="manual", expiry=30)
    crew.wait_all()
    path = "/api/v1/consumer-groups/%s/queues/%s/owners/" % (crew.group, crew.queue)
    epochs = [{"partition": o["partition"], "epoch": o["epoch"]} for o in crew.records()]
    r = crew.broker.post(path + "claim", {"owner": "x", "partitions": epochs, "steal": True, "manualCheckpoints": True}).expect(200).json
    assert all(x["success"] for x in r["results"]), r
    assert sum(o["lag"] for o in crew.records()) == 30, "all of it is to be delivered again"
    crew.broker.post(path + "release", {"owner": "x", "partitions": [{"partition": x["partition"], "epoch": x["epoch"]} for x in r["results"]]})
    wait_until(lambda: sum(o["lag"] for o in crew.records()) == 0, 15 * harness.TIME_FACTOR, "it was, and was acknowledged")
    assert len(w.events()) == 30, "and not handled again"


def test_it_heals_when_its_broker_was_away(make_broker, crew):
    """The broker is killed and restarted on its port.  The client reconnects and handles the remaining events."""
    away = make_broker()
    crew.url = away.url
    w = crew.start("a", expiry=30)
    wait_until(lambda: len(w.owned()) == PARTITIONS, 10, "it has all")
    crew.push(40)
    crew.wait_all()
    away.kill()
    wait_until(lambda: w.has("error"), 10, "it notices")
    crew.push(40)
    away.start()
    wait_until(lambda: w.has("rebuilt") and len(w.owned()) == PARTITIONS, 15, "5 s after the error it was built anew")
    crew.push(20)
    crew.wait_all(30)
    assert len(w.events()) == 100, "each once"


def test_a_broker_killed_under_its_answers_stalls_no_partition(make_broker, crew):
    """Its leases stay for minutes after it died. The processor must not wait for that."""
    away = make_broker()
    crew.url = away.url
    w = crew.start("a", expiry=60, mode="plain patient")
    wait_until(lambda: len(w.owned()) == PARTITIONS, 10, "it has all")
    for _ in range(5):
        for nth in range(10):
            crew.push(40)
            if nth == 5:
                away.kill()
        away.start()
        crew.wait_all(15)
    assert in_order(w.events())
    assert len(w.events()) == crew.n, "each once"


@pytest.mark.parametrize("partitions", [PARTITIONS * 4, 2])
def test_a_queue_that_is_deleted_and_made_again_is_handled(crew, partitions):
    """With more partitions, and with fewer: the running processor claims those that there are now."""
    crew.push(40)
    w = crew.start("a")
    crew.wait_all()
    crew.broker.request("DELETE", "/api/v1/resources/queues/" + crew.queue).expect(200)
    crew.broker.configure(crew.queue, partitions=partitions)
    crew.broker.push([{"queue": crew.queue, "partition": str(i % partitions), "payload": {"n": 40 + i}} for i in range(100)])
    crew.n += 100
    crew.wait_all(30)
    assert len(crew.records()) == partitions and set(crew.owners().values()) == {"a"}
    w.stop()


def test_a_queue_without_a_fixed_set_is_reported(broker, queue, group):
    w = Worker(broker.url, queue, group, "a")
    try:
        wait_until(lambda: w.has("error not_found there is no queue of that name with a fixed set"), 5, "it says so")
        w.stop()
    finally:
        w.process.kill()
        w.process.wait()
