"""Seeking (http-api 13.7, 13.8; semantics 20)."""
import time
from datetime import datetime, timezone

import pytest

from harness import Background, let_arrive, wait_until

EPOCH = "1970-01-01T00:00:00Z"


def data(messages):
    return [m["data"] for m in messages]


def seek(broker, group, queue, body):
    return broker.post("/api/v1/consumer-groups/%s/queues/%s/seek" % (group, queue), body)


def seek_partition(broker, group, queue, partition, body=None):
    return broker.post("/api/v1/consumer-groups/%s/queues/%s/partitions/%s/seek" % (group, queue, partition), body)


def test_back_to_the_beginning_on_every_broker(broker, broker2, queue, group):
    for p in "abc":
        broker.put(queue, [p + "1", p + "2"], partition=p)
    want = sorted(p + n for p in "abc" for n in "12")
    for b in (broker, broker2, broker):
        assert sorted(data(b.drain(queue, consumerGroup=group))) == want
        assert b.take(queue, consumerGroup=group) == []
        assert seek(broker, group, queue, {"timestamp": EPOCH}).expect(200).json == {
            "success": True, "consumerGroup": group, "queueName": queue, "seekToEnd": False,
            "targetTimestamp": "1970-01-01T00:00:00.000Z", "partitionsUpdated": 3}
    assert data(broker2.take(queue, "b", consumerGroup=group, batch=9)) == ["b1", "b2"]


def test_to_the_end_means_all_of_it(broker, broker2, sql, queue, group):
    broker.put(queue, [1, 2], partition="a")
    assert data(broker2.take(queue, consumerGroup=group)) == [1]
    broker.put(queue, [3], partition="unseen")
    r = seek(broker, group, queue, {"toEnd": True, "timestamp": EPOCH}).expect(200).json
    assert (r["seekToEnd"], r["targetTimestamp"], r["partitionsUpdated"]) == (True, None, 2)
    assert broker2.take(queue, consumerGroup=group, partitions=5) == []
    broker.put(queue, [4], partition="a")
    assert data(broker2.drain(queue, consumerGroup=group)) == [4], "the lease has ended"


def test_to_a_time_between_two_batches(broker, queue, group):
    broker.put(queue, [1, 2])
    (m,) = broker.take(queue, batch=1, consumerGroup=group, autoAck=True)
    time.sleep(0.05)
    between = datetime.now(timezone.utc).isoformat()
    time.sleep(0.05)
    broker.put(queue, [3, 4])
    broker.drain(queue, consumerGroup=group)
    seek(broker, group, queue, {"timestamp": between}).expect(200)
    assert data(broker.drain(queue, consumerGroup=group)) == [3, 4]
    seek(broker, group, queue, {"timestamp": m["createdAt"]}).expect(200)
    assert data(broker.drain(queue, consumerGroup=group)) == [3, 4], "what was created at that time is behind the cursor"


def test_many_segments_are_found_by_their_time(broker, sql, queue, group):
    for i in range(25):
        broker.put(queue, [i])
    broker.drain(queue, consumerGroup=group)
    times = [r[0] for r in sql("""select s.created_at::text from queen.segments s join queen.lanes l on l.num = s.lane
                                  join queen.queues q on q.id = l.queue_id where q.name = %s order by s.first_seq""", queue)]
    for i in (0, 1, 7, 12, 23, 24):
        seek(broker, group, queue, {"timestamp": times[i]}).expect(200)
        assert data(broker.drain(queue, consumerGroup=group)) == list(range(i + 1, 25))


def test_the_seek_wins_over_the_subscription(broker, broker2, queue, group):
    broker.put(queue, ["old"])
    assert broker2.take(queue, consumerGroup=group, subscriptionMode="new") == []
    broker.put(queue, ["new"])
    assert seek(broker, group, queue, {"timestamp": EPOCH}).expect(200).json["partitionsUpdated"] == 1
    assert data(broker2.drain(queue, consumerGroup=group, subscriptionMode="new")) == ["old", "new"]


def test_running_consumers_notice_by_rejected_acks(broker, queue, group):
    broker.configure(queue, retryLimit=5)
    broker.put(queue, [1, 2])
    (m,) = broker.take(queue, consumerGroup=group)
    broker.ack(m, "failed")
    (m,) = broker.take(queue, consumerGroup=group)
    assert m["retryCount"] == 1
    seek(broker, group, queue, {"timestamp": EPOCH}).expect(200)
    assert broker.ack(m)["error"] == "Invalid or expired lease"
    (m,) = broker.take(queue, consumerGroup=group)
    assert (m["data"], m["retryCount"]) == (1, 0)


@pytest.mark.parametrize("partition", [None, "p"])
def test_parked_pops_wake(broker, broker2, queue, group, partition):
    broker.put(queue, [1], partition="p")
    assert data(broker.drain(queue, consumerGroup=group)) == [1]
    parked = [Background(lambda b=b: b.take(queue, partition, consumerGroup=group, wait=True, timeout=9000, autoAck=True))
              for b in (broker, broker2)]
    let_arrive()
    seek(broker, group, queue, {"timestamp": EPOCH}).expect(200)
    wait_until(lambda: any(p.done for p in parked), 7, "one of them is served")
    broker.put(queue, [2], partition="p")
    assert sorted(data(parked[0].result() + parked[1].result())) == [1, 2]


def test_a_pop_by_namespace_sees_a_seek(broker, broker2, queue, group):
    broker.configure(queue, namespace=queue)
    broker.put(queue, [1])
    assert data(broker2.take(namespace=queue, consumerGroup=group, autoAck=True)) == [1]
    assert broker2.take(namespace=queue, consumerGroup=group) == []
    seek(broker, group, queue, {"timestamp": EPOCH}).expect(200)
    assert data(broker2.take(namespace=queue, consumerGroup=group, wait=True, timeout=5000)) == [1]


def test_dead_lettered_messages_are_delivered_again_after_a_seek(broker, queue, group):
    (a, b, c) = broker.put(queue, [1, 2, 3], ids=["a", "b", "c"])
    m = broker.take(queue, consumerGroup=group)[0]
    broker.post("/api/v1/messages/%s/c/dlq" % m["partitionId"], {"consumerGroup": group}).expect(200)
    broker.request("DELETE", "/api/v1/messages/%s/b" % m["partitionId"]).expect(200)
    broker.ack(m)
    assert broker.take(queue, consumerGroup=group) == []
    seek(broker, group, queue, {"timestamp": EPOCH}).expect(200)
    assert data(broker.drain(queue, consumerGroup=group)) == [1, 3], "but not what was deleted"


@pytest.mark.parametrize("body, again", [({"toEnd": True}, ["m"]), ({"timestamp": "1970-01-01T00:00:00Z"}, ["m", "m"])])
def test_a_seek_leaves_waiting_retries(broker, queue, group, body, again):
    broker.configure(queue, retryPolicy={"mode": "scheduled", "strategy": "list", "delays": [1]})
    broker.put(queue, ["m"])
    (m,) = broker.take(queue, consumerGroup=group)
    assert broker.ack(m, "failed")["success"] is True
    seek(broker, group, queue, body)
    got = []
    wait_until(lambda: got.extend(data(broker.take(queue, consumerGroup=group, autoAck=True))) or len(got) >= len(again), 10, "the retry")
    assert got == again
    assert broker.take(queue, consumerGroup=group) == []


def test_unknown_groups_and_queues(broker, queue, group):
    for body in ({"toEnd": True}, {"timestamp": EPOCH}):
        r = seek(broker, group, queue, body).expect(200).json
        assert (r["success"], r["partitionsUpdated"]) == (True, 0)
    broker.put(queue, [1])
    assert seek(broker, group, queue, {"toEnd": True}).expect(200).json["partitionsUpdated"] == 0
    assert data(broker.drain(queue, consumerGroup=group)) == [1]


@pytest.mark.parametrize("body", [{}, {"toEnd": False}, {"timestamp": None}, {"timestamp": "soon"}, {"timestamp": 7},
                                  {"toEnd": "yes"}, "", "[]", "{"])
def test_bad_seeks(broker, queue, group, body):
    assert seek(broker, group, queue, body).expect(400).json["error"]


@pytest.mark.parametrize("body", [None, {}, []])
def test_one_partition_to_its_end(broker, broker2, queue, group, body):
    broker.put(queue, [1, 2], partition="a")
    broker.put(queue, [3], partition="b")
    assert seek_partition(broker, group, queue, "a", body).expect(200).json["updated"] is False
    (m,) = broker2.take(queue, "a", consumerGroup=group)
    r = seek_partition(broker, group, queue, "a", body).expect(200).json
    moved = r.pop("cursorMovedTo")
    assert r == {"success": True, "consumerGroup": group, "queueName": queue, "partitionName": "a", "updated": True}
    assert moved == m["createdAt"][:23] + "Z"
    assert data(broker2.drain(queue, consumerGroup=group)) == [3]


def test_one_partition_that_is_empty_or_not_there(broker, queue, group):
    assert seek_partition(broker, group, queue, "Default").expect(404).json == {
        "success": False, "error": "Partition not found"}
    broker.configure(queue)
    r = seek_partition(broker, group, queue, "Default").expect(200).json
    assert (r["updated"], r["cursorMovedTo"]) == (False, None)
