"""The functions of broker/sql without a broker: transactions, the JSON surface, views."""
import json
import time
import uuid

import psycopg2
import pytest

from sqlcore import js, v7


# --- transactions ---------------------------------------------------------------------------------------------------

def test_a_transaction_is_all_or_nothing(core, queue, group):
    part = js(core, "push_messages_v2", [{"queue": queue, "transactionId": "in"}])[0]["partition_id"]
    ack = {"type": "ack", "transactionId": "in", "partitionId": part, "consumerGroup": group}
    for bad in ({**ack, "transactionId": "ghost"}, {**ack, "status": "retry"}, {**ack, "leaseId": "mine"},
                {"type": "push", "queue": queue, "transactionId": "in"}, {"type": "dance"},
                {"type": "push", "queue": queue + "-out", "transactionId": "out"}):
        answer = js(core, "execute_transaction_v2", [
            {"type": "push", "items": [{"queue": queue + "-out", "transactionId": "out"}]}, ack, bad])
        assert answer["success"] is False and answer["error"], answer
        assert [r["success"] for r in answer["results"]] == [True, True, False]
        assert core.rows("select 1 from queen.messages where transaction_id = 'out'") == []
        assert core.one("select queen.has_pending_messages(%s, '', %s)", queue, group)
    answer = js(core, "execute_transaction_v2", [{"type": "push", "items": [{"queue": queue + "-out",
                                                                               "transactionId": "out"}]}, ack])
    assert answer["success"] is True, answer
    assert not core.one("select queen.has_pending_messages(%s, '', %s)", queue, group), "the state row was made"
    core.rows("delete from queen.queues where name = %s", queue + "-out")


def test_required_leases_must_hold(core, queue):
    part = js(core, "push_messages_v2", [{"queue": queue, "transactionId": "a"}, {"queue": queue, "transactionId": "b"}]
              )[0]["partition_id"]
    js(core, "pop_unified_batch", [{"queue_name": queue, "batch_size": 2, "worker_id": "me"}])

    def run(leases, *ids):
        return js(core, "execute_transaction_v2", {"requiredLeases": leases, "operations": [
            {"type": "ack", "transactionId": i, "partitionId": part} for i in ids]})
    assert "lease" in run(["you"], "a")["error"]
    assert run([], "a")["success"] and run(["you", "me"], "b")["success"]
    assert "lease" in run(["me"], "b")["error"], "the batch was complete, the lease is gone"


def test_a_failed_ack_in_a_transaction_is_dead_at_once(core, queue):
    part = js(core, "push_messages_v2", [{"queue": queue, "transactionId": "a"}])[0]["partition_id"]
    answer = js(core, "execute_transaction_v2", [{"type": "ack", "transactionId": "a", "partitionId": part,
                                                  "status": "failed"}])
    assert answer["results"][0]["dlq"] is True
    row = core.rows("select d.* from queen.dead_letter_queue d join queen.messages m on m.id = d.message_id"
                    " where d.partition_id = %s", part)
    assert [(r.retry_count, r.error_message) for r in row] == [(0, "Retries exhausted")]


# --- JSON surface and views -----------------------------------------------------------------------------------------

def test_push_and_pop_as_json(core, queue):
    trace = str(uuid.uuid4())
    pushed = js(core, "push_messages_v2", [
        {"queue": queue, "payload": {"n": 1}, "transactionId": "a", "producerSub": "me", "traceId": trace},
        {"queue": queue, "transactionId": "a"}, {"queue": queue, "producerSub": ""}])
    assert [r["status"] for r in pushed] == ["queued", "duplicate", "queued"]
    assert pushed[1] == {"index": 1, "status": "duplicate", "transaction_id": "a", "message_id": pushed[0]["message_id"]}
    assert set(pushed[0]) == {"index", "status", "transaction_id", "message_id", "partition_id", "trace_id"}
    popped = js(core, "pop_specific_batch", [{"idx": 5, "queue_name": queue, "partition_name": "Default",
                                              "consumer_group": "g", "batch_size": 10, "lease_seconds": 7,
                                              "worker_id": "w", "sub_mode": "all", "sub_from": ""}])
    assert popped[0]["idx"] == 5
    result = popped[0]["result"]
    assert (result["success"], result["leaseId"], result["partition"], result["queue"]) == (True, "w", "Default", queue)
    first, second = result["messages"]
    assert (first["id"], first["data"], first["producerSub"], first["traceId"], first["transactionId"]) == (
        pushed[0]["message_id"], {"n": 1}, "me", trace, "a")
    assert second["data"] is None and second["producerSub"] is None and second["id"] > first["id"]
    row = core.rows("select * from queen.partition_consumers where partition_id = %s", first["partitionId"])[0]
    assert (row.worker_id, row.batch_size, row.pending_estimate, row.last_consumed_created_at) == ("w", 2, 2, None)
    assert row.last_consumed_id == uuid.UUID(int=0)
    assert 6 < (row.lease_expires_at - row.lease_acquired_at).total_seconds() <= 7
    acked = js(core, "ack_messages_v2", [
        {"index": 3, "transactionId": "a", "partitionId": first["partitionId"], "consumerGroup": "g", "leaseId": "w"},
        {"transactionId": "ghost", "partitionId": first["partitionId"], "consumerGroup": "g"},
        {"transactionId": "a", "partitionId": "nonsense", "status": "completed"},
        {"transactionId": "a", "partitionId": first["partitionId"], "consumerGroup": "g", "status": "eaten"}])
    assert [(r["index"], r["success"], r["error"]) for r in acked] == [
        (3, True, None), (1, False, "Message not found"), (2, False, "Message not found"),
        (3, False, "Unknown status 'eaten'")]
    row = core.rows("select * from queen.partition_consumers where partition_id = %s", first["partitionId"])[0]
    assert (str(row.last_consumed_id), row.acked_count, row.pending_estimate) == (first["id"], 1, 1)
    renewed = js(core, "renew_lease_v2", [{"leaseId": "w", "extendSeconds": 600}, {"leaseId": "?"}])
    assert [r["success"] for r in renewed] == [True, False] and renewed[0]["expiresAt"].endswith("Z")
    lookup = core.rows("select * from queen.partition_lookup where queue_name = %s", queue)[0]
    assert str(lookup.last_message_id) == second["id"]


def test_an_explicit_message_id_is_kept_everywhere(core, queue):
    mine = str(uuid.uuid4())
    item = {"queue": queue, "transactionId": "a", "messageId": mine}
    part = js(core, "push_messages_v2", [item])[0]["partition_id"]
    assert js(core, "push_messages_v3", [item])["items"][0]["message_id"] == mine
    popped = js(core, "pop_unified_batch", [{"queue_name": queue}])[0]["result"]["messages"]
    assert [m["id"] for m in popped] == [mine]
    js(core, "ack_messages_v2", [{"transactionId": "a", "partitionId": part, "status": "dlq", "error": "no"}])
    assert core.rows("select 1 from queen.dead_letter_queue where message_id = %s", uuid.UUID(mine))


def test_a_large_push_is_cut_into_segments(core, queue):
    base = int(time.time() * 1000)
    ids = [v7(base + i * 3) for i in range(700)] + ["plain-%d" % i for i in range(20)]
    items = [{"queue": queue, "partition": "p%d" % (i % 2), "transactionId": t, "payload": "x" * (i % 500)}
             for i, t in enumerate(ids)]
    assert {r["status"] for r in js(core, "push_messages_v2", items)} == {"queued"}
    rows = core.rows("select s.* from queen.segments s join queen.lanes l on l.num = s.lane join queen.queues q"
                     " on q.id = l.queue_id where q.name = %s order by s.lane, s.first_seq", queue)
    for r in rows:
        assert r.count <= 256 and len(r.body) <= 65537 and len(r.keys) == 16 * r.count
        assert r.key_max is None or r.key_max - r.key_min <= 1000
    assert {r["status"] for r in js(core, "push_messages_v2", items[::-1])} == {"duplicate"}
    got = js(core, "pop_unified_batch", [{"queue_name": queue, "batch_size": 1000, "partitions": 2}])[0]["result"]
    assert got["partitionsClaimed"] == 2
    assert [m["transactionId"] for m in got["messages"]] == ids[0::2] + ids[1::2]


def test_priority_orders_a_namespace_pop(core, queue):
    space = "ns-" + queue
    for n, priority in enumerate((1, 9, 5)):
        core.rows("select queen.configure_queue_v1(%s, %s::jsonb)", "%s-%d" % (queue, n),
                  json.dumps({"namespace": space, "priority": priority}))
        js(core, "push_messages_v2", [{"queue": "%s-%d" % (queue, n)}])
    order = [js(core, "pop_unified_batch", [{"namespace": space, "auto_ack": True}])[0]["result"]["queue"]
             for _ in range(3)]
    assert order == [queue + "-1", queue + "-2", queue + "-0"]


def test_an_old_snapshot_is_refused(connect):
    core = connect(autocommit=False)
    for level in ("repeatable read", "serializable"):
        for call in ("push_messages_v2", "pop_unified_batch", "ack_messages_v2", "renew_lease_v2", "execute_transaction_v2"):
            core.rows("set transaction isolation level " + level)
            with pytest.raises(psycopg2.Error) as e:
                js(core, call, [])
            assert e.value.pgcode == "QN003"
            core.conn.rollback()


def test_configure_replaces_everything(core, queue):
    first = core.configure(queue, leaseTime="45", ttl=7, retentionSeconds=5, encryptionEnabled="true")
    assert (first.options["leaseTime"], first.options["retentionEnabled"], first.options["encryptionEnabled"]) == (45, True, True)
    second = core.configure(queue)
    assert (second.queue_id, second.default_lane_id) == (first.queue_id, first.default_lane_id)
    assert (second.options["ttl"], second.options["retentionEnabled"], second.options["leaseTime"]) == (3600, False, 300)
    for bad in ({"ttl": "x"}, {"ttl": True}, {"ttl": -1}, {"ttl": 1.5}, {"ttl": 3e9}, {"retentionEnabled": 1}, {"ttl": []}):
        with pytest.raises(psycopg2.Error) as e:
            core.configure(queue, **bad)
        assert e.value.pgcode == "QN001" and list(bad)[0] in str(e.value)
