"""Options and features of queues on work queues (ordering: none)."""
import time
import uuid
from urllib.parse import urlencode

import pytest

from harness import patience, wait_until

KEY = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"


@pytest.fixture
def jobs(broker, queue):
    broker.configure(queue, ordering="none", leaseTime=60)
    return queue


def data(messages):
    return [m["data"] for m in messages]


def test_encrypted_jobs(make_broker, queue):
    broker = make_broker(QUEEN_ENCRYPTION_KEY="first:" + KEY)
    broker.configure(queue, ordering="none", encryptionEnabled=True, retryLimit=2)
    broker.put(queue, [{"card": 1}, {"card": 2}, {"card": 3}])
    one, two = broker.take(queue, batch=2)
    assert data([one, two]) == [{"card": 1}, {"card": 2}]
    assert broker.ack(two)["success"] and broker.ack(one, "failed", error="no")["success"]
    assert data(broker.take(queue, batch=5)) == [{"card": 1}, {"card": 3}]


def test_jobs_pushed_during_maintenance_are_delivered_from_the_buffer(make_broker, pg, queue):
    broker, jobs = make_broker(database=pg.create_database("workbuffer_%d" % time.monotonic_ns())), queue
    broker.configure(jobs, ordering="none", leaseTime=60)
    broker.post("/api/v1/system/maintenance", {"enabled": True}).expect(200)
    try:
        r = broker.push([{"queue": jobs, "payload": n} for n in range(3)]).expect(201)
        assert {x["status"] for x in r.json} == {"buffered"}
    finally:
        broker.post("/api/v1/system/maintenance", {"enabled": False}).expect(200)
    got = []
    deadline = time.monotonic() + patience(30)
    while len(got) < 3 and time.monotonic() < deadline:
        got += broker.take(jobs, batch=2, wait=True, timeout=2000)
    assert sorted(data(got)) == [0, 1, 2]
    assert all(r["success"] for r in broker.ack_batch(got))


def test_dead_letters_are_redriven_while_older_jobs_are_held(broker, jobs):
    broker.configure(jobs, ordering="none", leaseTime=60, retryLimit=0)
    broker.put(jobs, ["held", "dead", "next"])
    held, dead = broker.take(jobs, batch=2)
    assert broker.ack(dead, "failed", error="no")["dlq"]
    assert broker.post("/api/v1/dlq/redrive", {"queue": jobs}).expect(200).json["redriven"] == 1
    got = []
    deadline = time.monotonic() + patience(30)
    while len(got) < 2 and time.monotonic() < deadline:
        got += broker.take(jobs, batch=5, wait=True, timeout=2000)
    assert sorted(data(got)) == ["dead", "next"]
    assert all(r["success"] for r in broker.ack_batch(got + [held]))
    assert broker.take(jobs, batch=5) == []


def test_the_timeline_of_a_job(broker, queue):
    broker.configure(queue, ordering="none", leaseTime=60, retryLimit=2)
    cid = uuid.uuid4().hex
    broker.put(queue, ["first"])
    broker.push([{"queue": queue, "payload": "job", "correlationId": cid}]).expect(201)

    def status():
        return broker.get("/api/v1/messages/timeline?" + urlencode({"correlationId": cid})).expect(200).json["messages"][0]["status"]

    assert status() == "PENDING"
    first, job = broker.take(queue, batch=2)
    assert status() == "LEASED"
    assert broker.ack(job, "failed", error="no")["success"]
    assert status() == "RETRYING"
    (job,) = broker.take(queue, batch=2)
    assert broker.ack(job)["success"]
    assert status() == "DELIVERED", "although an older job is not settled"
    assert broker.ack(first)["success"]


def test_a_full_work_queue_counts_what_is_not_settled(broker, queue):
    """A slow job at the front does not keep producers out when the others are done."""
    broker.configure(queue, ordering="none", leaseTime=60, maxSize=5)
    broker.put(queue, list(range(5)))
    slow, *others = broker.take(queue, batch=5)
    assert all(r["success"] for r in broker.ack_batch(others))
    wait_until(lambda: broker.push([{"queue": queue, "payload": 6}]).status == 201, patience(20), "room for another job")
    assert data(broker.take(queue, batch=5)) == [6]
    assert broker.ack(slow)["success"]


def test_old_jobs_are_not_delivered_again_after_their_ttl(broker, queue):
    broker.configure(queue, ordering="none", leaseTime=60, ttl=2)
    broker.put(queue, ["old", "older"])
    (m,) = broker.take(queue)
    time.sleep(2.2)
    broker.put(queue, ["new"])
    assert broker.ack(m, "retry")["success"]
    assert data(broker.take(queue, batch=5, wait=True, timeout=5000)) == ["new"]


def test_a_seek_delivers_completed_jobs_again(broker, jobs):
    broker.put(jobs, [1, 2, 3])
    one, two = broker.take(jobs, batch=2, consumerGroup="g")
    assert broker.ack(two)["success"]
    broker.post("/api/v1/consumer-groups/g/queues/%s/seek" % jobs, {"timestamp": "2020-01-01T00:00:00Z"}).expect(200)
    got = broker.take(jobs, batch=5, consumerGroup="g", wait=True, timeout=20000)
    assert data(got) == [1, 2, 3]
    assert not broker.ack(one)["success"]
    assert all(r["success"] for r in broker.ack_batch(got, group="g"))


def test_a_cleared_queue_forgets_its_leases(broker, jobs):
    broker.put(jobs, [1, 2])
    (m,) = broker.take(jobs)
    broker.request("DELETE", "/api/v1/queues/%s/clear" % jobs).expect(200)
    assert not broker.ack(m)["success"]
    broker.put(jobs, [3])
    assert data(broker.take(jobs, batch=5, wait=True, timeout=20000)) == [3]


def test_a_deleted_group_begins_again(broker, jobs):
    broker.put(jobs, [1, 2])
    (m,) = broker.take(jobs, consumerGroup="g", subscriptionMode="all")
    broker.request("DELETE", "/api/v1/consumer-groups/g").expect(200)
    assert not broker.ack(m)["success"]
    assert data(broker.take(jobs, batch=5, consumerGroup="g", subscriptionMode="all", wait=True, timeout=20000)) == [1, 2]


def test_a_transaction_settles_several_leases_or_none(broker, jobs):
    broker.put(jobs, [1, 2, 3])
    one, two, three = (broker.take(jobs)[0] for _ in range(3))

    def ack(m):
        return {"type": "ack", "transactionId": m["transactionId"], "partitionId": m["partitionId"], "status": "completed"}

    r = broker.transaction([ack(three), ack(one), {"type": "push", "items": [{"queue": jobs, "payload": 4}]}],
                           required=[one["leaseId"]])
    assert not r["success"]
    assert broker.take(jobs, batch=5) == []
    r = broker.transaction([ack(three), ack(one), {"type": "push", "items": [{"queue": jobs, "payload": 4}]}],
                           required=[one["leaseId"], three["leaseId"]])
    assert r["success"], r
    assert data(broker.take(jobs, batch=5, wait=True, timeout=20000)) == [4]
    assert broker.ack(two)["success"]


def test_scheduled_and_repeated_jobs(broker, jobs):
    broker.push([{"queue": jobs, "payload": "later", "delaySeconds": 1, "transactionId": "t"}]).expect(201)
    r = broker.push([{"queue": jobs, "payload": "twice", "transactionId": "t"}]).expect(201)
    assert r.json[0]["status"] == "duplicate"
    assert data(broker.take(jobs, batch=5, wait=True, timeout=25000)) == ["later"]
