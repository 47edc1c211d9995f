"""A walk over every option of configure: each one, and what it changes.  Details are in test_options.py and test_retention.py."""
import time

import pytest

from harness import wait_until

ALL = {"leaseTime", "retryLimit", "retryDelay", "maxSize", "ttl", "deadLetterQueue", "dlqAfterMaxRetries", "priority",
       "delayedProcessing", "windowBuffer", "retentionSeconds", "completedRetentionSeconds", "retentionEnabled",
       "encryptionEnabled", "maxWaitTimeSeconds"}
# Echoed for compatibility (dead letters are always on), or shown by tests of their own.
ELSEWHERE = {"deadLetterQueue", "dlqAfterMaxRetries", "encryptionEnabled"}


def lease_time(b, queue):
    """A lease of one second ends."""
    b.put(queue, [1])
    assert len(b.take(queue)) == 1 and b.take(queue) == []
    wait_until(lambda: b.take(queue), 4, "the lease ended")


def retry_limit(b, queue):
    """No failure is forgiven."""
    b.put(queue, [1])
    assert b.ack(b.take(queue)[0], "failed")["dlq"] is True


def retry_delay(b, queue):
    b.put(queue, [1])
    b.ack(b.take(queue)[0], "failed")
    assert b.take(queue) == []


def max_size(b, queue):
    b.put(queue, [1])
    b.push([{"queue": queue, "payload": 2}]).expect(429)


def over_age(b, queue):
    b.put(queue, [1])
    time.sleep(1.1)
    assert b.take(queue) == []


def not_yet(b, queue):
    b.put(queue, [1])
    assert b.take(queue) == []
    assert len(wait_until(lambda: b.take(queue), 4, "its time")) == 1


def priority(b, queue):
    b.configure(queue + "-low", namespace=queue, priority=1)
    b.configure(queue, namespace=queue, priority=2)
    b.put(queue + "-low", ["low"])
    b.put(queue, ["high"])
    assert b.take(namespace=queue, autoAck=True)[0]["data"] == "high"


def swept(b, queue):
    b.put(queue, [1], ids=["once"])
    assert len(b.take(queue, autoAck=True)) == 1
    again = {"queue": queue, "payload": 2, "transactionId": "once"}
    wait_until(lambda: b.push([again]).expect(201).json[0]["status"] == "queued", 8, "the consumed message removed", 0.1)


WALK = [({"leaseTime": 1}, lease_time), ({"retryLimit": 0}, retry_limit), ({"retryDelay": 60000}, retry_delay),
        ({"maxSize": 1}, max_size), ({"ttl": 1}, over_age), ({"maxWaitTimeSeconds": 1}, over_age),
        ({"retentionSeconds": 1, "retentionEnabled": True}, over_age), ({"delayedProcessing": 1}, not_yet),
        ({"windowBuffer": 1}, not_yet), ({"priority": 2}, priority),
        ({"completedRetentionSeconds": 1, "retentionEnabled": True}, swept)]


def test_the_walk_is_complete(broker, queue):
    assert set(broker.configure(queue)["options"]) == ALL
    assert {name for options, _ in WALK for name in options} | ELSEWHERE == ALL


@pytest.mark.parametrize("options,effect", WALK, ids=[next(iter(o)) for o, _ in WALK])
def test_an_option_is_echoed_and_acts(broker, make_broker, queue, options, effect):
    b = make_broker(RETENTION_INTERVAL=200, EVICTION_INTERVAL=200) if effect is swept else broker
    echoed = b.configure(queue, **options)["options"]
    assert {k: echoed[k] for k in options} == options
    effect(b, queue)
