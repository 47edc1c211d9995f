"""Deleting and inserting behind the brokers' back, by SQL (client-expectations 11, 12; semantics 20, 23)."""
import json

import pytest

from harness import Background


def data(messages):
    return [m["data"] for m in messages]


def test_queues_deleted_by_name_take_everything_along(broker, broker2, sql, queue, group):
    broker.configure(queue, retryLimit=0)
    broker.put(queue, [1, 2, 3], ids=["a", "b", "c"])
    (m,) = broker.take(queue, consumerGroup=group)
    broker.ack(m, "failed")
    broker.request("DELETE", "/api/v1/messages/%s/b" % m["partitionId"]).expect(200)
    broker2.take(queue, consumerGroup=group)
    parked = Background(lambda: broker2.take(queue, consumerGroup="parked-" + group, subscriptionMode="new", wait=True, timeout=9000))
    sql("delete from queen.queues where name like %s", queue + "%")
    for table, column, value in (("partitions", "id", m["partitionId"]), ("messages", "partition_id", m["partitionId"]),
                                 ("partition_consumers", "partition_id", m["partitionId"]),
                                 ("dead_letter_queue", "partition_id", m["partitionId"]),
                                 ("messages_consumed", "partition_id", m["partitionId"]),
                                 ("partition_lookup", "queue_name", queue), ("queues", "name", queue)):
        assert sql("select count(*) from queen.%s where %s = %%s" % (table, column), value) == [(0,)], table
    for table in ("segments", "message_keys", "consumers", "skips"):
        assert sql("select count(*) from queen.%s where lane not in (select num from queen.lanes)" % table) == [(0,)], table
    broker.put(queue, ["anew"])
    assert data(parked.result()) == ["anew"]
    for b in (broker2, broker):
        assert data(b.drain(queue, consumerGroup=group)) == (["anew"] if b is broker2 else [])
    sql("delete from queen.queues where name = %s", queue)
    assert broker2.take(queue, consumerGroup=group) == []
    assert broker2.configure(queue)["configured"] is True
    broker2.put(queue, ["again"])
    assert data(broker.drain(queue, consumerGroup=group)) == ["again"]


def test_a_partition_deleted_by_sql(broker, broker2, sql, queue):
    for p in "ab":
        broker.put(queue, [p], partition=p)
    assert len(broker2.drain(queue)) == 2
    sql("delete from queen.partitions where name = 'a' and queue_id = (select id from queen.queues where name = %s)", queue)
    broker.put(queue, ["a2"], partition="a")
    assert data(broker2.drain(queue)) == ["a2"]


def test_dead_letters_can_be_deleted(broker, sql, queue):
    broker.configure(queue, retryLimit=0)
    broker.put(queue, [1, 2])
    (m,) = broker.take(queue)
    broker.ack(m, "failed")
    assert len(sql("delete from queen.dead_letter_queue where partition_id = %s returning id", m["partitionId"])) == 1
    broker.post("/api/v1/messages/%s/%s/retry" % (m["partitionId"], m["transactionId"])).expect(404)
    assert data(broker.drain(queue)) == [2]


def test_a_group_deleted_through_partition_consumers_starts_over(broker, broker2, sql, queue, group):
    broker.put(queue, [1])
    assert data(broker2.drain(queue, consumerGroup=group)) == [1]
    sql("delete from queen.partition_consumers where consumer_group = %s", group)
    assert data(broker2.drain(queue, consumerGroup=group)) == [1]


def test_messages_consumed_has_the_totals(broker, sql, queue, group):
    broker.configure(queue, retryLimit=0)
    broker.put(queue, [1, 2, 3])
    broker.ack(broker.take(queue, consumerGroup=group)[0], "failed")
    broker.ack_batch(broker.take(queue, consumerGroup=group, batch=2), group)
    assert sql("""select c.messages_completed, c.messages_failed, c.acked_at is not null from queen.messages_consumed c
                  where c.consumer_group = %s""", group) == [(2, 1, True)]


COLUMNS = {
    "partition_consumers": "id partition_id consumer_group last_consumed_id last_consumed_created_at total_messages_consumed "
                           "total_batches_consumed last_consumed_at lease_expires_at lease_acquired_at message_batch batch_size "
                           "acked_count worker_id pending_estimate last_stats_update batch_retry_count created_at",
    "messages_consumed": "id partition_id consumer_group messages_completed messages_failed acked_at",
    "partition_lookup": "id queue_name partition_id last_message_id last_message_created_at updated_at",
    "dead_letter_queue": "id message_id partition_id consumer_group error_message retry_count original_created_at failed_at",
    "consumer_watermarks": "queue_name consumer_group last_empty_scan_at updated_at",
    "consumer_groups_metadata": "id consumer_group queue_name partition_name namespace task subscription_mode "
                                "subscription_timestamp created_at",
}


@pytest.mark.parametrize("table", sorted(COLUMNS))
def test_the_columns_are_there(broker, sql, table):
    sql("select %s from queen.%s limit 1" % (", ".join(COLUMNS[table].split()), table))


@pytest.mark.parametrize("function", ["push_messages_v2", "push_messages_v3"])
def test_messages_pushed_by_sql_are_found(broker, broker2, sql, queue, function):
    def push(value):
        sql("select queen.%s(%%s::jsonb)" % function, json.dumps([{"queue": queue, "payload": value, "producerSub": "me"}]))
    assert broker.take(queue) == [] and broker2.take(queue) == []
    push(1)
    (m,) = broker.take(queue, autoAck=True)
    assert (m["data"], m["producerSub"]) == (1, "me")
    push(2)
    assert data(broker2.take(queue, autoAck=True)) == [2]
    parked = Background(lambda: broker.take(queue, wait=True, timeout=60000))
    push(3)
    assert data(parked.result(70)) == [3] and parked.seconds < 40
