"""Lists, counts and single messages agree with each other, also about messages that wait for a retry."""
import pytest

from harness import QUEUE_MODE, wait_until

HOUR = {"mode": "scheduled", "strategy": "fixed", "base": 3600, "maxAttempts": 3}
SOON = {"mode": "scheduled", "strategy": "list", "delays": [0.05], "maxAttempts": 3}


def one_of_three_failed(broker, queue, policy, group):
    broker.configure(queue, retryPolicy=policy)
    broker.put(queue, [0, 1, 2], partition="p", ids=["m0", "m1", "m2"])
    messages = broker.take(queue, "p", batch=3, consumerGroup=group)
    assert broker.ack(messages[1], "failed")["nextAttempt"] == 2
    assert broker.ack(messages[2])["leaseReleased"] is True
    return messages[1]["partitionId"]


def listed(broker, queue, **params):
    more = "".join("&%s=%s" % p for p in params.items())
    return {m["transactionId"]: m["status"] for m in broker.get("/api/v1/messages?queue=%s%s" % (queue, more)).expect(200).json["messages"]}


def message(broker, partition, tx):
    return broker.get("/api/v1/messages/%s/%s" % (partition, tx)).expect(200).json


@pytest.mark.parametrize("group", [QUEUE_MODE, "g"])
def test_a_message_that_waits_for_its_retry_is_not_completed(broker, queue, group):
    partition = one_of_three_failed(broker, queue, HOUR, group)
    expected = {"m0": "completed", "m1": "pending", "m2": "completed"}
    assert listed(broker, queue) == expected
    assert {m["transactionId"]: m["status"] for m in broker.get("/api/v1/status/queues/%s/messages" % queue).expect(200).json} == expected
    assert {tx: message(broker, partition, tx)["status"] for tx in expected} == expected
    assert listed(broker, queue, status="completed") == {"m0": "completed", "m2": "completed"}
    if group != QUEUE_MODE:
        assert [g["consumed"] for g in message(broker, partition, "m1")["consumerGroups"]] == [False]
        by_id = {m["transactionId"]: m["busStatus"] for m in broker.get("/api/v1/messages?queue=" + queue).expect(200).json["messages"]}
        assert by_id["m1"] == {"consumedBy": 0, "totalGroups": 1} and by_id["m2"]["consumedBy"] == 1


def test_pages_of_completed_messages_are_full_beside_retries(broker, queue):
    broker.configure(queue, retryPolicy=HOUR)
    broker.put(queue, list(range(40)), partition="p", ids=["m%02d" % i for i in range(40)])
    messages = broker.take(queue, "p", batch=40)
    results = broker.ack_batch([broker.ack_entry(m, "failed" if m["data"] >= 25 else "completed") for m in messages])
    assert all(r["success"] for r in results)
    pages = [listed(broker, queue, status="completed", limit=10, offset=o) for o in (0, 10, 20, 30)]
    assert [len(p) for p in pages] == [10, 10, 5, 0]
    assert sorted(tx for p in pages for tx in p) == ["m%02d" % i for i in range(25)]


def test_a_retry_is_processing_under_its_lease_and_completed_in_the_end(broker, queue):
    partition = one_of_three_failed(broker, queue, SOON, QUEUE_MODE)
    (m,) = broker.take(queue, wait="true", timeout=10000)
    assert m["attempt"] == 2
    assert (listed(broker, queue)["m1"], message(broker, partition, "m1")["status"]) == ("processing", "processing")
    assert broker.ack(m)["success"] is True
    assert (listed(broker, queue)["m1"], message(broker, partition, "m1")["status"]) == ("completed", "completed")


def test_the_overview_computes_its_lag(make_broker, pg):
    b = make_broker(database=pg.create_database("overview"))
    for queue, n in (("a", 1), ("b", 3), ("c", 8)):
        b.put(queue, list(range(n)))
    offset = {}

    def counted():
        offset.update(b.get("/api/v1/resources/overview").expect(200).json["lag"]["offset"])
        return offset["max"] == 8
    wait_until(counted, 20, "the count of all three queues")
    assert (offset["avg"], offset["median"], offset["min"]) == (4, 3, 1)
