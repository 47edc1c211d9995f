"""The life of queen.consumer_watermarks (semantics 8)."""
import pytest

EPOCH = "1970-01-01T00:00:00Z"


def data(messages):
    return sorted(m["data"] for m in messages)


def rows(sql, queue, group):
    return sql("select last_empty_scan_at > now() from queen.consumer_watermarks where queue_name = %s and consumer_group = %s",
               queue, group)


def consumed(broker, queue, group):
    broker.put(queue, [1, 2], partition="a")
    broker.put(queue, [3], partition="b")
    assert data(broker.drain(queue, consumerGroup=group)) == [1, 2, 3]
    assert broker.take(queue, consumerGroup=group) == []


def into_the_future(sql, queue, group):
    assert len(sql("""update queen.consumer_watermarks set last_empty_scan_at = now() + interval '10 minutes', updated_at = now()
                      where queue_name = %s and consumer_group = %s returning *""", queue, group)) == 1


@pytest.mark.parametrize("how", ["seek", "group", "group_on_queue"])
def test_an_empty_scan_is_noted_and_a_seek_or_deletion_overrules_it(broker, broker2, sql, queue, group, how):
    for round_ in range(2):
        if round_ == 0:
            consumed(broker, queue, group)
        assert rows(sql, queue, group) == [(False,)]
        into_the_future(sql, queue, group)
        if how == "seek":
            broker.post("/api/v1/consumer-groups/%s/queues/%s/seek" % (group, queue), {"timestamp": EPOCH}).expect(200)
        else:
            broker.request("DELETE", "/api/v1/consumer-groups/" + group
                           + ("/queues/" + queue if how == "group_on_queue" else "")).expect(200)
        assert rows(sql, queue, group) == []
        assert data(broker2.drain(queue, consumerGroup=group)) == [1, 2, 3]
        assert broker.take(queue, consumerGroup=group) == []
        assert rows(sql, queue, group) == [(False,)], "noted again at once"


def test_pushes_are_found_for_any_watermark(broker, broker2, sql, queue, group):
    consumed(broker, queue, group)
    into_the_future(sql, queue, group)
    broker2.put(queue, [4], partition="a")
    assert data(broker.drain(queue, consumerGroup=group)) == [4]


def test_a_leased_partition_counts_as_pending(broker, sql, queue, group):
    broker.put(queue, [1])
    broker.take(queue, consumerGroup=group)
    assert broker.take(queue, consumerGroup=group) == []
    assert rows(sql, queue, group) == []


def test_a_seek_to_the_end_keeps_the_row_and_others_remove_it(broker, sql, queue, group):
    consumed(broker, queue, group)
    base = "/api/v1/consumer-groups/" + group
    broker.post(base + "/queues/" + queue + "/seek", {"toEnd": True}).expect(200)
    broker.post(base + "/queues/" + queue + "/partitions/a/seek").expect(200)
    assert len(rows(sql, queue, group)) == 1
    broker.post(base + "/subscription", {"subscriptionTimestamp": EPOCH}).expect(200)
    assert rows(sql, queue, group) == []
    assert broker.take(queue, consumerGroup=group) == []
    broker.request("DELETE", "/api/v1/resources/queues/" + queue).expect(200)
    assert rows(sql, queue, group) == []
