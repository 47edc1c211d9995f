"""Concurrency keys and priorities together with the other features of work queues."""
import time

import pytest

from harness import Background, patience
from test_work_keys import push, take_all
from test_work_options import KEY


def collect(broker, queue, n, **params):
    """n messages, of several pops that wait."""
    got, deadline = [], time.monotonic() + patience(30)
    while len(got) < n and time.monotonic() < deadline:
        got += broker.take(queue, wait=True, timeout=2000, **params)
    return got


@pytest.fixture
def single(broker, queue):
    """One job of each key at a time."""
    broker.configure(queue, ordering="none", keyMaxInFlight=1, leaseTime=60, retryLimit=0)
    return queue


def test_a_redriven_job_keeps_its_key_and_priority(broker, single):
    push(broker, single, ({"concurrencyKey": "a", "priority": 5}, ["dead"]))
    m, = broker.take(single)
    assert broker.ack(m, "failed", error="no")["dlq"]
    push(broker, single, ({"concurrencyKey": "a"}, ["other"]), ({"concurrencyKey": "b"}, ["free"]))
    got = {m["data"]: m for m in collect(broker, single, 2)}
    assert set(got) == {"other", "free"}
    assert broker.post("/api/v1/dlq/redrive", {"queue": single}).expect(200).json["redriven"] == 1
    waiting = Background(lambda: collect(broker, single, 1))
    time.sleep(0.5)
    assert not waiting.done, "the key is at its limit"
    assert broker.ack(got["other"])["success"]
    m, = waiting.result(patience(40))
    assert (m["data"], m["partition"]) == ("dead", "a~p5")


def test_buffered_jobs_keep_key_and_priority(make_broker, pg, queue):
    broker = make_broker(database=pg.create_database("keybuffer_%d" % time.monotonic_ns()))
    broker.configure(queue, ordering="none", leaseTime=60)
    broker.post("/api/v1/system/maintenance", {"enabled": True}).expect(200)
    try:
        r = broker.push([{"queue": queue, "payload": 1, "concurrencyKey": "k"}, {"queue": queue, "payload": 2, "concurrencyKey": "k", "priority": 3}])
        assert {x["status"] for x in r.expect(201).json} == {"buffered"}
    finally:
        broker.post("/api/v1/system/maintenance", {"enabled": False}).expect(200)
    assert {(m["data"], m["partition"]) for m in collect(broker, queue, 2)} == {(1, "k"), (2, "k~p3")}


def test_encrypted_jobs_have_keys_and_priorities(make_broker, queue):
    broker = make_broker(QUEEN_ENCRYPTION_KEY="first:" + KEY)
    broker.configure(queue, ordering="none", encryptionEnabled=True, keyMaxInFlight=1)
    push(broker, queue, ({"concurrencyKey": "a"}, [{"card": 1}]), ({"concurrencyKey": "a", "priority": 9}, [{"card": 2}]))
    assert take_all(broker, 2, queue=queue) == [{"card": 2}, {"card": 1}]


@pytest.mark.parametrize("end", ["seek", "group", "clear", "transaction", "dlq", "expiry"])
def test_whatever_ends_a_lease_makes_room_for_its_key(broker, single, end):
    broker.configure(single, ordering="none", keyMaxInFlight=1, leaseTime=2 if end == "expiry" else 600)
    push(broker, single, ({"concurrencyKey": "a"}, [1, 2]))
    m, = broker.take(single, batch=2, consumerGroup="g", subscriptionMode="all")
    assert broker.take(single, batch=2, consumerGroup="g") == []
    if end == "seek":
        broker.post("/api/v1/consumer-groups/g/queues/%s/seek" % single, {"timestamp": "2020-01-01T00:00:00Z"}).expect(200)
    elif end == "group":
        broker.request("DELETE", "/api/v1/consumer-groups/g").expect(200)
    elif end == "clear":
        broker.request("DELETE", "/api/v1/queues/%s/clear" % single).expect(200)
        push(broker, single, ({"concurrencyKey": "a"}, [3]))
    elif end == "transaction":
        assert broker.transaction([{"type": "ack", "transactionId": m["transactionId"], "partitionId": m["partitionId"], "status": "completed",
                                    "consumerGroup": "g"}], required=[m["leaseId"]])["success"]
    elif end == "dlq":
        broker.post("/api/v1/messages/%s/%s/dlq" % (m["partitionId"], m["transactionId"]), {"consumerGroup": "g"}).expect(200)
    got, = collect(broker, single, 1, batch=2, consumerGroup="g", subscriptionMode="all")
    assert got["data"] == {"seek": 1, "group": 1, "clear": 3, "transaction": 2, "dlq": 2, "expiry": 1}[end]


def test_a_full_queue_counts_jobs_of_all_keys(broker, queue):
    broker.configure(queue, ordering="none", maxSize=4)
    push(broker, queue, ({"concurrencyKey": "a"}, [1, 2]), ({"concurrencyKey": "b", "priority": 1}, [3, 4]))
    assert broker.push([{"queue": queue, "payload": 5, "concurrencyKey": "c"}]).status != 201


def test_a_job_is_unique_within_its_key(broker, queue):
    broker.configure(queue, ordering="none")
    r = broker.push([{"queue": queue, "payload": n, "transactionId": "t", "concurrencyKey": k} for n, k in enumerate("aab")]).expect(201)
    assert [x["status"] for x in r.json] == ["queued", "duplicate", "queued"]
