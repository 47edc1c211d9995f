"""concurrencyKey and priority of messages: see test_sql_work_limits.py for generated histories of limits."""
import json
import threading
import time

import pytest

from harness import Background, patience, wait_until


def push(broker, queue, *groups):
    """Each group: (fields of the items, payloads)."""
    items = [{"queue": queue, "payload": p, **fields} for fields, payloads in groups for p in payloads]
    results = broker.push(items).expect(201).json
    assert [r["status"] for r in results] == ["queued"] * len(items), results


def take_all(broker, n, **params):
    """The payloads of n pops of one message."""
    out = []
    for _ in range(n):
        m, = broker.take(**params)
        assert broker.ack(m)["success"]
        out.append(m["data"])
    return out


@pytest.fixture
def jobs(broker, queue):
    broker.configure(queue, ordering="none", retryDelay=0)
    return queue


# ---- keys ----

def test_a_key_takes_the_place_of_the_partition(broker, jobs):
    push(broker, jobs, ({"concurrencyKey": "tenant 1"}, ["a"]))
    m, = broker.take(jobs)
    assert (m["partition"], m["data"]) == ("tenant 1", "a")
    assert broker.ack(m)["success"]


def test_keys_at_their_limit_are_passed_over(broker, queue):
    broker.configure(queue, ordering="none", keyMaxInFlight=1)
    push(broker, queue, ({"concurrencyKey": "a"}, ["a1", "a2", "a3"]), ({"concurrencyKey": "b"}, ["b1", "b2"]))
    one, two = broker.take(queue, batch=5) + broker.take(queue, batch=5)
    assert {one["data"], two["data"]} == {"a1", "b1"}
    assert broker.take(queue, batch=5) == []
    a, b = sorted((one, two), key=lambda m: m["data"])
    waiting = Background(lambda: broker.take(queue, batch=5, wait=True, timeout=25000))
    time.sleep(0.3)
    assert not waiting.done
    assert broker.ack(a)["success"]
    m, = waiting.result(30)
    assert m["data"] == "a2"
    assert broker.ack(m, "retry")["success"]
    assert [m["data"] for m in broker.take(queue, batch=5, wait=True, timeout=25000)] == ["a2"]


def test_two_brokers_share_the_limit_of_a_key(broker, broker2, queue):
    broker.configure(queue, ordering="none", keyMaxInFlight=2)
    lock, held, most, seen = threading.Lock(), {"a": 0, "b": 0}, {"a": 0, "b": 0}, []
    for key in held:
        push(broker, queue, ({"concurrencyKey": key}, range(20)), ({"concurrencyKey": key, "priority": 4}, range(20, 40)))
    deadline = time.monotonic() + patience(60)

    def consume(at):
        while time.monotonic() < deadline and len(seen) < 80:
            for m in at.take(queue, batch=2, wait=True, timeout=500):
                key = m["partition"][0]
                with lock:
                    held[key] += 1
                    most[key] = max(most[key], held[key])
                time.sleep(0.005)
                with lock:
                    held[key] -= 1  # before the acknowledgement: the next one may be delivered before its answer arrives
                assert at.ack(m)["success"]
                with lock:
                    seen.append((key, m["data"]))

    for c in [Background(lambda at=at: consume(at)) for at in (broker, broker2) * 4]:
        c.result(patience(70))
    assert sorted(seen) == sorted((key, n) for key in held for n in range(40))
    assert max(most.values()) <= 2


def test_a_key_with_few_messages_does_not_wait_for_one_with_many(broker, jobs):
    push(broker, jobs, ({"concurrencyKey": "big"}, ["big"] * 200))
    push(broker, jobs, ({"concurrencyKey": "small"}, ["small"] * 3))
    assert take_all(broker, 8, queue=jobs).count("small") == 3


def test_a_key_that_ends_like_a_priority_has_none(broker, queue, db):
    """Tenants choose their keys: they must not choose priorities, nor escape their limit."""
    broker.configure(queue, ordering="none", keyMaxInFlight=1)
    push(broker, queue, ({"concurrencyKey": "a"}, ["a"] * 2), ({"concurrencyKey": "a", "priority": 9}, ["urgent"]))
    db.cursor().execute("select queen.push_messages_v3(%s::jsonb)", [json.dumps([{"queue": queue, "payload": "sly", "concurrencyKey": "a~p9"}])])
    push(broker, queue, ({"concurrencyKey": "a~p9", "priority": 3}, ["sly 3"]))

    def take_all(n):
        """The broker finds the partition of a push from SQL a moment later. After n messages there are no others."""
        got, end = [], time.monotonic() + 30
        while len(got) < n and time.monotonic() < end:
            got += broker.take(queue, batch=5, wait=True, timeout=1000)
        return got + broker.take(queue, batch=5)
    got = take_all(2)
    assert sorted((m["data"], m["partition"]) for m in got) == [("sly 3", "a~p9~p3"), ("urgent", "a~p9")], "one of each key"
    for m in got:
        assert broker.ack(m)["success"]
    got = take_all(2)
    assert sorted((m["data"], m["partition"]) for m in got) == [("a", "a"), ("sly", "a~p9~p0")]


# ---- turns under limits ----

class Crew:
    """Consumers that wait, more than the limits allow to work; each job takes some time."""

    def __init__(self, brokers, queue, n, seconds=0.02):
        self.queue, self.seconds, self.got, self.lock, self.over = queue, seconds, [], threading.Lock(), False
        self.consumers = [Background(lambda at=brokers[i % len(brokers)]: self.consume(at)) for i in range(n)]

    def consume(self, at):
        while not self.over:
            for m in at.take(self.queue, wait=True, timeout=500):
                with self.lock:
                    self.got.append(m["data"])
                time.sleep(self.seconds)
                assert at.ack(m)["success"]

    def until(self, done):
        wait_until(lambda: done(self.got), patience(30), "the deliveries")
        self.over = True
        for c in self.consumers:
            c.result(patience(30))


@pytest.mark.parametrize("fields", [({"concurrencyKey": "big"}, {"concurrencyKey": "small"}), ({}, {"priority": 7})], ids=["keys", "priorities"])
def test_a_limit_of_the_queue_leaves_nobody_waiting_behind_a_backlog(broker, queue, fields):
    broker.configure(queue, ordering="none", maxInFlight=1)
    push(broker, queue, (fields[0], ["big"] * 600))
    crew = Crew([broker], queue, 6)
    wait_until(lambda: len(crew.got) > 20, patience(30), "work")
    push(broker, queue, (fields[1], ["small"] * 5))
    before = len(crew.got)
    crew.until(lambda got: got.count("small") == 5)
    assert len(crew.got) - before < 40, "messages of the backlog that passed five others"


def test_an_urgent_message_of_a_key_at_its_limit_comes_next(broker, queue):
    broker.configure(queue, ordering="none", keyMaxInFlight=1)
    push(broker, queue, ({"concurrencyKey": "a"}, ["low"] * 600))
    crew = Crew([broker], queue, 6)
    wait_until(lambda: len(crew.got) > 20, patience(30), "work")
    push(broker, queue, ({"concurrencyKey": "a", "priority": 9}, ["urgent"] * 5))
    before = len(crew.got)
    crew.until(lambda got: got.count("urgent") == 5)
    assert len(crew.got) - before < 20, "messages that passed urgent ones of their key"


def test_a_retry_of_a_key_at_its_limit_has_its_turn(broker, queue):
    broker.configure(queue, ordering="none", keyMaxInFlight=1,
                     retryPolicy={"mode": "scheduled", "strategy": "fixed", "base": 1, "floor": 1, "maxAttempts": 3})
    push(broker, queue, ({"concurrencyKey": "a", "priority": 2}, ["fails"]))
    m, = broker.take(queue)
    assert broker.ack(m, "failed", error="later")["success"]
    push(broker, queue, ({"concurrencyKey": "a", "priority": 2}, ["new"] * 600))
    crew = Crew([broker], queue, 6)
    crew.until(lambda got: "fails" in got)
    assert crew.got.index("fails") < 120


def test_many_keys_take_turns_under_a_limit_of_the_queue(broker, queue):
    broker.configure(queue, ordering="none", maxInFlight=2)
    keys = ["k%02d" % i for i in range(20)]
    push(broker, queue, *(({"concurrencyKey": k}, [k] * 30) for k in keys))
    crew = Crew([broker], queue, 12, 0.005)
    crew.until(lambda got: len(got) >= 200)
    counts = [crew.got[:200].count(k) for k in keys]
    assert min(counts) >= 7 and max(counts) <= 14, counts


def test_a_rate_of_each_key(broker, queue):
    broker.configure(queue, ordering="none", keyRateLimit=0.001, keyRateBurst=2)
    push(broker, queue, *(({"concurrencyKey": key}, [key] * 5) for key in "abc"))
    got = [m["data"] for _ in range(6) for m in broker.take(queue, batch=2)]
    assert sorted(got) == ["a", "a", "b", "b", "c", "c"]


def test_configure_reports_the_limits_of_keys(broker, queue):
    sent = {"ordering": "none", "keyMaxInFlight": 3, "keyRateLimit": 1.5}
    expected = {"keyMaxInFlight": 3, "keyRateLimit": 1.5, "keyRateBurst": 2}
    assert expected.items() <= broker.configure(queue, **sent)["options"].items()
    options = broker.get("/api/v1/status/queues/" + queue).expect(200).json["queue"]["options"]
    assert expected.items() <= options.items()
    assert not set(expected) & set(broker.configure(queue, ordering="none")["options"])


@pytest.mark.parametrize("options, sentence", [
    ({"keyMaxInFlight": 3}, "keyMaxInFlight needs ordering"), ({"keyRateLimit": 1}, "keyRateLimit needs ordering"),
    ({"keyRateBurst": 1}, "keyRateBurst needs ordering"), ({"ordering": "none", "keyRateBurst": 1}, "keyRateBurst needs keyRateLimit"),
    ({"ordering": "none", "keyRateLimit": 1e7}, "keyRateLimit must be"), ({"ordering": "none", "keyMaxInFlight": -1}, "keyMaxInFlight must be")])
def test_a_wrong_limit_is_refused(broker, queue, options, sentence):
    assert sentence in broker.post("/api/v1/configure", {"queue": queue, "options": options}).expect(400).json["error"]


# ---- priority ----

def test_higher_priorities_come_first_and_older_messages_within_one(broker, jobs):
    push(broker, jobs, *(({"priority": p}, ["%d.%d" % (p, i) for i in range(3)]) for p in (0, 9, 5)))
    assert take_all(broker, 9, queue=jobs) == ["%d.%d" % (p, i) for p in (9, 5, 0) for i in range(3)]


def test_pops_by_namespace_follow_priorities(broker, queue):
    broker.configure(queue, namespace=queue, ordering="none")
    push(broker, queue, ({}, ["low"] * 3), ({"priority": 1}, ["high"] * 3))
    assert take_all(broker, 6, namespace=queue) == ["high"] * 3 + ["low"] * 3


def test_priorities_of_an_ordered_queue(broker, queue):
    push(broker, queue, ({"partition": "x"}, [1, 2]), ({"partition": "x", "priority": 2}, [3, 4]))
    one, = broker.take(queue)
    assert (one["data"], one["partition"]) == (3, "x~p2")
    assert broker.take(queue)[0]["data"] == 1, "the other partition is leased"


def test_lower_priorities_do_not_starve(broker, jobs):
    push(broker, jobs, ({"priority": 9}, ["high"] * 130), ({"priority": 5}, ["middle"] * 5), ({}, ["low"] * 5))
    got = take_all(broker, 110, queue=jobs)
    assert (got.count("middle"), got.count("low")) == (5, 5), [(i, p) for i, p in enumerate(got) if p != "high"]
    assert got[:9] == ["high"] * 9
    assert got[10:19] == ["high"] * 9


def test_many_consumers_prefer_the_higher_priority(broker, jobs):
    push(broker, jobs, ({}, ["low"] * 200), ({"priority": 3}, ["high"] * 200))
    lock, got = threading.Lock(), []

    def consume():
        while len(got) < 400:
            for m in broker.take(jobs, wait=True, timeout=300):
                with lock:
                    got.append(m["data"])
                assert broker.ack(m)["success"]

    for c in [Background(consume) for _ in range(8)]:
        c.result(patience(60))
    assert (got.count("low"), got.count("high")) == (200, 200)
    early = got[:len(got) - got[::-1].index("high")].count("low")
    assert 0 < early < 130, early


def test_a_message_with_priority_wakes_a_waiting_consumer(broker, broker2, jobs):
    waiting = Background(lambda: broker2.take(jobs, wait=True, timeout=25000))
    time.sleep(0.2)
    push(broker, jobs, ({"priority": 7}, ["now"]))
    assert [m["data"] for m in waiting.result(30)] == ["now"]


def test_scheduled_messages_and_transactions_have_priorities(broker, jobs):
    push_result = broker.push([{"queue": jobs, "payload": "later", "priority": 8, "delaySeconds": 1}]).expect(201).json
    assert push_result[0]["status"] == "scheduled"
    broker.transaction([{"type": "push", "items": [{"queue": jobs, "payload": "now", "priority": 9},
                                                   {"queue": jobs, "payload": "key", "concurrencyKey": "k", "priority": 2}]}])
    got = {}
    deadline = time.monotonic() + patience(30)
    while len(got) < 3 and time.monotonic() < deadline:
        for m in broker.take(jobs, wait=True, timeout=1000):
            got[m["data"]] = m["partition"]
    assert got == {"later": "Default~p8", "now": "Default~p9", "key": "k~p2"}


def test_a_failed_message_keeps_its_priority(broker, jobs):
    push(broker, jobs, ({}, ["low"] * 2), ({"priority": 6}, ["high"]))
    m, = broker.take(jobs)
    assert broker.ack(m, "failed")["success"]
    assert take_all(broker, 3, queue=jobs) == ["high", "low", "low"]


def test_sql_sessions_push_and_pop_by_priority(broker, jobs, db):
    items = [{"queue": jobs, "payload": "low"}] * 30 + [{"queue": jobs, "payload": "high", "priority": 4}] * 30
    cur = db.cursor()
    cur.execute("select queen.push_messages_v3(%s::jsonb)", [json.dumps(items)])
    got = []
    for i in range(30):
        cur.execute("select queen.pop_unified_batch(%s::jsonb)",
                    [json.dumps([{"idx": 0, "queue_name": jobs, "batch_size": 1, "auto_ack": True}])])
        result = cur.fetchone()[0][0]
        got += [m["data"] for m in (result.get("result") or result)["messages"]]
    assert len(got) == 30
    assert got.count("high") >= 18, "about one in ten takes no notice of the priority"


WRONG = [({"priority": 10}, "priority must be a whole number from 0 to 9"), ({"priority": -1}, "priority must be a whole number from 0 to 9"),
         ({"priority": "5"}, "priority must be a whole number from 0 to 9"), ({"priority": 1.5}, "priority must be a whole number from 0 to 9"),
         ({"priority": True}, "priority must be a whole number from 0 to 9"), ({"concurrencyKey": 1}, "concurrencyKey must be a string"),
         ({"concurrencyKey": "a", "partition": "b"}, "concurrencyKey is given together with partition"),
         ({"concurrencyKey": "k" * 253, "priority": 1}, "with its priority, is longer than 255 characters")]


@pytest.mark.parametrize("fields, sentence", WRONG)
def test_wrong_fields_are_refused(broker, queue, db, fields, sentence):
    items = [{"queue": queue, "payload": 1}, {"queue": queue, "payload": 2, **fields}]
    error = broker.push(items).expect(400).json["error"]
    assert error.startswith("item 1: ") and sentence in error
    r = broker.post("/api/v1/transaction", {"operations": [{"type": "push", "items": items}]}).expect(400)
    assert sentence in r.json["error"]
    cur = db.cursor()
    with pytest.raises(Exception) as e:
        cur.execute("select queen.push_messages_v3(%s::jsonb)", [json.dumps(items)])
    assert "item 1: " in str(e.value) and sentence in str(e.value)
    assert broker.take(queue) == [], "nothing was stored"


def test_partition_key_excludes_both(broker, queue):
    for fields in ({"priority": 1}, {"concurrencyKey": "a"}):
        r = broker.push([{"queue": queue, "payload": 1, "partitionKey": "x", **fields}]).expect(400)
        assert "partitionKey" in r.json["error"]


def test_zero_and_null_are_no_priority(broker, jobs):
    push(broker, jobs, ({"priority": 0}, [1]), ({"priority": None, "concurrencyKey": None}, [2]))
    assert {m["partition"] for m in broker.take(jobs, batch=2)} == {"Default"}
