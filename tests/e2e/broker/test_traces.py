"""Traces: events that clients attach to messages."""
import re
import uuid

import pytest
from harness import quote

TS_MS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")


@pytest.fixture
def message(broker, queue):
    broker.put(queue, [{"no": 41}], partition="acct-7", ids=["inv-41"])
    return broker.take(queue)[0]


def trace(broker, message, status=201, **fields):
    body = {"transactionId": message["transactionId"], "partitionId": message["partitionId"], "data": {"text": "booked"}}
    body.update(fields)
    return broker.post("/api/v1/traces", body).expect(status).json


def of_message(broker, m):
    return broker.get("/api/v1/traces/%s/%s" % (m["partitionId"], quote(m["transactionId"], safe=""))).expect(200).json["traces"]


def by_name(broker, name, query=""):
    return broker.get("/api/v1/traces/by-name/%s%s" % (name, query)).expect(200).json


def test_traces_of_a_message_oldest_first(broker, message):
    first = trace(broker, message, consumerGroup="ledger", traceNames=["b", "a"], eventType="step", data={"text": "x", "n": 1})
    assert first["success"] is True
    trace(broker, message)
    one, two = of_message(broker, message)
    assert TS_MS.match(one["created_at"]) and one["worker_id"]
    assert {k: one[k] for k in ("id", "event_type", "data", "consumer_group", "trace_names", "eventType", "traceName",
                                "transactionId", "partition")} == \
        {"id": first["traceId"], "event_type": "step", "data": {"text": "x", "n": 1}, "consumer_group": "ledger",
         "trace_names": ["a", "b"], "eventType": "step", "traceName": "a", "transactionId": "inv-41", "partition": "acct-7"}
    assert (two["event_type"], two["consumer_group"], two["trace_names"]) == ("info", "__QUEUE_MODE__", [])
    assert two["createdAt"] == two["created_at"]


def test_null_counts_as_absent_and_a_single_name_may_be_a_string(broker, message, queue):
    trace(broker, message, consumerGroup=None, eventType=None, traceNames=None)
    trace(broker, message, traceNames=queue)
    assert [t["trace_names"] for t in of_message(broker, message)] == [[], [queue]]


def test_a_message_that_is_acknowledged_can_be_traced(broker, message):
    broker.ack(message)
    trace(broker, message)
    assert len(of_message(broker, message)) == 1


@pytest.mark.parametrize("fields", [
    {"transactionId": None}, {"transactionId": 5}, {"partitionId": None}, {"data": None}, {"data": []}, {"data": "x"},
    {"consumerGroup": 5}, {"eventType": {}}, {"eventType": "x" * 101}, {"traceNames": 5}, {"traceNames": [1]},
    {"traceNames": {}}])
def test_bad_fields_are_400(broker, message, fields):
    assert list(fields)[0] in trace(broker, message, 400, **fields)["error"]
    assert of_message(broker, message) == []


@pytest.mark.parametrize("body", [None, "", "{", "[]", "5"])
def test_bad_bodies_are_400(broker, body):
    assert "error" in broker.post("/api/v1/traces", body).expect(400).json


def test_a_trace_for_an_unknown_message_is_404(broker, message):
    for fields in ({"transactionId": "nobody"}, {"partitionId": str(uuid.uuid4())}, {"partitionId": "rubbish"}):
        assert trace(broker, message, 404, **fields) == {"success": False, "error": "Message not found"}


def test_traces_of_an_unknown_message_are_an_empty_list(broker):
    assert broker.get("/api/v1/traces/%s/x" % uuid.uuid4()).expect(200).json == {"traces": []}
    assert broker.get("/api/v1/traces/rubbish/x").expect(200).json == {"traces": []}


def test_by_name_in_pages_with_the_payload(broker, message, queue):
    name = "audit %s/ü" % queue
    for i in range(3):
        trace(broker, message, traceNames=[name], data={"i": i})
    r = by_name(broker, quote(name, safe=""))
    assert [t["data"]["i"] for t in r["traces"]] == [0, 1, 2]
    assert r["total"] == 3 and r["pagination"] == {"limit": 100, "offset": 0}
    t = r["traces"][0]
    assert (t["transaction_id"], t["partition_id"], t["queue_name"], t["partition_name"], t["message_payload"], t["trace_names"]) == \
        ("inv-41", message["partitionId"], queue, "acct-7", {"no": 41}, [name])
    page = by_name(broker, quote(name, safe=""), "?limit=1&offset=1")
    assert [t["data"]["i"] for t in page["traces"]] == [1] and page["total"] == 3
    assert page["pagination"] == {"limit": 1, "offset": 1}
    assert by_name(broker, quote(name, safe="").replace("%20", "+"))["total"] == 3
    assert by_name(broker, "nobody") == {"traces": [], "total": 0, "pagination": {"limit": 100, "offset": 0}}


def test_names_most_recent_first(broker, message, queue):
    for n in ("a", "b", "a"):
        trace(broker, message, traceNames=[n + queue])
    r = broker.get("/api/v1/traces/names").expect(200).json
    mine = [n for n in r["trace_names"] if n["trace_name"].endswith(queue)]
    assert [(n["trace_name"], n["trace_count"], n["message_count"]) for n in mine] == [("a" + queue, 2, 1), ("b" + queue, 1, 1)]
    assert TS_MS.match(mine[0]["last_seen"]) and r["total"] >= 2 and r["pagination"] == {"limit": 50, "offset": 0}
    alias = next(n for n in r["names"] if n["name"] == "a" + queue)
    assert alias["count"] == 2 and alias["firstSeen"] <= alias["lastSeen"]
    page = broker.get("/api/v1/traces/names?limit=1&offset=1").expect(200).json
    assert len(page["trace_names"]) == 1 and page["trace_names"] == r["trace_names"][1:2]


def test_traces_go_with_the_message_and_with_the_queue(broker, message, queue, sql):
    trace(broker, message, traceNames=["gone-" + queue])
    sql("""delete from queen.segments where lane = (select num from queen.lanes where id = %s)""", message["partitionId"])
    assert by_name(broker, "gone-" + queue)["total"] == 0
    broker.put(queue, [1], partition="q")
    (m,) = broker.take(queue, partition="q")
    trace(broker, m, traceNames=["gone-" + queue])
    broker.request("DELETE", "/api/v1/resources/queues/" + queue).expect(200)
    assert by_name(broker, "gone-" + queue)["total"] == 0
    assert sql("select count(*) from queen.message_traces where partition_id = %s", m["partitionId"]) == [(0,)]
