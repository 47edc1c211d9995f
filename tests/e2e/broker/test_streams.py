"""The streaming endpoints: spec/streams.md; a small runner that behaves as the SDK does (section 7) is at the end."""
import threading
import time
import uuid
from collections import defaultdict

import pytest

from harness import ZERO_UUID, Background, in_parallel, is_uuid, patience, wait_until

SEP = "\u001f"


def register(broker, name, source="src", hash="h1", status=200, **more):
    return broker.post("/streams/v1/queries", {"name": name, "source_queue": source, "config_hash": hash,
                                               **more}).expect(status).json


def cycle(broker, query, partition, status=200, **fields):
    return broker.post("/streams/v1/cycle", {"query_id": query, "partition_id": partition, **fields}).expect(status).json


def state(broker, query, partition, **filters):
    answer = broker.post("/streams/v1/state/get", {"query_id": query, "partition_id": partition, **filters}).expect(200).json
    assert answer["success"] is True
    return answer["rows"]


def values(broker, query, partition, **filters):
    return {r["key"]: r["value"] for r in state(broker, query, partition, **filters)}


def upsert(key, value):
    return {"type": "upsert", "key": key, "value": value}


def delete(key):
    return {"type": "delete", "key": key}


def ack_of(messages, lease=True, **more):
    m = messages[-1]
    ack = {"transactionId": m["transactionId"], "status": "completed", "count": len(messages), **more}
    if lease:
        ack.setdefault("leaseId", m["leaseId"])
    return ack


def failed(answer, text):
    assert answer["success"] is False and text in answer["error"] and answer["ack_result"] is None, answer
    return answer


@pytest.fixture
def name():
    return "test-" + uuid.uuid4().hex[:12]


@pytest.fixture
def query(broker, name, queue):
    return register(broker, name, queue)["query_id"]


@pytest.fixture
def out(queue):
    return queue + "-out"


@pytest.fixture
def part():
    return str(uuid.uuid4())


# ---- registration ----

def test_registration_of_the_specification(broker, name, sql):
    first = register(broker, name, "invoices", "9c1f", sink_queue="totals-out", reset=False)
    assert is_uuid(first["query_id"])
    assert first == {"success": True, "query_id": first["query_id"], "name": name, "config_hash": "9c1f", "fresh": True,
                     "reset": False}
    assert sql("select source_queue, sink_queue, config_hash from queen_streams.queries where name = %s", name) == [
        ("invoices", "totals-out", "9c1f")]
    again = register(broker, name, "other", "9c1f", sink_queue="")
    assert again == {**first, "fresh": False}
    assert sql("select source_queue, sink_queue from queen_streams.queries where name = %s", name) == [("other", None)]
    conflict = register(broker, name, "third", "beef", status=409)
    assert conflict["success"] is False and conflict["query_id"] == first["query_id"] and conflict["name"] == name
    assert "config_hash mismatch" in conflict["error"]
    assert sql("select source_queue, config_hash from queen_streams.queries where name = %s", name) == [("other", "9c1f")]


def test_a_reset_empties_the_state_only_when_the_hash_differs(broker, name, queue, part):
    q = register(broker, name, queue)["query_id"]
    assert cycle(broker, q, part, state_ops=[upsert("k", 1)])["success"]
    same = register(broker, name, queue, reset=True)
    assert (same["fresh"], same["reset"]) == (False, False) and values(broker, q, part) == {"k": 1}
    other = register(broker, name, queue, "h2", reset=True)
    assert (other["query_id"], other["fresh"], other["reset"], other["config_hash"]) == (q, False, True, "h2")
    assert values(broker, q, part) == {}
    # After a reset the same request is a new one.
    assert cycle(broker, q, part, state_ops=[upsert("k", 1)])["success"] and values(broker, q, part) == {"k": 1}


@pytest.mark.parametrize("body, field", [
    ({"source_queue": "s", "config_hash": "h"}, "name"), ({"name": "", "source_queue": "s", "config_hash": "h"}, "name"),
    ({"name": 7, "source_queue": "s", "config_hash": "h"}, "name"), ({"name": "n", "config_hash": "h"}, "source_queue"),
    ({"name": "n", "source_queue": "s"}, "config_hash"), ({"name": "n", "source_queue": "s", "config_hash": ""}, "config_hash"),
    ({"name": "n", "source_queue": "s", "config_hash": "h", "sink_queue": 3}, "sink_queue"),
    ({"name": "n", "source_queue": "s", "config_hash": "h", "reset": "yes"}, "reset"), ([], "object")])
def test_a_malformed_registration_names_the_field(broker, body, field):
    assert field in broker.post("/streams/v1/queries", body).expect(400).json["error"]


def test_concurrent_registrations_make_one_row(broker, broker2, name, sql):
    answers = in_parallel([lambda b=b: register(b, name) for b in (broker, broker2) * 4])
    assert len({a["query_id"] for a in answers}) == 1 and sum(a["fresh"] for a in answers) == 1
    assert sql("select count(*) from queen_streams.queries where name = %s", name) == [(1,)]


def test_of_concurrent_registrations_with_different_hashes_one_wins(broker, broker2, name):
    body = {"name": name, "source_queue": "s"}
    answers = in_parallel([lambda i=i: (broker, broker2)[i % 2].post("/streams/v1/queries", {**body, "config_hash": "h%d" % i})
                           for i in range(6)])
    assert sorted(a.status for a in answers) == [200] + [409] * 5
    assert len({a.json["query_id"] for a in answers}) == 1


def test_deleting_a_query_takes_its_state(broker, query, part, name, sql):
    cycle(broker, query, part, state_ops=[upsert("k", 1)])
    sql("delete from queen_streams.queries where name like %s", name[:9] + "%")
    assert sql("select count(*) from queen_streams.state where query_id = %s", query) == [(0,)]
    failed(cycle(broker, query, part, state_ops=[upsert("k", 1)]), "not registered")


# ---- cycles ----

def test_the_cycle_of_the_specification(broker, name, queue, out, group, sql):
    q = register(broker, name, queue, sink_queue=out)["query_id"]
    broker.put(queue, [{"n": i} for i in range(3)], partition="acct-7", ids=["inv-41", "inv-42", "inv-43"])
    messages = broker.take(queue, consumerGroup=group, batch=10)
    key = "tumb:60" + SEP + "2026-02-03T04:05:00.000Z" + SEP + "acct-7"
    value = {"acc": {"sum": 41}, "windowStart": 1770091500000, "windowEnd": 1770091560000}
    partition = messages[0]["partitionId"]
    answer = cycle(broker, q, partition, consumer_group=group, state_ops=[upsert(key, value)],
                   push_items=[{"queue": out, "partition": "acct-7", "payload": {"sum": 12}}], ack=ack_of(messages),
                   release_lease=True)
    (pushed,) = answer.pop("push_results")
    assert answer == {"success": True, "query_id": q, "partition_id": partition, "queueName": queue, "state_ops_applied": 1,
                      "ack_result": {"success": True, "count": 3, "lease_released": True, "dlq": False}}
    assert (pushed["index"], pushed["status"], pushed["trace_id"], pushed["queueName"]) == (0, "queued", None, out)
    assert is_uuid(pushed["message_id"]) and is_uuid(pushed["partition_id"]) and pushed["transaction_id"]
    (m,) = broker.take(out, autoAck=True)
    assert (m["id"], m["transactionId"], m["data"], m["partition"]) == (
        pushed["message_id"], pushed["transaction_id"], {"sum": 12}, "acct-7")
    (row,) = state(broker, q, partition, keys=[], key_prefix="tumb:60" + SEP, ripe_at_or_before=1770091560000)
    assert (row["key"], row["value"]) == (key, value) and row["updated_at"].endswith("+00:00")
    assert broker.take(queue, consumerGroup=group) == []
    assert sql("select total_messages_consumed, batch_size, acked_count, batch_retry_count, lease_expires_at"
               " from queen.partition_consumers where partition_id = %s and consumer_group = %s", partition, group) == [
        (3, 0, 0, 0, None)]

    stale = cycle(broker, q, partition, consumer_group=group, state_ops=[upsert(key, 0)],
                  push_items=[{"queue": out, "payload": 2}], ack=ack_of(messages))
    failed(stale, "Invalid or expired lease")
    assert stale["queueName"] == queue and stale["state_ops_applied"] == 1 and len(stale["push_results"]) == 1
    assert broker.take(out) == [] and values(broker, q, partition) == {key: value}


def test_state_operations_are_applied_in_order(broker, query, part):
    assert cycle(broker, query, part, state_ops=[
        upsert("a", 1), delete("a"), upsert("b", 1), upsert("b", {"x": [2]}), delete("c"), upsert("d", None),
        delete("e"), upsert("e", "x"), {"type": "upsert", "key": "f"}, upsert("", 1)])["state_ops_applied"] == 10
    assert values(broker, query, part) == {"": 1, "b": {"x": [2]}, "d": None, "e": "x", "f": {}}
    assert cycle(broker, query, part, state_ops=[delete("b"), upsert("b", 3), delete("d"), delete("nothing")])["success"]
    assert values(broker, query, part) == {"": 1, "b": 3, "e": "x", "f": {}}


def test_nulls_and_nothing_at_all_are_legal(broker, query, part):
    assert cycle(broker, query, part, state_ops=None, push_items=None, ack=None, consumer_group="", release_lease=None) == {
        "success": True, "query_id": query, "partition_id": part, "queueName": None, "state_ops_applied": 0,
        "push_results": [], "ack_result": None}


@pytest.mark.parametrize("fields, text", [
    ({"state_ops": [upsert("a", 1), {"type": "append", "key": "k"}]}, "append"),
    ({"state_ops": [upsert("a", 1), {"key": "k"}]}, "type"), ({"state_ops": [upsert("a", 1), {"type": "upsert"}]}, "key"),
    ({"ack": {"transactionId": "x", "status": "retry"}}, "retry"), ({"ack": {"transactionId": "nope"}}, "Message not found")])
def test_a_cycle_that_cannot_be_done_changes_nothing(broker, query, part, out, fields, text):
    answer = failed(cycle(broker, query, part, push_items=[{"queue": out, "payload": 1}], **fields), text)
    assert answer["query_id"] == query and answer["partition_id"] == part
    assert values(broker, query, part) == {} and broker.take(out) == []


def test_an_unregistered_query_fails(broker, part, out):
    failed(cycle(broker, ZERO_UUID, part, push_items=[{"queue": out}]), "not registered")
    failed(cycle(broker, ZERO_UUID, part), "not registered")
    assert broker.take(out) == []


@pytest.mark.parametrize("fields, text", [
    ({"query_id": None}, "query_id"), ({"query_id": "x"}, "query_id"), ({"partition_id": "nope"}, "partition_id"),
    ({"partition_id": 3}, "partition_id"), ({"consumer_group": 3}, "consumer_group"), ({"state_ops": {}}, "state_ops"),
    ({"state_ops": [1]}, "state_ops 0"), ({"state_ops": [{"type": 1, "key": "k"}]}, "state_ops 0: type"),
    ({"state_ops": [{"type": "delete", "key": 1}]}, "state_ops 0: key"),
    ({"state_ops": [{"type": "delete", "key": "k" * 3000}]}, "state_ops 0: key"),
    ({"push_items": "x"}, "push_items"), ({"push_items": [{"queue": "q"}, {}]}, "push_items 1: queue"),
    ({"push_items": [{"queue": "q", "traceId": "x"}]}, "push_items 0: traceId"), ({"ack": []}, "ack"), ({"ack": {}}, "ack.transactionId"),
    ({"ack": {"transactionId": "x", "count": "many"}}, "ack.count"), ({"ack": {"transactionId": "x", "status": 1}}, "ack.status"),
    ({"ack": {"transactionId": "x", "leaseId": 1}}, "ack.leaseId"), ({"release_lease": 1}, "release_lease")])
def test_a_malformed_cycle_names_the_field(broker, query, part, fields, text):
    body = {"query_id": query, "partition_id": part, "state_ops": [upsert("k", 1)], **fields}
    assert text in broker.post("/streams/v1/cycle", body).expect(400).json["error"]
    assert values(broker, query, part) == {}


def test_grammar_of_the_body(broker, query, part):
    for text in ('', '{"query_id":', '{"query_id":"%s","state_ops":[{"type":"upsert","key":"\\u0000"}]}' % query, '[]'):
        assert "error" in broker.post("/streams/v1/cycle", text).expect(400).json


def test_payloads_keep_their_bytes_and_items_their_order(broker, query, part, out):
    raw = '{"z": 1.10,  "a":[1e2,"\\u00e9"], "z":2}'
    body = '{"query_id":"%s","partition_id":"%s","push_items":[%s]}' % (query, part, ",".join(
        '{"queue":"%s","payload":%s,"messageId":"x","producerSub":"me","is_encrypted":true}' % (out, p)
        for p in [raw, "1", "null", '"x"']) + ',{"queue":"%s"}' % out)
    results = broker.post("/streams/v1/cycle", body).expect(200).json["push_results"]
    ids = [r["message_id"] for r in results]
    assert ids == sorted(ids) and len(set(ids)) == 5
    popped = broker.pop(out, batch=10, autoAck=True).expect(200)
    assert raw in popped.text
    assert [(m["id"], m["data"], m.get("producerSub")) for m in popped.json["messages"]][1:] == list(
        zip(ids[1:], [1, None, "x", {}], [None] * 4))


def test_duplicates_are_reported_and_the_rest_is_stored(broker, query, part, out):
    (first,) = broker.put(out, ["there"], ids=["a"])
    results = cycle(broker, query, part, state_ops=[upsert("k", 1)], push_items=[
        {"queue": out, "payload": i, "transactionId": t} for i, t in enumerate(["b", "a", "b", "c"])])
    assert results["success"] and values(broker, query, part) == {"k": 1}
    got = results["push_results"]
    assert [r["status"] for r in got] == ["queued", "duplicate", "duplicate", "queued"]
    assert got[1]["message_id"] == first["message_id"] and got[2]["message_id"] == got[0]["message_id"]
    assert [m["data"] for m in broker.drain(out)] == ["there", 0, 3]


def test_a_full_sink_rolls_the_cycle_back(broker, query, part, out):
    broker.configure(out, maxSize=2)
    answer = cycle(broker, query, part, state_ops=[upsert("k", 1)], push_items=[{"queue": out}] * 3)
    failed(answer, out)
    assert values(broker, query, part) == {} and broker.take(out) == []


def test_sink_pushes_wake_parked_pops_and_are_seen_at_once(broker, broker2, query, part, out):
    waiting = [Background(lambda b=b: b.take(out, wait=True, timeout=60000, autoAck=True)) for b in (broker, broker2)]
    time.sleep(0.3)
    cycle(broker, query, part, push_items=[{"queue": out, "partition": p, "payload": p} for p in "ab"])
    assert sorted(w.result(70)[0]["data"] for w in waiting) == ["a", "b"]
    assert all(w.seconds < 40 for w in waiting)
    for i in range(10):
        cycle(broker, query, part, push_items=[{"queue": out, "partition": "p%d" % i, "payload": i}])
        assert [m["data"] for m in (broker, broker2)[i % 2].take(out, autoAck=True)] == [i]


# ---- acknowledgement ----

def test_a_released_lease_wakes_waiting_pops(broker, broker2, query, queue, group):
    broker.put(queue, list(range(5)))
    got = broker.take(queue, consumerGroup=group, batch=2)
    waiting = [Background(lambda b=b: b.take(queue, consumerGroup=group, wait=True, timeout=8000)) for b in (broker, broker2)]
    time.sleep(0.2)
    assert cycle(broker, query, got[0]["partitionId"], consumer_group=group, ack=ack_of(got[:1]))["success"]
    wait_until(lambda: any(w.done for w in waiting), 5, "one of them gets the rest")
    first = next(w for w in waiting if w.done).result()
    assert [m["data"] for m in first] == [1]
    assert cycle(broker2, query, got[0]["partitionId"], consumer_group=group, ack=ack_of(first))["success"]
    assert [m["data"] for m in next(w for w in waiting if w.result() is not first).result()] == [2]


def test_an_unreleased_lease_expires_and_the_rest_is_redelivered(broker, query, queue, group, sql):
    broker.configure(queue, leaseTime=1, retryLimit=0)
    broker.put(queue, list(range(6)))
    got = broker.take(queue, consumerGroup=group, batch=6)
    partition = got[0]["partitionId"]
    answer = cycle(broker, query, partition, consumer_group=group, ack=ack_of(got[:2]), release_lease=False)
    assert answer["ack_result"] == {"success": True, "count": 2, "lease_released": False, "dlq": False}
    assert broker.take(queue, consumerGroup=group) == []
    for expected in ([2, 3, 4, 5], [2, 3, 4, 5]):  # running out twice is no failure, though retryLimit is 0
        rest = broker.take(queue, consumerGroup=group, batch=6, wait=True, timeout=5000)
        assert [m["data"] for m in rest] == expected
    assert cycle(broker, query, partition, consumer_group=group, ack=ack_of(rest))["ack_result"]["lease_released"]
    assert sql("select count(*) from queen.dead_letter_queue where partition_id = %s", partition) == [(0,)]
    assert sql("select batch_retry_count, total_messages_consumed from queen.partition_consumers where partition_id = %s",
               partition) == [(0, 6)]


@pytest.mark.parametrize("status", ["failed", "dlq"])
def test_failed_goes_to_the_dead_letters_at_once(broker, query, queue, group, sql, status):
    broker.put(queue, [1, 2])
    got = broker.take(queue, consumerGroup=group, batch=2)
    partition = got[0]["partitionId"]
    answer = cycle(broker, query, partition, consumer_group=group, ack=ack_of(got[:1], status=status, error="boom"),
                   release_lease=False)
    assert answer["ack_result"] == {"success": True, "count": 1, "lease_released": True, "dlq": True}
    assert sql("select consumer_group, error_message, retry_count from queen.dead_letter_queue where partition_id = %s",
               partition) == [(group, "boom", 0)]
    assert [m["data"] for m in broker.take(queue, consumerGroup=group, batch=5)] == [2]


def test_without_a_lease_id_the_cursor_moves_and_a_new_group_is_made(broker, query, queue, group):
    pushed = broker.put(queue, [1, 2, 3])
    ack = {"transactionId": pushed[1]["transaction_id"]}
    answer = cycle(broker, query, pushed[0]["partition_id"], consumer_group=group, ack=ack)
    assert answer["ack_result"] == {"success": True, "count": 1, "lease_released": True, "dlq": False}
    assert [m["data"] for m in broker.take(queue, consumerGroup=group, batch=5, autoAck=True)] == [3]
    older = cycle(broker, query, pushed[0]["partition_id"], consumer_group=group,
                  ack={"transactionId": pushed[0]["transaction_id"]})
    assert older["success"] and broker.take(queue, consumerGroup=group) == []


@pytest.mark.parametrize("status", ["completed", "failed", "dlq"])
def test_a_late_cycle_of_a_settled_message_leaves_the_lease_of_others_alone(broker, query, queue, group, sql, status):
    broker.put(queue, [1, 2])
    (first,) = broker.take(queue, consumerGroup=group)
    assert broker.ack(first)["success"] is True
    (second,) = broker.take(queue, consumerGroup=group)
    late = {"transactionId": first["transactionId"], "status": status}
    answer = cycle(broker, query, first["partitionId"], consumer_group=group, ack=late)
    assert (answer["success"], answer["ack_result"]["lease_released"]) == (True, False)
    assert sql("select count(*) from queen.dead_letter_queue where partition_id = %s", first["partitionId"]) == [(0,)]
    assert broker.take(queue, consumerGroup=group) == []
    assert broker.ack(second)["success"] is True


def test_leases_of_others_and_expired_ones_are_refused(broker, query, queue, group):
    broker.configure(queue, leaseTime=1)
    broker.put(queue, [1])
    got = broker.take(queue, consumerGroup=group)
    partition = got[0]["partitionId"]
    failed(cycle(broker, query, partition, consumer_group=group, ack=ack_of(got, leaseId=str(uuid.uuid4()))), "lease")
    failed(cycle(broker, query, partition, consumer_group="other", ack=ack_of(got)), "lease")
    time.sleep(1.1)
    failed(cycle(broker, query, partition, consumer_group=group, ack=ack_of(got)), "Invalid or expired lease")
    assert len(broker.take(queue, consumerGroup=group)) == 1


# ---- repetition ----

def test_a_repeated_flush_is_answered_as_the_first(broker, broker2, query, part, out):
    broker.put(out, ["there"], partition="p", ids=["dup"])
    body = {"query_id": query, "partition_id": part, "state_ops": [upsert("k", 1)],
            "push_items": [{"queue": out, "partition": p, "payload": i, **({"transactionId": t} if t else {})}
                           for i, (p, t) in enumerate([("p", None), ("q", "x"), ("p", "dup"), ("q", "x"), ("p", None)])]}
    first = broker.post("/streams/v1/cycle", body).expect(200).json
    assert first["success"] and [r["status"] for r in first["push_results"]] == [
        "queued", "queued", "duplicate", "duplicate", "queued"]
    for b in (broker, broker2, broker):
        assert b.post("/streams/v1/cycle", body).expect(200).json == first
    assert len(broker.drain(out)) == 4
    # Another one in between, and it counts again; only the last is remembered.
    assert cycle(broker, query, part, state_ops=[upsert("k", 2)])["success"]
    second = broker.post("/streams/v1/cycle", body).expect(200).json
    assert second["success"] and second != first and values(broker, query, part) == {"k": 1}
    assert len(broker.drain(out)) == 2


def test_a_cycle_under_a_lease_makes_the_one_before_repeatable(broker, query, queue, out, group):
    broker.put(queue, [1])
    got = broker.take(queue, consumerGroup=group)
    partition = got[0]["partitionId"]
    flush = {"push_items": [{"queue": out, "payload": 1}]}
    assert cycle(broker, query, partition, **flush)["success"]
    assert cycle(broker, query, partition, consumer_group=group, ack=ack_of(got))["success"]
    assert cycle(broker, query, partition, **flush)["success"]
    assert len(broker.drain(out)) == 2


def test_a_repeated_gate_cycle_is_answered_as_the_first(broker, query, queue, out, group, sql):
    broker.put(queue, list(range(4)))
    got = broker.take(queue, consumerGroup=group, batch=4)
    partition = got[0]["partitionId"]
    fields = {"consumer_group": group, "ack": ack_of(got[:2]), "release_lease": False,
              "push_items": [{"queue": out, "payload": i} for i in range(2)]}
    first = cycle(broker, query, partition, **fields)
    assert first["success"] and cycle(broker, query, partition, **fields) == first
    assert len(broker.drain(out)) == 2
    assert sql("select total_messages_consumed from queen.partition_consumers where partition_id = %s and consumer_group = %s",
               partition, group) == [(2,)]


def test_a_repeated_cycle_that_gave_its_lease_back_finds_it_gone(broker, query, queue, out, group):
    broker.put(queue, [1])
    got = broker.take(queue, consumerGroup=group)
    fields = {"consumer_group": group, "ack": ack_of(got), "push_items": [{"queue": out}], "state_ops": [upsert("n", 1)]}
    assert cycle(broker, query, got[0]["partitionId"], **fields)["success"]
    failed(cycle(broker, query, got[0]["partitionId"], **fields), "Invalid or expired lease")
    assert len(broker.drain(out)) == 1


def test_repetitions_at_the_same_moment_are_applied_once(broker, broker2, query, part, out):
    body = {"query_id": query, "partition_id": part, "push_items": [{"queue": out, "payload": 1}]}
    answers = in_parallel([lambda b=b: b.post("/streams/v1/cycle", body).expect(200).json for b in (broker, broker2) * 4])
    assert all(a == answers[0] and a["success"] for a in answers) and len(broker.drain(out)) == 1


def test_receipts_older_than_a_minute_are_void_and_their_slot_is_emptied(broker, query, part, sql):
    assert cycle(broker, query, part, state_ops=[upsert("k", 1)])["success"]
    sql("update queen_streams.receipts set at = at - interval '61 seconds' where query_id = %s", query)
    sql("update queen_streams.state set value = '2' where query_id = %s", query)
    assert cycle(broker, query, part, state_ops=[upsert("k", 1)])["success"]
    assert values(broker, query, part) == {"k": 1}
    # The slot that is two minutes old.
    sql("insert into queen_streams.receipts (slot, query_id, partition_id, at) select "
        "(floor(extract(epoch from clock_timestamp()) / 60)::bigint + 1) %% 3, %s, %s, clock_timestamp() - interval '2 minutes'",
        ZERO_UUID, part)
    sql("select queen.forget_receipts()")
    assert sql("select count(*) from queen_streams.receipts where query_id = %s", ZERO_UUID) == [(0,)]


# ---- reading state ----

def test_filters_of_state(broker, query, part):
    rows = {"a%b": 1, "a_b": 2, "aXb": 3, "a": 4, "B": {"windowEnd": 100}, "é": {"windowEnd": 100.5}, "z": {"windowEnd": "7"},
            "\ud7ff".encode("utf-8", "surrogatepass").decode("utf-8", "replace"): {"windowEnd": 99}, "a\U0010ffffx": 5}
    assert cycle(broker, query, part, state_ops=[upsert(k, v) for k, v in rows.items()])["success"]
    assert [r["key"] for r in state(broker, query, part)] == sorted(rows, key=lambda k: k.encode())
    assert values(broker, query, part) == rows
    assert values(broker, query, part, keys=["a", "B", "missing"]) == {"a": 4, "B": {"windowEnd": 100}}
    assert values(broker, query, part, keys=None, key_prefix="") == rows
    assert set(values(broker, query, part, key_prefix="a%")) == {"a%b"}
    assert set(values(broker, query, part, key_prefix="a_")) == {"a_b"}
    assert set(values(broker, query, part, key_prefix="a")) == {"a%b", "a_b", "aXb", "a", "a\U0010ffffx"}
    assert set(values(broker, query, part, key_prefix="a\U0010ffff")) == {"a\U0010ffffx"}
    assert set(values(broker, query, part, ripe_at_or_before=100)) == {"B", "\ud7ff"}
    assert set(values(broker, query, part, ripe_at_or_before=100.9)) == {"B", "\ud7ff"}
    assert set(values(broker, query, part, ripe_at_or_before=101)) == {"B", "é", "\ud7ff"}
    assert set(values(broker, query, part, ripe_at_or_before=101, key_prefix="é", keys=["é", "B"])) == {"é"}
    assert values(broker, query, ZERO_UUID) == {} and values(broker, ZERO_UUID, part) == {}


@pytest.mark.parametrize("fields, text", [
    ({"query_id": "x"}, "query_id"), ({"query_id": None}, "query_id"), ({"partition_id": ""}, "partition_id"),
    ({"keys": "k"}, "keys"), ({"keys": [1]}, "keys"), ({"key_prefix": 1}, "key_prefix"), ({"ripe_at_or_before": "1"}, "ripe")])
def test_a_malformed_state_get_names_the_field(broker, query, part, fields, text):
    body = {"query_id": query, "partition_id": part, **fields}
    assert text in broker.post("/streams/v1/state/get", body).expect(400).json["error"]


def test_thousands_of_rows_come_quickly(broker, query, part):
    value = {"acc": {"tokens": 10, "last": 1770091500000}, "windowStart": 1, "windowEnd": 2}
    assert cycle(broker, query, part, state_ops=[upsert("k%05d" % i, value) for i in range(8000)])["success"]
    begin = time.monotonic()
    rows = state(broker, query, part)
    assert len(rows) == 8000 and time.monotonic() - begin < patience(1.5)
    assert [r["key"] for r in rows] == ["k%05d" % i for i in range(8000)]


def test_an_outage_is_503(make_broker, pg):
    database = pg.create_database("t_" + uuid.uuid4().hex[:10])
    b = make_broker(database=database)
    q = register(b, "n")["query_id"]
    conn = pg.connect()
    with conn.cursor() as cur:
        cur.execute('alter database "%s" with allow_connections false' % database)
        cur.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (database,))
    body = {"query_id": q, "partition_id": ZERO_UUID}
    wait_until(lambda: b.post("/streams/v1/cycle", body).status == 503, 10, "the outage is noticed")
    assert b.post("/streams/v1/state/get", body).status == 503
    with conn.cursor() as cur:
        cur.execute('alter database "%s" with allow_connections true' % database)
    conn.close()
    wait_until(lambda: b.post("/streams/v1/cycle", body).status == 200, 20, "back again")


# ---- a runner as the SDKs have it ----

class Runner:
    """Tumbling windows of 10 values of "t", summed per key; dies (without a word) after `cycles` of them."""

    def __init__(self, broker, name, source, sink, cycles=None, window=10, lose=0):
        self.broker, self.source, self.sink, self.window = broker, source, sink, window
        self.group, self.left, self.lose, self.errors = "streams." + name, cycles, lose, []
        self.query = register(broker, name, source, sink_queue=sink)["query_id"]
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.stopped.is_set():
                messages = self.broker.take(self.source, consumerGroup=self.group, batch=200, partitions=4, wait=True, timeout=300)
                groups = defaultdict(list)
                for m in messages:
                    groups[m["partitionId"]].append(m)
                for partition, batch in groups.items():
                    if self.left is not None and self.left <= 0:
                        return  # killed: the rest stays leased
                    self.handle(partition, sorted(batch, key=lambda m: m["id"]))
                    if self.left is not None:
                        self.left -= 1
        except Exception as e:  # looked at by the test
            self.errors.append(e)

    def handle(self, partition, batch):
        name = batch[0]["partition"]
        keys = {self.key(m["data"]) for m in batch}
        rows = values(self.broker, self.query, partition, keys=sorted(keys))
        newest = max([r["windowStart"] for r in values(self.broker, self.query, partition, key_prefix="tumb").values()] + [0])
        for m in batch:
            d = m["data"]
            start = d["t"] // self.window * self.window
            row = rows.setdefault(self.key(d), {"acc": {"sum": 0}, "windowStart": start, "windowEnd": start + self.window})
            row["acc"]["sum"] += d["v"]
            newest = max(newest, start)
        old = values(self.broker, self.query, partition, key_prefix="tumb", ripe_at_or_before=newest)
        ripe = {k: rows.get(k, v) for k, v in {**old, **rows}.items() if rows.get(k, v)["windowEnd"] <= newest}
        ops = [upsert(k, v) for k, v in rows.items() if k not in ripe] + [delete(k) for k in ripe]
        items = [{"queue": self.sink, "partition": name, "payload": {"w": v["windowStart"], "k": k.split(SEP)[2],
                                                                     "sum": v["acc"]["sum"]}} for k, v in sorted(ripe.items())]
        answer = cycle(self.broker, self.query, partition, consumer_group=self.group, state_ops=ops, push_items=items,
                       ack=ack_of(batch))
        assert answer["success"] or "lease" in answer["error"], answer

    def key(self, d):
        return "tumb:10" + SEP + "%06d" % (d["t"] // self.window * self.window) + SEP + d["k"]

    def stop(self):
        self.stopped.set()
        self.thread.join(20)
        assert not self.errors, self.errors[0]


def test_windows_are_exact_though_runners_die(broker, broker2, queue, out, name):
    """12 partitions, 3600 messages, runners that die in the middle of their batches, two at a time on two brokers."""
    broker.configure(queue, leaseTime=1)
    partitions, per = ["p%02d" % i for i in range(12)], 300
    expected = defaultdict(int)
    for p in partitions:
        data = [{"t": i // 3, "k": "k%d" % (i % 2), "v": i} for i in range(per)]
        for d in data:
            if d["t"] < 90:  # the last window of 10 stays open
                expected[p, d["t"] // 10 * 10, d["k"]] += d["v"]
        broker.put(queue, data[:150], partition=p)
        broker2.put(queue, data[150:], partition=p)
    for round_ in range(3):
        runners = [Runner(b, name, queue, out, cycles=3) for b in (broker, broker2)]
        for r in runners:
            r.thread.join(20)
            r.stop()
    runners = [Runner(b, name, queue, out) for b in (broker, broker2)]
    got = []

    def all_there():
        got.extend(broker.drain(out))
        return len(got) >= len(expected)
    wait_until(all_there, 20, "all windows")
    for r in runners:
        r.stop()
    got += broker.drain(out)
    results = [((m["partition"], m["data"]["w"], m["data"]["k"]), m["data"]["sum"]) for m in got]
    assert len(results) == len(expected) and dict(results) == dict(expected)


def test_a_rate_limiter_loses_nothing_and_keeps_order(broker, queue, out, name, sql):
    """A gate lets 5 of each batch pass under an unreleased lease; what is denied comes again when it has run out."""
    broker.configure(queue, leaseTime=1, retryLimit=1)
    tenants = ["t%d" % i for i in range(4)]
    for t in tenants:
        broker.put(queue, [{"tenant": t, "n": i} for i in range(12)], partition=t)
    q = register(broker, name, queue, sink_queue=out)["query_id"]
    group, passed = "streams." + name, 0
    deadline = time.monotonic() + 20
    while passed < 48 and time.monotonic() < deadline:
        groups = defaultdict(list)
        for m in broker.take(queue, consumerGroup=group, batch=200, partitions=4, wait=True, timeout=300):
            groups[m["partitionId"]].append(m)
        for partition, batch in groups.items():
            allowed = batch[:5]
            fields = {"consumer_group": group, "ack": ack_of(allowed), "release_lease": len(allowed) == len(batch),
                      "state_ops": [upsert(batch[0]["partition"], {"allowed": batch[4:5] and batch[4]["data"]["n"]})],
                      "push_items": [{"queue": out, "partition": m["partition"], "payload": m["data"]} for m in allowed]}
            assert cycle(broker, q, partition, **fields)["success"]
            passed += len(allowed)
    got = defaultdict(list)
    for m in broker.drain(out):
        got[m["partition"]].append(m["data"]["n"])
    assert got == {t: list(range(12)) for t in tenants}
    assert sql("select count(*) from queen.dead_letter_queue where consumer_group = %s", group) == [(0,)]
