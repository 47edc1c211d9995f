"""Deleting groups and changing their subscription (http-api 13.4-13.6; semantics 6, 20)."""
from datetime import datetime, timedelta, timezone

from harness import QUEUE_MODE, Background


def remove(broker, group, queue=None, metadata=None):
    path = "/api/v1/consumer-groups/" + group + ("/queues/" + queue if queue else "")
    if metadata is not None:
        path += "?deleteMetadata=" + metadata
    return broker.request("DELETE", path).expect(200).json


def iso(shift):
    return (datetime.now(timezone.utc) + timedelta(seconds=shift)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def data(messages):
    return [m["data"] for m in messages]


def recorded(sql, group):
    return sql("select count(*) from queen.consumer_groups_metadata where consumer_group = %s", group)[0][0]


def test_a_deleted_group_starts_afresh_on_every_broker(broker, broker2, sql, queue, group):
    broker.put(queue, [1, 2], partition="a")
    broker.put(queue, [3], partition="b")
    for b in (broker, broker2):
        assert sorted(data(b.drain(queue, consumerGroup=group)) + data(broker.drain(queue, consumerGroup=group))) == [1, 2, 3]
        assert b.take(queue, consumerGroup=group) == []
        assert remove(broker, group) == {"success": True, "consumerGroup": group, "deletedPartitions": 2,
                                         "metadataDeleted": True}
    assert data(broker2.drain(queue, partition="a", consumerGroup=group)) == [1, 2]
    assert data(broker2.drain(queue, consumerGroup=group)) == [3]
    assert sql("select count(*) from queen.partition_consumers where consumer_group = %s", group) == [(2,)]


def test_a_group_is_deleted_on_one_queue(broker, broker2, queue, group):
    other = queue + "-other"
    for q in (queue, other):
        broker.put(q, [1])
        assert data(broker2.drain(q, consumerGroup=group)) == [1]
    assert remove(broker, group, queue) == {"success": True, "consumerGroup": group, "queueName": queue,
                                            "deletedPartitions": 1, "metadataDeleted": True}
    assert broker2.take(other, consumerGroup=group) == []
    assert data(broker2.drain(queue, consumerGroup=group)) == [1]


def test_an_unknown_group_is_not_an_error(broker, queue, group):
    assert remove(broker, group)["deletedPartitions"] == 0
    assert remove(broker, group, queue)["deletedPartitions"] == 0
    assert remove(broker, group, metadata="false")["metadataDeleted"] is False


def test_queue_mode_can_be_deleted_on_a_queue(broker, queue):
    broker.put(queue, [1])
    assert data(broker.drain(queue)) == [1]
    assert remove(broker, QUEUE_MODE, queue)["deletedPartitions"] == 1
    assert data(broker.drain(queue)) == [1]


def test_the_subscription_stays_or_goes(broker, broker2, sql, queue, group):
    broker.put(queue, ["old"])
    assert broker2.take(queue, consumerGroup=group, subscriptionMode="new") == []
    broker.put(queue, ["mid"])
    assert data(broker2.drain(queue, consumerGroup=group)) == ["mid"]
    remove(broker, group, metadata="false")
    assert recorded(sql, group) == 1
    assert data(broker2.drain(queue, consumerGroup=group)) == ["mid"], "from the recorded time on"
    remove(broker, group)
    assert recorded(sql, group) == 0
    assert broker2.take(queue, consumerGroup=group, subscriptionMode="new") == [], "recorded anew"
    assert recorded(sql, group) == 1
    remove(broker, group, queue)
    assert recorded(sql, group) == 0
    assert data(broker2.drain(queue, consumerGroup=group)) == ["old", "mid"]


def test_a_subscription_without_partitions_is_forgotten_too(broker, broker2, queue, group):
    assert broker2.take(queue, consumerGroup=group, subscriptionMode="new") == []
    remove(broker, group)
    broker.put(queue, ["before"])
    assert broker2.take(queue, consumerGroup=group, subscriptionMode="new") == []
    broker.put(queue, ["after"])
    assert data(broker2.drain(queue, consumerGroup=group)) == ["after"]


def test_acks_of_a_deleted_group_are_refused_and_parked_pops_start_over(broker, broker2, queue, group):
    broker.put(queue, [1])
    (m,) = broker2.take(queue, consumerGroup=group)
    parked = Background(lambda: broker2.take(queue, consumerGroup=group, wait=True, timeout=60000))
    remove(broker, group)
    assert data(parked.result(70)) == [1]
    assert parked.seconds < 40
    assert broker.ack(m)["error"] == "Invalid or expired lease"


def change(broker, group, body):
    return broker.post("/api/v1/consumer-groups/%s/subscription" % group, body)


def test_a_changed_subscription_applies_only_to_partitions_without_progress(broker, broker2, sql, queue, group):
    early = iso(-3600)
    broker.put(queue, [1, 2], partition="a")
    assert broker2.take(queue, consumerGroup=group, subscriptionMode="new") == []
    broker.put(queue, [3], partition="b")
    assert data(broker2.drain(queue, consumerGroup=group)) == [3]
    assert change(broker, group, {"subscriptionTimestamp": early}).expect(200).json == {
        "success": True, "consumerGroup": group, "newTimestamp": early, "rowsUpdated": 1}
    assert data(broker2.drain(queue, consumerGroup=group)) == [1, 2], "partition b keeps its cursor"
    assert sql("select subscription_timestamp = %s::timestamptz from queen.consumer_groups_metadata where consumer_group = %s",
               early, group) == [(True,)]


def test_subscriptions_that_cannot_be_changed(broker, group):
    assert change(broker, group, {"subscriptionTimestamp": "2026-02-01T00:00:00Z"}).expect(200).json == {
        "success": True, "consumerGroup": group, "newTimestamp": "2026-02-01T00:00:00Z", "rowsUpdated": 0}
    for body in ({}, {"subscriptionTimestamp": None}, {"subscriptionTimestamp": "when?"}, {"subscriptionTimestamp": 5}):
        assert "subscriptionTimestamp" in change(broker, group, body).expect(400).json["error"]
    for body in (None, "[]", "{"):
        assert change(broker, group, body).expect(400).json["error"]
