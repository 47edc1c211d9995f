"""CloudEvents 1.0: in by push, out by pop."""
import base64
import json
from urllib.parse import quote

import pytest

ONE, MANY = "application/cloudevents+json", "application/cloudevents-batch+json"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def event(n=1, **more):
    e = {"specversion": "1.0", "id": "e-%d" % n, "source": "/shop/7", "type": "order.placed", "data": {"n": n}}
    e.update(more)
    return {k: v for k, v in e.items() if v is not ...}


def send(broker, queue, body, kind=ONE, partition=None, **headers):
    path = "/api/v1/push"
    if queue:
        path += "/queue/" + quote(queue, safe="")
    if partition:
        path += "/partition/" + quote(partition, safe="")
    return broker.post(path, body, headers={"Content-Type": kind, **headers})


def events(broker, queue, accept=MANY, **params):
    query = "&".join("%s=%s" % kv for kv in {"batch": 100, **params}.items())
    return broker.get("/api/v1/pop/queue/%s?%s" % (quote(queue, safe=""), query), headers={"Accept": accept})


def own(e):
    """The event without what the pop has added."""
    return {k: v for k, v in e.items() if not k.startswith("queen")}


def test_a_structured_event_goes_in_and_comes_out(broker, queue):
    sent = event(subject="4711", time="2026-02-03T04:05:06Z", dataschema="http://x/y", datacontenttype="application/json",
                 comexampleflag=True, comexamplenumber=7)
    result = send(broker, queue, sent).expect(201).json
    assert len(result) == 1 and result[0]["status"] == "queued" and result[0]["transactionId"] == "/shop/7 e-1"
    r = events(broker, queue, consumerGroup="a").expect(200)
    assert r.headers["content-type"] == MANY
    assert [own(e) for e in r.json] == [sent]
    [plain] = broker.take(queue, consumerGroup="b")
    assert plain["data"] == {"n": 1} and plain["cloudEvent"] == {k: v for k, v in sent.items() if k != "data"}


def test_a_batch_is_stored_whole_in_order(broker, queue):
    sent = [event(i, partitionkey="p-%d" % (i % 2)) for i in range(10)]
    assert [r["status"] for r in send(broker, queue, sent, MANY).expect(201).json] == ["queued"] * 10
    got = events(broker, queue, partitions=10).expect(200).json
    assert sorted(e["id"] for e in got) == sorted(e["id"] for e in sent)
    for p in ("p-0", "p-1"):
        numbers = [e["data"]["n"] for e in got if e["queenpartition"] == p]
        assert numbers == sorted(numbers) and len(numbers) == 5
    assert send(broker, queue, [], MANY).expect(201).json == []


def test_a_repeated_event_is_a_duplicate(broker, queue):
    first = send(broker, queue, event(1)).expect(201).json[0]
    again = send(broker, queue, event(1, data={"other": 1})).expect(201).json[0]
    assert again["status"] == "duplicate" and again["message_id"] == first["message_id"]
    assert send(broker, queue, event(1, source="/shop/8")).expect(201).json[0]["status"] == "queued"
    long = event(1, id="x" * 300)
    assert [send(broker, queue, long).expect(201).json[0]["status"] for _ in range(2)] == ["queued", "duplicate"]
    assert [e["id"] for e in events(broker, queue).json] == ["e-1", "e-1", "x" * 300]


def test_binary_mode_takes_attributes_from_headers(broker, queue):
    h = {"ce-specversion": "1.0", "ce-id": "b-1", "ce-source": "/s", "ce-type": "t", "CE-Subject": "caf%C3%A9 %22x%22"}
    send(broker, queue, b'{"a" : 1.10}', "application/json", **h).expect(201)
    send(broker, queue, b"plain \xc3\xa4", "text/plain; charset=utf-8", **{**h, "ce-id": "b-2"}).expect(201)
    send(broker, queue, b"\x00\xff\x01", "image/png", **{**h, "ce-id": "b-3"}).expect(201)
    send(broker, queue, b"[1]", "application/vnd.x+json", **{**h, "ce-id": "b-4"}).expect(201)
    r = events(broker, queue, consumerGroup="a").expect(200)
    got = {e["id"]: own(e) for e in r.json}
    assert b'{"a" : 1.10}' in r.body  # as it was sent
    assert got["b-1"]["subject"] == 'café "x"' and got["b-1"]["datacontenttype"] == "application/json"
    assert got["b-2"]["data"] == "plain ä" and got["b-2"]["datacontenttype"] == "text/plain; charset=utf-8"
    assert base64.b64decode(got["b-3"]["data_base64"]) == b"\x00\xff\x01" and "data" not in got["b-3"]
    assert got["b-4"]["data"] == [1]
    plain = {m["cloudEvent"]["id"]: m for m in broker.take(queue, batch=10, consumerGroup="b")}
    assert plain["b-3"]["dataEncoding"] == "base64" and "dataEncoding" not in plain["b-1"]


@pytest.mark.parametrize("n", range(0, 8))
def test_binary_data_of_any_length_survives(broker, queue, n):
    data = bytes(range(250, 250 + 6))[:n] if n <= 6 else bytes(range(256)) * 40
    h = {"ce-specversion": "1.0", "ce-id": "b", "ce-source": "/s", "ce-type": "t"}
    send(broker, queue, data, "application/octet-stream", **h).expect(201)
    [e] = events(broker, queue).expect(200).json
    assert base64.b64decode(e.get("data_base64", "")) == data


def test_structured_base64_is_unchanged(broker, queue):
    sent = event(1, data=..., data_base64="AQID")
    send(broker, queue, sent).expect(201)
    assert own(events(broker, queue).json[0]) == sent


def test_the_queue_may_stand_in_the_event(broker, queue):
    sent = [event(1, queue=queue, partitionkey="p"), event(2, queue=queue + "-2")]
    send(broker, None, sent, MANY).expect(201)
    assert [e["queenpartition"] for e in events(broker, queue).json] == ["p"]
    assert [own(e) for e in events(broker, queue + "-2").json] == [sent[1]]
    r = send(broker, None, event(3)).expect(400)
    assert r.json["error"] == "no queue: name it in the path, or in the attribute queue"
    h = {"ce-specversion": "1.0", "ce-id": "b", "ce-source": "/s", "ce-type": "t", "ce-queue": queue}
    send(broker, None, b"1", "application/json", **h).expect(201)


def test_the_path_wins_over_the_attributes(broker, queue):
    send(broker, queue, event(1, queue="elsewhere", partitionkey="x"), partition="a b/c").expect(201)
    [e] = events(broker, queue).json
    assert (e["queenqueue"], e["queenpartition"]) == (queue, "a b/c")


def test_a_single_event_on_request(broker, queue):
    send(broker, queue, [event(1), event(2)], MANY).expect(201)
    r = events(broker, queue, ONE, batch=1).expect(200)
    assert r.headers["content-type"] == ONE and own(r.json) == event(1)
    r = events(broker, queue, ONE, batch=2).expect(406)
    assert MANY in r.json["error"]
    assert events(broker, queue, ONE, batch=1, wait="false").status == 204  # the first is still leased


def test_attributes_added_by_a_pop_suffice_to_acknowledge(broker, queue, group):
    send(broker, queue, event(1)).expect(201)
    [e] = events(broker, queue, consumerGroup=group).json
    [r] = broker.post("/api/v1/ack", {"transactionId": e["queentransactionid"], "partitionId": e["queenpartitionid"],
                                      "leaseId": e["queenleaseid"], "consumerGroup": e["queengroup"]}).expect(200).json
    assert r["success"] and r["leaseReleased"] and e["queenretrycount"] == 0
    assert events(broker, queue, consumerGroup=group).status == 204


def test_an_event_may_be_passed_on_as_it_was_popped(broker, queue):
    send(broker, queue, event(1)).expect(201)
    [e] = events(broker, queue).json
    send(broker, queue + "-next", e).expect(201)
    [f] = events(broker, queue + "-next").json
    assert own(f) == own(e) and f["queenqueue"] == queue + "-next"


def test_plain_messages_become_events(broker):
    queue = "ce plain/ä"
    [sent] = broker.put(queue, [{"a": 1}], ids=[None])
    [e] = events(broker, queue, autoAck="true").expect(200).json
    assert (e["specversion"], e["id"], e["type"], e["data"]) == ("1.0", sent["message_id"], "queen.message", {"a": 1})
    assert e["source"] == "/queues/ce%20plain%2F%C3%A4" and "queenleaseid" not in e
    assert e["queentransactionid"] == sent["transactionId"]


def test_the_tracing_extension_is_the_trace_context_of_the_message(broker, queue):
    send(broker, queue, [event(1, traceparent=PARENT, tracestate="a=1"), event(2)], MANY, traceparent=PARENT[:-1] + "0").expect(201)
    got = {m["data"]["n"]: m for m in broker.take(queue, batch=10, consumerGroup="a")}
    assert (got[1]["traceparent"], got[1]["tracestate"]) == (PARENT, "a=1")
    assert got[2]["traceparent"] == PARENT[:-1] + "0"
    r = events(broker, queue, consumerGroup="b")
    assert [e["traceparent"] for e in r.json] == [PARENT, PARENT[:-1] + "0"]
    assert r.body.count(b'"traceparent"') == 2


@pytest.mark.parametrize("body,text", [
    (event(1, specversion="0.3"), "specversion must be 1.0"),
    (event(1, id=...), "attribute id is missing"),
    (event(1, source=""), "attribute source is missing"),
    (event(1, type=None), "attribute type is missing"),
    (event(1, id=7), "id must be a string"),
    (event(1, source="a b"), "source must be a URI reference"),
    (event(1, Upper="x"), "the name of an attribute must be of lower-case letters and digits"),
    (event(1, deep={}), "attribute deep must be a string, number or boolean"),
    (event(1, data_base64=1), "data_base64 must be a string"),
    (event(1, partitionkey="x" * 256), "partition must be at most 255 characters of UTF-8 without NUL"),
    (event(1, long="x" * 66000), "the attributes are longer than 65535 bytes"),
    ([], "the body must be an object")])
def test_invalid_events_are_rejected(broker, queue, body, text):
    assert send(broker, queue, body).expect(400).json["error"] == text
    if isinstance(body, dict):
        assert send(broker, queue, [event(0), body], MANY).expect(400).json["error"] == "event 1: " + text
    assert broker.take(queue) == []


def test_other_bodies_are_refused(broker, queue):
    assert send(broker, queue, "{").expect(400).json["error"].startswith("Invalid JSON at byte")
    assert send(broker, queue, event(1), MANY).expect(400).json["error"] == "the body must be an array"
    assert "no CloudEvent" in send(broker, queue, {"a": 1}, "application/json").expect(415).json["error"]
    h = {"ce-specversion": "1.0", "ce-id": "b", "ce-source": "/s", "ce-type": "t"}
    assert send(broker, queue, b"{", "application/json", **h).expect(400).json["error"].startswith("Invalid JSON")
    assert send(broker, queue, b"1", "application/json", **{**h, "ce-x": "%ff"}).status == 400
    assert broker.take(queue) == []


def test_a_push_of_items_is_not_mistaken_for_an_event(broker, queue):
    broker.post("/api/v1/push", {"items": [{"queue": queue, "payload": 1}]}, headers={"Content-Type": "text/plain"}).expect(201)
    r = broker.get("/api/v1/pop/queue/" + queue, headers={"Accept": "text/html, */*"}).expect(200)
    assert r.json["messages"][0]["data"] == 1 and "cloudEvent" not in json.dumps(r.json)


# --- for later ----------------------------------------------------------------------------------------------------------

def waiting(broker, queue):
    return broker.get("/api/v1/scheduled?queue=" + queue).expect(200).json["scheduled"]


def test_an_event_may_wait_for_its_time(broker, queue):
    sent = [event(1, scheduledat="2031-01-31T08:00:00+01:00"), event(2), event(3, delayseconds=3600), event(4, delayseconds="0.5")]
    results = send(broker, queue, sent, MANY).expect(201).json
    assert [r["status"] for r in results] == ["scheduled", "queued", "scheduled", "scheduled"]
    assert results[0]["scheduledAt"] == "2031-01-31T07:00:00.000Z"
    assert send(broker, queue, event(1)).expect(201).json[0]["status"] == "duplicate"
    got = events(broker, queue, autoAck="true").expect(200).json
    while len(got) < 2:
        r = events(broker, queue, autoAck="true", wait="true", timeout=10000)
        got += r.json if r.status == 200 else []
    # The delivery time is an instruction to the broker and not part of the event.
    assert [own(e) for e in got] == [event(2), event(4)]
    assert sorted(w["transactionId"] for w in waiting(broker, queue)) == ["/shop/7 e-1", "/shop/7 e-3"]
    broker.request("DELETE", "/api/v1/scheduled?queue=" + queue).expect(200)


def test_headers_schedule_events_in_binary_mode(broker, queue):
    head = {"ce-specversion": "1.0", "ce-id": "b", "ce-source": "/s", "ce-type": "t", "ce-delayseconds": "7200"}
    [r] = send(broker, queue, {"x": 1}, "application/json", **head).expect(201).json
    assert r["status"] == "scheduled" and [w["id"] for w in waiting(broker, queue)] == [r["scheduleId"]]
    broker.request("DELETE", "/api/v1/scheduled?queue=" + queue).expect(200)


@pytest.mark.parametrize("more, word", [
    ({"scheduledat": "tomorrow"}, "scheduledAt"), ({"scheduledat": 5}, "scheduledAt"), ({"scheduledat": "2999-01-01T00:00:00Z"}, "10 years"),
    ({"delayseconds": -1}, "delaySeconds"), ({"delayseconds": "soon"}, "delaySeconds"), ({"delayseconds": True}, "delaySeconds"),
    ({"delayseconds": 1, "scheduledat": "2030-01-01T00:00:00Z"}, "exclude")])
def test_a_time_that_cannot_be_is_refused_and_nothing_is_stored(broker, queue, more, word):
    error = send(broker, queue, [event(1), event(2, **more)], MANY).expect(400).json["error"]
    assert word in error and "event 1" in error
    assert events(broker, queue).status == 204 and waiting(broker, queue) == []


def test_an_event_is_found_by_its_correlation(broker, queue):
    send(broker, queue, event(1, correlationid="case " + queue)).expect(201)
    send(broker, queue, event(2, correlationid="x" * 256)).expect(400)
    t = broker.get("/api/v1/messages/timeline?correlationId=case%20" + queue).expect(200).json
    assert [m["transactionId"] for m in t["messages"]] == ["/shop/7 e-1"] and t["correlationId"] == "case " + queue
    [e] = events(broker, queue).expect(200).json
    assert e["correlationid"] == "case " + queue
