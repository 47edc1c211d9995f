"""W3C Trace Context: the consumer receives the context of the producer."""
import json

import pytest

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"


def popped(broker, queue):
    return {m["data"]: m for m in broker.take(queue, batch=100)}


def test_the_header_counts_for_items_without_their_own(broker, queue):
    broker.push([{"queue": queue, "payload": "a"}, {"queue": queue, "payload": "b", "traceparent": OTHER}],
                headers={"traceparent": PARENT, "tracestate": 'a=1,b="x\\y"'}).expect(201)
    got = popped(broker, queue)
    assert (got["a"]["traceparent"], got["a"]["tracestate"]) == (PARENT, 'a=1,b="x\\y"')
    assert got["b"]["traceparent"] == OTHER and "tracestate" not in got["b"]


def test_an_item_may_bring_its_state(broker, queue):
    broker.push([{"queue": queue, "payload": 1, "traceparent": PARENT, "tracestate": "congo=t61"}]).expect(201)
    assert popped(broker, queue)[1]["tracestate"] == "congo=t61"


def test_a_message_without_context_has_no_such_field(broker, queue):
    broker.push([{"queue": queue, "payload": 1}, {"queue": queue, "payload": 2, "traceparent": None},
                 {"queue": queue, "payload": 3, "traceparent": "", "tracestate": "a=1"}]).expect(201)
    for m in popped(broker, queue).values():
        assert "traceparent" not in m and "tracestate" not in m


def test_messages_with_and_without_context_share_a_segment(broker, queue):
    broker.push([dict({"queue": queue, "payload": i}, **({"traceparent": PARENT} if i % 3 else {}))
                 for i in range(50)]).expect(201)
    got = broker.take(queue, batch=100)
    assert [m["data"] for m in got] == list(range(50))
    assert [m.get("traceparent") for m in got] == [PARENT if i % 3 else None for i in range(50)]


@pytest.mark.parametrize("bad", [
    "x", PARENT.upper(), PARENT[:-1], PARENT + "0", PARENT + "-1", "ff" + PARENT[2:],
    "00-" + "0" * 32 + PARENT[35:], PARENT[:36] + "0" * 16 + "-01", PARENT.replace("-", "_")])
def test_a_malformed_one_is_refused_in_an_item_and_ignored_in_the_header(broker, queue, bad):
    r = broker.push([{"queue": queue, "payload": 0}, {"queue": queue, "payload": 1, "traceparent": bad}]).expect(400)
    assert r.json["error"] == "item 1: traceparent is not one of W3C Trace Context"
    assert broker.take(queue) == []
    broker.push([{"queue": queue, "payload": 2}], headers={"traceparent": bad}).expect(201)
    assert "traceparent" not in popped(broker, queue)[2]


def test_types_and_lengths_are_checked(broker, queue):
    for field, value, text in (("traceparent", 7, "item 0: traceparent must be a string"),
                               ("tracestate", "x" * 513, "item 0: tracestate must be at most 512 printable characters"),
                               ("tracestate", "ä", "item 0: tracestate must be at most 512 printable characters")):
        item = {"queue": queue, "payload": 0, "traceparent": PARENT}
        item[field] = value
        assert broker.push([item]).expect(400).json["error"] == text


def test_versions_to_come_pass(broker, queue):
    later = "01" + PARENT[2:] + "-what-comes-then"
    broker.push([{"queue": queue, "payload": 1, "traceparent": later}]).expect(201)
    assert popped(broker, queue)[1]["traceparent"] == later


def test_transactions_carry_it_too(broker, queue):
    r = broker.post("/api/v1/transaction", {"operations": [
        {"type": "push", "items": [{"queue": queue, "payload": 1}, {"queue": queue, "payload": 2, "traceparent": OTHER}]},
        {"type": "push", "queue": queue, "payload": 3, "traceparent": OTHER, "tracestate": "a=1"}]},
        headers={"traceparent": PARENT}).expect(200)
    assert r.json["success"]
    got = popped(broker, queue)
    assert [got[i]["traceparent"] for i in (1, 2, 3)] == [PARENT, OTHER, OTHER]
    assert got[3]["tracestate"] == "a=1"


def test_reading_one_message_shows_it(broker, queue):
    [r] = broker.push([{"queue": queue, "payload": {"a": 1}, "traceparent": PARENT, "tracestate": "a=1"}]).expect(201).json
    m = broker.get("/api/v1/messages/%s/%s" % (r["partitionId"], r["transactionId"])).expect(200).json
    assert (m["traceparent"], m["tracestate"], m["payload"]) == (PARENT, "a=1", {"a": 1})


def test_sql_pushes_reads_and_pops_it(broker, sql, queue):
    item = {"queue": queue, "payload": 1, "traceparent": PARENT, "tracestate": "a=1"}
    broker.push([item]).expect(201)
    sql("select queen.push_messages_v2(%s::jsonb)", json.dumps([dict(item, payload=2)]))
    rows = sql("""select m.payload, m.meta from queen.messages m join queen.partitions p on p.id = m.partition_id
                        join queen.queues q on q.id = p.queue_id where q.name = %s order by m.id""", queue)
    assert [tuple(r) for r in rows] == [(i, {"traceparent": PARENT, "tracestate": "a=1"}) for i in (1, 2)]
    assert {m["traceparent"] for m in popped(broker, queue).values()} == {PARENT}
    with pytest.raises(Exception) as e:
        sql("select queen.push_messages_v2(%s::jsonb)", json.dumps([dict(item, traceparent="x")]))
    assert "item 0: traceparent is not one of W3C Trace Context" in str(e.value)
    popped_by_sql = sql("select queen.pop_unified_batch(%s::jsonb)", json.dumps([
        {"idx": 0, "queue_name": queue, "consumer_group": "g", "batch_size": 5, "worker_id": "w", "auto_ack": True}]))[0][0]
    assert [m["traceparent"] for m in popped_by_sql[0]["result"]["messages"]] == [PARENT] * 2
