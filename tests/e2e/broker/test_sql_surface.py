"""The SQL interface: the tables, views and functions of client-expectations 11 and 12."""
import json
import time
import uuid

import pytest

from harness import QUEUE_MODE, ZERO_UUID, Background, is_uuid, let_arrive, patience

COLUMNS = {
    "queues": "id name namespace task priority lease_time retry_limit retry_delay ttl dead_letter_queue dlq_after_max_retries "
              "delayed_processing window_buffer retention_seconds completed_retention_seconds retention_enabled "
              "encryption_enabled max_wait_time_seconds max_queue_size created_at",
    "partitions": "id queue_id name created_at last_activity",
    "messages": "id transaction_id trace_id partition_id payload created_at is_encrypted producer_sub",
    "partition_consumers": "id partition_id consumer_group last_consumed_id last_consumed_created_at total_messages_consumed "
                           "total_batches_consumed last_consumed_at lease_expires_at lease_acquired_at message_batch batch_size "
                           "acked_count worker_id pending_estimate last_stats_update batch_retry_count created_at",
    "partition_lookup": "id queue_name partition_id last_message_id last_message_created_at updated_at",
    "consumer_groups_metadata": "id consumer_group queue_name partition_name namespace task subscription_mode "
                                "subscription_timestamp created_at",
    "dead_letter_queue": "id message_id partition_id consumer_group error_message retry_count original_created_at failed_at",
    "consumer_watermarks": "queue_name consumer_group last_empty_scan_at updated_at",
}
TYPES = {
    ("queues", "id"): "uuid", ("queues", "name"): "character varying", ("queues", "lease_time"): "integer",
    ("queues", "retention_enabled"): "boolean", ("queues", "created_at"): "timestamp with time zone",
    ("partitions", "id"): "uuid", ("partitions", "queue_id"): "uuid", ("messages", "id"): "uuid",
    ("messages", "trace_id"): "uuid", ("messages", "partition_id"): "uuid", ("messages", "payload"): "jsonb",
    ("messages", "created_at"): "timestamp with time zone", ("messages", "is_encrypted"): "boolean",
    ("messages", "producer_sub"): "text", ("partition_consumers", "last_consumed_id"): "uuid",
    ("partition_consumers", "batch_size"): "integer", ("partition_consumers", "total_messages_consumed"): "bigint",
    ("partition_consumers", "lease_expires_at"): "timestamp with time zone", ("partition_lookup", "last_message_id"): "uuid",
    ("consumer_watermarks", "last_empty_scan_at"): "timestamp with time zone", ("dead_letter_queue", "message_id"): "uuid",
}
OF_QUEUE = ("from queen.messages m join queen.partitions p on p.id = m.partition_id join queen.queues q on q.id = p.queue_id "
            "where q.name = %s")


@pytest.fixture
def call(sql):
    """call(function, value): the jsonb result of queen.function(value)."""
    def run(function, value):
        return sql("select queen.%s(%%s::jsonb)" % function, json.dumps(value))[0][0]
    return run


# --- tables and views -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("table", list(COLUMNS))
def test_a_relation_has_the_documented_columns(sql, table):
    found = dict(sql("select column_name::text, data_type::text from information_schema.columns "
                     "where table_schema = 'queen' and table_name = %s", table))
    assert set(COLUMNS[table].split()) <= set(found), "missing: %s" % (set(COLUMNS[table].split()) - set(found))
    wrong = {c: found[c] for (t, c), kind in TYPES.items() if t == table and found[c] != kind}
    assert not wrong
    sql("select %s from queen.%s limit 1" % (COLUMNS[table].replace(" ", ", "), table))


def test_a_configured_queue_is_seen_in_the_table(broker, queue, sql):
    made = broker.configure(queue, "n", "t", leaseTime=11, retryLimit=12, retryDelay=13, maxSize=14, ttl=15, priority=16,
                            delayedProcessing=17, windowBuffer=18, retentionSeconds=19, completedRetentionSeconds=20,
                            retentionEnabled=True, encryptionEnabled=False, maxWaitTimeSeconds=21, deadLetterQueue=True,
                            dlqAfterMaxRetries=True)
    assert sql("select id::text, namespace, task, lease_time, retry_limit, retry_delay, max_queue_size, ttl, priority, "
               "delayed_processing, window_buffer, retention_seconds, completed_retention_seconds, retention_enabled, "
               "encryption_enabled, max_wait_time_seconds, dead_letter_queue, dlq_after_max_retries from queen.queues "
               "where name = %s", queue) == [(made["queueId"], "n", "t", 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, True, False,
                                              21, True, True)]
    assert sql("select p.id::text from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = %s and "
               "p.name = 'Default'", queue) == [(made["partitionId"],)]


def test_messages_are_seen_one_row_each(broker, queue, sql):
    trace = str(uuid.uuid4())
    results = broker.push([{"queue": queue, "partition": "p", "payload": {"n": i, "x": 1.10}, "transactionId": "t%d" % i,
                            "traceId": trace if i == 1 else None} for i in range(5)]).expect(201).json
    rows = sql("select m.id::text, m.transaction_id, m.trace_id::text, m.payload, m.is_encrypted, m.producer_sub, "
               "m.partition_id::text " + OF_QUEUE + " order by m.created_at, m.id", queue)
    assert rows == [(r["message_id"], "t%d" % i, trace if i == 1 else None, {"n": i, "x": 1.1}, False, None, r["partition_id"])
                    for i, r in enumerate(results)]
    assert sql("select producer_sub from queen.messages where id = %s", results[2]["message_id"]) == [(None,)]
    created = [m["createdAt"] for m in broker.take(queue, batch=9)]
    assert sql("select to_char(m.created_at at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') " + OF_QUEUE
               + " order by m.id", queue) == [(c,) for c in created]


def test_the_state_of_a_consumer_is_seen(broker, queue, group, sql):
    broker.put(queue, [1, 2, 3], partition="p")
    messages = broker.take(queue, batch=2, consumerGroup=group)
    select = ("select last_consumed_id::text, last_consumed_created_at is null, worker_id, batch_size, acked_count, "
              "batch_retry_count, total_messages_consumed, lease_expires_at > now(), lease_acquired_at <= now() "
              "from queen.partition_consumers where consumer_group = %s")
    assert sql(select, group) == [(ZERO_UUID, True, messages[0]["leaseId"], 2, 0, 0, 0, True, True)]
    broker.ack_batch(messages, group)
    ((last, no_time, _, _, _, retries, total, active, _),) = sql(select, group)
    assert (last, no_time, retries, total) == (messages[1]["id"], False, 0, 2) and not active
    broker.take(queue, consumerGroup=group, autoAck=True)
    ((last, _, _, _, _, _, total, active, _),) = sql(select, group)
    assert total == 3 and not active


def test_the_newest_message_of_each_partition_is_seen(broker, queue, sql):
    results = {p: broker.put(queue, [1, 2], partition=p)[-1] for p in "ab"}
    rows = sql("select partition_id::text, last_message_id::text from queen.partition_lookup where queue_name = %s", queue)
    assert sorted(rows) == sorted((r["partition_id"], r["message_id"]) for r in results.values())


@pytest.mark.parametrize("named", [False, True], ids=["queue mode", "named group"])
def test_an_empty_pop_leaves_a_watermark(broker, queue, group, sql, named):
    g = group if named else None
    select = "select last_empty_scan_at, updated_at from queen.consumer_watermarks where queue_name = %s and consumer_group = %s"
    broker.put(queue, [1])
    broker.take(queue, consumerGroup=g, autoAck=True)
    assert broker.take(queue, consumerGroup=g) == []
    (row,) = sql(select, queue, g or QUEUE_MODE)
    assert row[0] and row[1]
    updated = sql("update queen.consumer_watermarks set last_empty_scan_at = now() + interval '10 minutes', updated_at = now() "
                  "where queue_name = %s and consumer_group = %s returning *", queue, g or QUEUE_MODE)
    assert len(updated) == 1
    sql("delete from queen.consumer_watermarks where queue_name = %s and consumer_group = %s", queue, g or QUEUE_MODE)
    assert sql(select, queue, g or QUEUE_MODE) == []


def test_a_pop_that_finds_only_leases_leaves_no_watermark(broker, queue, sql):
    broker.put(queue, [1])
    broker.take(queue)
    assert broker.take(queue) == []
    assert sql("select 1 from queen.consumer_watermarks where queue_name = %s", queue) == []


# --- deleting a queue by SQL -----------------------------------------------------------------------------------------

def test_deleting_a_queue_cascades(broker, queue, sql):
    broker.configure(queue, retryLimit=0)
    broker.put(queue, [1, 2], partition="p", ids=["a", "b"])
    (m,) = broker.take(queue)
    assert broker.ack(m, "failed")["dlq"] is True
    partition = m["partitionId"]
    sql("delete from queen.queues where name = %s", queue)
    for table, column in (("partitions", "id"), ("messages", "partition_id"), ("partition_consumers", "partition_id"),
                          ("dead_letter_queue", "partition_id"), ("partition_lookup", "partition_id")):
        assert sql("select count(*) from queen.%s where %s = %%s" % (table, column), partition) == [(0,)], table
    assert broker.take(queue) == [] and broker.take(queue, "p") == []


@pytest.mark.parametrize("how", ["exact", "like"])
def test_after_a_deletion_the_next_push_works_on_every_broker(broker, broker2, queue, sql, how):
    before = set()
    for _ in range(3):
        for b in (broker, broker2):
            before |= {r["partition_id"] for r in b.put(queue, ["old"], partition="p", ids=[b.url])}
        broker.take(queue, batch=9)
        if how == "exact":
            sql("delete from queen.queues where name = %s", queue)
        else:
            sql("delete from queen.queues where name like %s", queue + "%")
        (result,) = broker2.push([{"queue": queue, "partition": "p", "transactionId": broker.url, "payload": "new"}]).expect(201).json
        assert result["status"] == "queued" and result["partition_id"] not in before, "nothing stale is used"
        broker.put(queue, ["second"], partition="p", ids=["second"])
        assert [m["data"] for m in broker.take(queue, batch=9)] == ["new", "second"]
        assert broker2.configure(queue)["configured"] is True
        sql("delete from queen.queues where name = %s", queue)


def test_an_ack_after_a_deletion_is_not_found(broker, queue, sql):
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    sql("delete from queen.queues where name = %s", queue)
    assert broker.ack(m)["error"] == "Message not found"


def test_recorded_subscriptions_and_watermarks_survive_a_deletion(broker, queue, group, sql):
    broker.put(queue, [1])
    broker.take(queue, consumerGroup=group, subscriptionMode="new")
    sql("delete from queen.queues where name = %s", queue)
    assert sql("select subscription_mode from queen.consumer_groups_metadata where consumer_group = %s", group) == [("new",)]
    broker.put(queue, ["after"])
    assert [m["data"] for m in broker.take(queue, consumerGroup=group, subscriptionMode="new")] == ["after"]


# --- functions ------------------------------------------------------------------------------------------------------

def item(queue, payload, tx=None, **more):
    return {"queue": queue, "partition": "p", "payload": payload, **({"transactionId": tx} if tx else {}), **more}


def test_push_messages_v2(broker, queue, sql, call):
    trace = str(uuid.uuid4())
    results = call("push_messages_v2", [item(queue, {"a": 1}, "x", producerSub="sub-1", traceId=trace), item(queue, [2], "y"),
                                        item(queue, "again", "x"), {"queue": queue, "producerSub": ""}])
    assert [r["index"] for r in results] == [0, 1, 2, 3]
    assert [r["status"] for r in results] == ["queued", "queued", "duplicate", "queued"]
    assert results[0]["transaction_id"] == "x" and results[0]["trace_id"] == trace and is_uuid(results[0]["partition_id"])
    assert results[2]["message_id"] == results[0]["message_id"]
    assert results[0]["message_id"] < results[1]["message_id"], "time-ordered ids"
    messages = broker.take(queue, "p", batch=9)
    assert [(m["id"], m["data"], m["producerSub"], m["traceId"]) for m in messages] == [
        (results[0]["message_id"], {"a": 1}, "sub-1", trace), (results[1]["message_id"], [2], None, None)]
    (last,) = broker.take(queue, "Default")
    assert last["producerSub"] is None
    assert sql("select m.producer_sub " + OF_QUEUE + " and m.transaction_id = %s", queue, "x") == [("sub-1",)]


def test_push_messages_v2_takes_an_explicit_message_id_and_labels(broker, queue, sql, call):
    mine = str(uuid.uuid4())
    (result,) = call("push_messages_v2", [item(queue, 1, messageId=mine, namespace="n", task="t")])
    assert result["message_id"] == mine
    assert broker.take(queue)[0]["id"] == mine
    assert sql("select namespace, task from queen.queues where name = %s", queue) == [("n", "t")]


def test_an_explicit_message_id_is_the_id_everywhere(broker, queue, sql, call):
    broker.configure(queue, retryLimit=0)
    mine = [str(uuid.uuid4()) for _ in range(2)]
    (a, _) = call("push_messages_v2", [item(queue, i, messageId=m) for i, m in enumerate(mine)])
    assert sql("select last_message_id::text from queen.partition_lookup where queue_name = %s", queue) == [(mine[1],)]
    assert sql("select m.id::text " + OF_QUEUE + " order by m.payload", queue) == [(m,) for m in mine]
    messages = broker.take(queue, batch=2)
    assert [m["id"] for m in messages] == mine
    assert broker.ack(messages[0])["success"] is True
    assert sql("select last_consumed_id::text from queen.partition_consumers where partition_id = %s", a["partition_id"]) == [
        (mine[0],)]
    assert broker.ack(messages[1], "failed")["dlq"] is True
    assert sql("select message_id::text from queen.dead_letter_queue where partition_id = %s", a["partition_id"]) == [(mine[1],)]


def test_push_messages_v2_accepts_its_three_arguments(queue, sql):
    ((results,),) = sql("select queen.push_messages_v2(%s::jsonb, true, true)", json.dumps([item(queue, 1)]))
    assert results[0]["status"] == "queued"
    ((results,),) = sql("select queen.push_messages_v2(p_items => %s::jsonb)", json.dumps([item(queue, 2)]))
    assert results[0]["status"] == "queued"


def test_push_messages_v3(broker, queue, call):
    answer = call("push_messages_v3", [item(queue, 1, "a"), item(queue, 2, "b")])
    assert [(r["status"], r["queueName"]) for r in answer["items"]] == [("queued", queue)] * 2
    (update,) = answer["partition_updates"]
    assert update["queue_name"] == queue and update["partition_id"] == answer["items"][0]["partition_id"]
    assert update["last_message_id"] == answer["items"][1]["message_id"] and update["last_message_created_at"]
    assert [m["data"] for m in broker.take(queue, batch=9)] == [1, 2]


def pop_request(queue, lease, partition="p", group=QUEUE_MODE, batch=10, idx=0, seconds=0):
    return {"idx": idx, "queue_name": queue, "partition_name": partition, "consumer_group": group, "batch_size": batch,
            "lease_seconds": seconds, "worker_id": lease, "sub_mode": "", "sub_from": ""}


def test_pop_specific_batch(broker, queue, sql, call):
    call("push_messages_v2", [item(queue, {"n": i}, "t%d" % i, producerSub="me") for i in range(3)])
    lease = str(uuid.uuid4())
    answers = call("pop_specific_batch", [pop_request(queue, lease, batch=2, idx=4, seconds=77),
                                          pop_request(queue + "-unknown", str(uuid.uuid4()), idx=5)])
    by_idx = {a["idx"]: a["result"] for a in answers}
    assert sorted(by_idx) == [4, 5]
    result = by_idx[4]
    assert (result["success"], result["queue"], result["partition"], result["leaseId"], result["consumerGroup"]) == (
        True, queue, "p", lease, QUEUE_MODE)
    assert [(m["transactionId"], m["data"], m["producerSub"]) for m in result["messages"]] == [
        ("t0", {"n": 0}, "me"), ("t1", {"n": 1}, "me")]
    assert all(m["id"] and m["createdAt"] and "traceId" in m for m in result["messages"])
    assert not by_idx[5]["messages"]
    assert sql("select worker_id, round(extract(epoch from lease_expires_at - lease_acquired_at)) from queen.partition_consumers "
               "where partition_id = %s", result["partitionId"]) == [(lease, 77)]
    assert broker.take(queue) == []
    entry = {"partitionId": result["partitionId"], "leaseId": lease}
    assert all(r["success"] for r in broker.ack_batch([{**entry, "transactionId": t} for t in ("t0", "t1")]))
    assert broker.take(queue)[0]["transactionId"] == "t2"


def test_pop_unified_batch_serves_named_partitions_and_wildcards(broker, queue, call):
    """Its input is that of pop_specific_batch, with partition_name null or '' for a wildcard (client-expectations 12)."""
    broker.put(queue, [1], partition="p")
    broker.put(queue, [2], partition="q")
    answers = call("pop_unified_batch", [pop_request(queue, str(uuid.uuid4()), idx=0),
                                         pop_request(queue, str(uuid.uuid4()), None, idx=1),
                                         pop_request(queue, str(uuid.uuid4()), "", idx=2)])
    by_idx = {a["idx"]: a["result"] for a in answers}
    assert [m["data"] for m in by_idx[0]["messages"]] == [1]
    assert [m["data"] for m in by_idx[1]["messages"]] == [2] and by_idx[1]["partition"] == "q"
    assert not by_idx[2].get("messages")


def test_ack_messages_v2(broker, queue, call):
    broker.put(queue, [1, 2], partition="p", ids=["a", "b"])
    messages = broker.take(queue, batch=2)
    entry = {"partitionId": messages[0]["partitionId"], "leaseId": messages[0]["leaseId"], "consumerGroup": QUEUE_MODE}
    results = call("ack_messages_v2", [{"index": 0, **entry, "transactionId": "a", "status": "completed"},
                                       {"index": 1, **entry, "transactionId": "ghost"},
                                       {"index": 2, **entry, "transactionId": "b", "status": "failed", "error": "e"}])
    results = sorted(results, key=lambda r: r["index"])
    assert [(r["transactionId"], r["success"], r["error"], r["dlq"]) for r in results] == [
        ("a", True, None, False), ("ghost", False, "Message not found", False), ("b", True, None, False)]
    assert results[0]["queueName"] == queue and results[0]["partitionName"] == "p"
    assert [(m["data"], m["retryCount"]) for m in broker.take(queue, batch=9)] == [(2, 1)]


def test_renew_lease_v2(broker, queue, call):
    broker.configure(queue, leaseTime=1)
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    good, bad = sorted(call("renew_lease_v2", [{"index": 0, "leaseId": m["leaseId"], "extendSeconds": 60},
                                               {"index": 1, "leaseId": str(uuid.uuid4()), "extendSeconds": 60}]),
                       key=lambda r: r["index"])
    assert (good["success"], good["error"], good["leaseId"]) == (True, None, m["leaseId"]) and good["expiresAt"]
    assert bad["success"] is False and bad["error"] and bad["expiresAt"] is None
    time.sleep(1.1)
    assert broker.take(queue) == []


def test_execute_transaction_v2(broker, queue, call):
    broker.put(queue, [1], ids=["in"])
    (m,) = broker.take(queue)
    ack = {"type": "ack", "transactionId": "in", "partitionId": m["partitionId"], "status": "completed"}
    ghost = {"type": "ack", "transactionId": "ghost", "partitionId": m["partitionId"]}
    push = {"type": "push", "queue": queue + "-out", "partition": "p", "payload": {"x": 1}, "transactionId": "out"}
    answer = call("execute_transaction_v2", [push, ack, ghost])
    assert answer["success"] is False and answer["error"] and is_uuid(answer["transactionId"])
    assert broker.take(queue + "-out") == []
    answer = call("execute_transaction_v2", [push, ack])
    assert answer["success"] is True
    assert [(r["index"], r["type"], r["success"]) for r in answer["results"]] == [(0, "push", True), (1, "ack", True)]
    assert [x["data"] for x in broker.take(queue + "-out")] == [{"x": 1}]
    assert broker.take(queue) == []


def test_configure_queue_v1(broker, queue, sql):
    sql("select queen.configure_queue_v1(%s, %s::jsonb)", queue, json.dumps({"leaseTime": 42, "retryLimit": 7}))
    assert sql("select lease_time, retry_limit, window_buffer from queen.queues where name = %s", queue) == [(42, 7, 0)]
    broker.put(queue, [1])
    assert len(broker.take(queue)) == 1


def test_has_pending_messages(broker, queue, group, sql):
    def pending(partition, g=QUEUE_MODE):
        return sql("select queen.has_pending_messages(%s::text, %s::text, %s::text)", queue, partition, g)[0][0]
    broker.put(queue, [1], partition="p")
    assert pending("p") is True and pending("p", group) is True
    broker.take(queue, autoAck=True)
    assert pending("p") is False and pending("p", group) is True


# --- inside the caller's transaction --------------------------------------------------------------------------------

def test_a_push_in_a_rolled_back_transaction_never_was(pg, broker, queue, sql):
    conn = pg.connect(autocommit=False)
    with conn.cursor() as cur:
        cur.execute("create temp table business (x int)")
        cur.execute("select queen.push_messages_v2(%s::jsonb)", (json.dumps([item(queue, 1, "tx")]),))
        assert cur.fetchone()[0][0]["status"] == "queued"
        assert broker.take(queue) == [], "not before the commit"
    conn.rollback()
    assert broker.take(queue) == []
    with conn.cursor() as cur:
        cur.execute("select queen.push_messages_v2(%s::jsonb)", (json.dumps([item(queue, 2, "tx")]),))
        assert cur.fetchone()[0][0]["status"] == "queued"
    conn.commit()
    conn.close()
    assert [m["data"] for m in broker.take(queue, wait=True, timeout=8000)] == [2]


def test_pop_and_ack_in_a_rolled_back_transaction_never_were(pg, broker, queue):
    broker.put(queue, [1], partition="p", ids=["a"])
    conn = pg.connect(autocommit=False)
    with conn.cursor() as cur:
        lease = str(uuid.uuid4())
        cur.execute("select queen.pop_specific_batch(%s::jsonb)", (json.dumps([pop_request(queue, lease)]),))
        result = cur.fetchone()[0][0]["result"]
        assert len(result["messages"]) == 1
        cur.execute("select queen.ack_messages_v2(%s::jsonb)", (json.dumps([
            {"index": 0, "transactionId": "a", "partitionId": result["partitionId"], "leaseId": lease}]),))
        assert cur.fetchone()[0][0]["success"] is True
    conn.rollback()
    conn.close()
    assert [m["data"] for m in broker.take(queue)] == [1]


def test_an_open_transaction_holds_up_only_its_partition(pg, broker, queue):
    broker.put(queue, [0], partition="p")
    broker.put(queue, [0], partition="q")
    conn = pg.connect(autocommit=False)
    with conn.cursor() as cur:
        cur.execute("select queen.push_messages_v2(%s::jsonb)", (json.dumps([item(queue, "sql")]),))
        waiting = Background(lambda: broker.put(queue, ["http"], partition="p"))
        let_arrive()
        begin = time.monotonic()
        for i in range(5):
            broker.put(queue, [i], partition="q")
        assert time.monotonic() - begin < patience(3)
        assert not waiting.done, "the partition is written by one at a time"
    conn.commit()
    conn.close()
    waiting.result()
    assert [m["data"] for m in broker.take(queue, "p", batch=9)] == [0, "sql", "http"]


def test_a_push_by_sql_is_found_by_a_wildcard_pop_at_once(broker, queue, call):
    broker.put(queue, [0])
    broker.take(queue, autoAck=True)
    assert broker.take(queue) == []
    call("push_messages_v2", [item(queue, "sql", partition="never seen")])
    assert [m["data"] for m in broker.take(queue, wait=True, timeout=8000)] == ["sql"]


@pytest.mark.parametrize("known", [True, False], ids=["known queue", "unknown queue"])
def test_a_push_by_sql_is_discovered_by_a_waiting_wildcard_pop(broker, queue, call, known):
    if known:
        broker.put(queue, [0])
        broker.take(queue, autoAck=True)
    waiting = Background(lambda: broker.take(queue, wait=True, timeout=12000))
    let_arrive()
    begin = time.monotonic()
    call("push_messages_v2", [item(queue, "sql", producerSub="me")])
    (m,) = waiting.result()
    assert (m["data"], m["producerSub"]) == ("sql", "me")
    assert waiting.ended - begin < patience(6), "within a few seconds"
