"""settlement "message" on ordered queues over HTTP: see test_sql_message_settlement.py for generated histories."""
import random
import threading
import time

import pytest

from harness import Background, patience


@pytest.fixture
def events(broker, queue):
    broker.configure(queue, settlement="message", leaseTime=60, retryLimit=100)
    return queue


def data(messages):
    return [m["data"] for m in messages]


def test_configure_reports_the_settlement(broker, queue):
    assert "settlement" not in broker.configure(queue, settlement="batch")["options"]
    assert broker.configure(queue, settlement="message")["options"]["settlement"] == "message"
    options = broker.get("/api/v1/status/queues/" + queue).expect(200).json["queue"]["options"]
    assert (options["settlement"], options["ordering"]) == ("message", "partition")
    for bad in ("each", 1, True, ["message"]):
        r = broker.post("/api/v1/configure", {"queue": queue, "options": {"settlement": bad}}).expect(400)
        assert "settlement must be" in r.json["error"]


def test_handlers_of_one_batch_settle_in_any_order(broker, events):
    broker.put(events, list(range(6)))
    got = broker.take(events, batch=4)
    assert data(got) == [0, 1, 2, 3]
    assert broker.take(events, batch=4) == [], "a partition is served to one consumer at a time"
    for m in (got[3], got[1]):
        assert broker.ack(m)["success"]
    assert broker.ack(got[2], "failed", error="no")["success"]
    call = Background(lambda: broker.take(events, batch=9, wait=True, timeout=25000))
    time.sleep(0.3)
    assert not call.done
    assert broker.ack(got[0])["leaseReleased"]
    again = call.result(30)
    assert [(m["data"], m["retryCount"]) for m in again] == [(2, 1), (4, 0), (5, 0)]
    assert all(r["success"] for r in broker.ack_batch(reversed(again)))
    assert broker.take(events, batch=9) == []


def test_an_expired_lease_returns_only_what_is_not_settled(broker, queue):
    broker.configure(queue, settlement="message", leaseTime=1)
    broker.put(queue, [1, 2, 3])
    first = broker.take(queue, batch=3)
    assert broker.ack(first[1])["success"]
    broker.put(queue, [4])
    got = broker.take(queue, batch=10, wait=True, timeout=20000)
    assert data(got) == [1, 3, 4]
    assert not broker.ack(first[0])["success"]


def test_a_message_is_given_back_for_later_and_stops_its_partition_alone(broker, events):
    for p in "ab":
        broker.put(events, [1, 2], partition=p)
    (m,) = broker.take(events, "a")
    entry = dict(broker.ack_entry(m, "retry"), retryAfter=2)
    assert broker.ack_batch([entry])[0]["success"]
    assert broker.take(events, "a", batch=5) == []
    assert data(broker.take(events, batch=5)) == [1, 2], "the other partition"
    assert data(broker.take(events, "a", batch=5, wait=True, timeout=25000)) == [1, 2]


def test_a_transaction_settles_one_message(broker, events):
    broker.put(events, [1, 2])
    one, two = broker.take(events, batch=2)
    r = broker.transaction([{"type": "ack", "transactionId": two["transactionId"], "partitionId": two["partitionId"], "status": "completed"},
                            {"type": "push", "items": [{"queue": events, "payload": 3}]}], required=[two["leaseId"]])
    assert r["success"], r
    assert broker.ack(one, "retry")["success"]
    assert data(broker.take(events, batch=5, wait=True, timeout=20000)) == [1, 3]


def test_scheduled_retries_do_not_stop_the_partition(broker, queue):
    broker.configure(queue, settlement="message", leaseTime=60,
                     retryPolicy={"mode": "scheduled", "strategy": "fixed", "base": 1, "maxAttempts": 3})
    broker.put(queue, [1, 2])
    one, two = broker.take(queue, batch=2)
    assert broker.ack(one, "failed", error="no")["success"] and broker.ack(two)["success"]
    (m,) = broker.take(queue, wait=True, timeout=25000)
    assert m["data"] == 1
    assert broker.ack(m)["success"]
    assert broker.take(queue, batch=5) == []


def test_consumers_of_two_brokers_share_partitions_in_order(broker, broker2, events):
    """No partition is with two consumers, nothing is lost, and the first deliveries of a partition are in order."""
    parts, n = "abc", 25
    for p in parts:
        broker.put(events, list(range(n)), partition=p)
    lock, first, done, holders, errors = threading.Lock(), {p: [] for p in parts}, [], {}, []
    deadline = time.monotonic() + patience(60)

    def consume(seed):
        rnd, at = random.Random(seed), (broker, broker2)[seed % 2]
        while time.monotonic() < deadline and len(done) < n * len(parts):
            got = at.take(events, batch=rnd.randint(1, 5), wait=True, timeout=500)
            if not got:
                continue
            p = got[0]["partition"]
            with lock:
                if holders.get(p):
                    errors.append("%s is with two consumers" % p)
                holders[p] = True
                first[p] += [m["data"] for m in got if m["data"] not in first[p]]
            rnd.shuffle(got)
            for m in got[:-1]:
                fails = rnd.random() < 0.2
                assert at.ack(m, "failed" if fails else "completed")["success"]
                if not fails:
                    with lock:
                        done.append((p, m["data"]))
            with lock:
                holders[p] = False  # before the last acknowledgement, which ends the lease
                done.append((p, got[-1]["data"]))
            assert at.ack(got[-1])["success"]

    calls = [Background(lambda i=i: consume(i)) for i in range(6)]
    for c in calls:
        c.result(patience(70))
    assert not errors
    assert sorted(done) == sorted((p, i) for p in parts for i in range(n))
    assert all(first[p] == list(range(n)) for p in parts)


def test_auto_ack_pops_get_all_messages_that_were_given_back(broker, events):
    broker.put(events, [0])
    assert data(broker.take(events, autoAck=True)) == [0]
    assert broker.take(events, autoAck=True) == [], "now nothing is known to wait"
    broker.put(events, [1, 2, 3, 4])
    got = broker.take(events, batch=3)
    assert data(got) == [1, 2, 3]
    assert all(r["success"] for r in broker.ack_batch([broker.ack_entry(m, "retry") for m in got]))
    for n in (1, 2, 3, 4):
        assert data(broker.take(events, batch=1, autoAck=True)) == [n]
    assert broker.take(events, batch=1, autoAck=True) == []
