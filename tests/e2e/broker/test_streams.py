"""The streaming endpoints: spec/streams.md; a small runner that behaves as the SDK does (section 7) is at the end."""
import time
import uuid

import pytest

from harness import ZERO_UUID, Background, in_parallel, is_uuid, let_arrive, patience, wait_until
from streams import SEP, ack_of, cycle, delete, failed, name, out, part, query, register, state, upsert, values  # noqa: F401 (fixtures)

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


def test_registered_queries_are_listed_with_the_lag_of_their_group(broker, name, queue, part):
    def listed(search=name, more=""):
        return broker.get("/streams/v1/queries?search=" + search + more).expect(200).json
    assert listed() == {"queries": [], "total": 0}
    q = register(broker, name, queue, sink_queue="out")["query_id"]
    register(broker, name + "-2", queue)
    (first, second) = listed(name.upper())["queries"]
    assert (first["id"], first["sourceQueue"], first["sinkQueue"], first["configHash"]) == (q, queue, "out", "h1")
    assert (first["keys"], first["consumerGroup"], first["lag"], first["lagSeconds"]) == (0, None, None, None)
    assert second["name"] == name + "-2" and second["sinkQueue"] is None
    assert cycle(broker, q, part, state_ops=[upsert("a", 1), upsert("b", 2)])["success"]
    broker.put(queue, [1, 2, 3])
    broker.take(queue, consumerGroup="streams." + name, batch=1)

    def counted():
        first = listed()["queries"][0]
        return first["keys"] == 2 and first["consumerGroup"] == "streams." + name and first["lag"] >= 3
    wait_until(counted, 30, "the group of the query is counted")
    page = listed(more="&limit=1&offset=1")
    assert [p["name"] for p in page["queries"]] == [name + "-2"] and page["total"] == 2
    assert listed("%25")["total"] == 0


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
    let_arrive()
    cycle(broker, query, part, push_items=[{"queue": out, "partition": p, "payload": p} for p in "ab"])
    assert sorted(w.result(70)[0]["data"] for w in waiting) == ["a", "b"]
    assert all(w.seconds < 40 for w in waiting)
    for i in range(10):
        cycle(broker, query, part, push_items=[{"queue": out, "partition": "p%d" % i, "payload": i}])
        assert [m["data"] for m in (broker, broker2)[i % 2].take(out, autoAck=True)] == [i]


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
