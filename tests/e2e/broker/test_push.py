"""POST /api/v1/push: http-api section 3, semantics 2-4, decisions.md (deduplication has a file of its own)."""
import json
import re
import uuid

import pytest

from harness import in_parallel, is_uuid, uuid7


def raw_push(broker, queue, *payloads):
    items = b",".join(b'{"queue":"%s","payload":%s}' % (queue.encode(), p) for p in payloads)
    return broker.post("/api/v1/push", b'{"items":[' + items + b"]}")


def stored(broker, queue):
    return [m["data"] for m in broker.drain(queue)]


def test_a_queued_item_is_answered_with_every_key(broker, queue):
    trace = str(uuid.uuid4())
    r = broker.push([{"queue": queue, "partition": "p", "payload": {"a": 1}, "transactionId": "tx-1", "traceId": trace}])
    r.expect(201)
    assert r.headers["content-type"].startswith("application/json")
    (result,) = r.json
    assert result["index"] == 0
    assert result["status"] == "queued"
    assert result["transaction_id"] == "tx-1"
    assert is_uuid(result["message_id"]) and is_uuid(result["partition_id"])
    assert result["trace_id"] == trace
    assert result["queueName"] == queue


def test_without_a_trace_id_it_is_null(broker, queue):
    (result,) = broker.push([{"queue": queue}]).expect(201).json
    assert "trace_id" in result and result["trace_id"] is None


def test_an_empty_list_of_items_is_answered_with_an_empty_array(broker):
    r = broker.push([]).expect(201)
    assert r.json == []


def test_results_come_in_request_order(broker, queue):
    items = [{"queue": queue, "partition": "p%d" % (i * 7 % 5), "payload": i, "transactionId": "t%d" % i}
             for i in range(40)]
    results = broker.push(items).expect(201).json
    assert [r["index"] for r in results] == list(range(40))
    assert [r["transaction_id"] for r in results] == ["t%d" % i for i in range(40)]


def test_one_request_may_feed_many_queues_and_partitions(broker, queue):
    items = [{"queue": queue + str(i % 3), "partition": "p%d" % (i % 4), "payload": i} for i in range(24)]
    results = broker.push(items).expect(201).json
    assert [r["queueName"] for r in results] == [i["queue"] for i in items]
    assert len({r["partition_id"] for r in results}) == 12
    for q in range(3):
        assert sorted(stored(broker, queue + str(q))) == [i for i in range(24) if i % 3 == q]


@pytest.mark.parametrize("partition", [None, "", "Default"])
def test_no_partition_means_default(broker, queue, partition):
    broker.push([{"queue": queue, "partition": partition, "payload": 1}]).expect(201)
    (message,) = broker.take(queue)
    assert message["partition"] == "Default"


def test_nulls_count_as_absent(broker, queue):
    item = {"queue": queue, "partition": None, "payload": None, "transactionId": None, "traceId": None}
    (result,) = broker.push([item]).expect(201).json
    assert result["status"] == "queued" and result["transaction_id"]
    (message,) = broker.take(queue)
    assert message["data"] is None and message["traceId"] is None


@pytest.mark.parametrize("field", ["transactionId", "traceId"])
def test_an_empty_string_counts_as_absent(broker, queue, field):
    results = broker.push([{"queue": queue, field: ""}, {"queue": queue, field: ""}]).expect(201).json
    assert [r["status"] for r in results] == ["queued", "queued"]
    assert is_uuid(results[0]["transaction_id"])
    assert results[0]["transaction_id"] != results[1]["transaction_id"]
    assert results[0]["trace_id"] is None


def test_fields_a_client_may_not_set_are_ignored(broker, queue, sql):
    mine = str(uuid.uuid4())
    (result,) = broker.push([{"queue": queue, "payload": 1, "producerSub": "me", "namespace": "n", "task": "t",
                              "messageId": mine, "is_encrypted": True, "data": 2, "what": "ever"}]).expect(201).json
    assert result["message_id"] != mine
    (message,) = broker.take(queue)
    assert message["producerSub"] is None and message["data"] == 1
    assert sql("select namespace, task from queen.queues where name = %s", queue) == [(queue, "")]


def test_request_level_buffering_parameters_are_ignored(broker, queue):
    r = broker.post("/api/v1/push", {"items": [{"queue": queue, "payload": 1}], "bufferMs": 5000, "bufferMax": 100})
    assert r.expect(201).json[0]["status"] == "queued"
    assert stored(broker, queue) == [1]


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/plain"}, {"Content-Type": "application/json; charset=utf-8"}])
def test_the_content_type_is_not_checked(broker, queue, headers):
    assert broker.push([{"queue": queue}], headers=headers).status == 201


# --- payloads ------------------------------------------------------------------------------------------------------

PAYLOADS = [b"null", b"{}", b"[]", b"true", b"false", b"0", b"-0", b"1.10", b"1e5", b"1E+05", b"-1.50e-3", b'""', b'"text"',
            b"12345678901234567890123456789", b"0.1000000000000000055511151231257827", b"1e400",
            b'{"b":1,"a":2}', b'{"a":1,"a":2}', b'{ "a" :\t[ 1 ,\n 2 ] }', b'["\\u00e9","\xc3\xa9","\\/","\\n"]',
            b'"\\ud83d\\ude00"', '"😀 ünï"'.encode(), b'{"":{"":[[],{}]}}', b"[" * 200 + b"]" * 200,
            b'"' + b"\\\\" * 50 + b'"', b'{"encrypted":"eA==","iv":"eA==","authTag":"eA=="}']


@pytest.mark.parametrize("payload", PAYLOADS, ids=[p.decode()[:30] for p in PAYLOADS])
def test_a_payload_comes_back_byte_for_byte(broker, queue, payload):
    raw_push(broker, queue, payload).expect(201)
    body = broker.pop(queue, autoAck=True).expect(200).body
    found = re.search(rb'"data"\s*:\s*', body)
    assert body[found.end():].startswith(payload), body


def test_many_payloads_of_one_request_come_back_byte_for_byte(broker, queue):
    raw_push(broker, queue, *PAYLOADS).expect(201)
    body = broker.pop(queue, batch=100, autoAck=True).expect(200).body
    at = 0
    for payload in PAYLOADS:
        found = re.compile(rb'"data"\s*:\s*').search(body, at)
        assert body[found.end():].startswith(payload)
        at = found.end() + len(payload)


def test_an_absent_payload_is_null(broker, queue):
    broker.push([{"queue": queue}]).expect(201)
    assert stored(broker, queue) == [None]


def test_a_payload_of_a_megabyte_round_trips(broker, queue):
    payload = [{"id": i, "text": "x" * 80} for i in range(10000)]
    broker.put(queue, [payload])
    assert stored(broker, queue) == [payload]


def test_a_body_of_several_megabytes_round_trips_in_order(broker, queue):
    broker.put(queue, [{"n": i, "fill": "y" * 5000} for i in range(1000)])
    assert [d["n"] for d in stored(broker, queue)] == list(range(1000))


def test_a_chunked_body_is_accepted(broker, queue):
    body = json.dumps({"items": [{"queue": queue, "payload": i} for i in range(10)]}).encode()
    pieces = [body[i:i + 37] for i in range(0, len(body), 37)]
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"
    import socket
    with socket.create_connection((broker.host, broker.port), timeout=10) as s:
        s.sendall(b"POST /api/v1/push HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked)
        assert s.recv(65536).startswith(b"HTTP/1.1 201")
    assert stored(broker, queue) == list(range(10))


# --- refused requests -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("body", [
    b"", b"{", b"nonsense", b'{"items":[}', b"[]", b"null", b"7", b"{}", b'{"items":null}', b'{"items":{}}', b'{"items":"a"}',
    b'{"items":[5]}', b'{"items":[null]}', b'{"items":[[]]}', b'{"items":[{}]}', b'{"items":[]} x', b'{"items":[{"queue":"a",}]}',
    b'{"items":[{"queue":null}]}', b"{'items':[]}"])
def test_a_malformed_request_is_refused_with_an_error_text(broker, body):
    r = broker.post("/api/v1/push", body).expect(400)
    assert isinstance(r.json["error"], str) and r.json["error"]


@pytest.mark.parametrize("bad", [
    {"queue": 5}, {"queue": None}, {}, {"queue": ["a"]}, {"partition": 5}, {"partition": {}}, {"transactionId": 5},
    {"transactionId": True}, {"traceId": 5}, {"traceId": "not-a-uuid"}, {"traceId": "123"}, {"partition": "x" * 256},
    {"transactionId": "x" * 256}, {"queue": "x" * 256}], ids=str)
def test_one_bad_item_refuses_the_request_and_stores_nothing(broker, queue, bad):
    good = {"queue": queue, "payload": 1}
    item = bad if "queue" in bad or not bad else {"queue": queue, **bad}
    r = broker.push([good, good, item, good]).expect(400)
    assert re.search(r"\b2\b", r.json["error"]), "the text names the item: %s" % r.json["error"]
    assert broker.take(queue) == []


BAD_PAYLOADS = {
    "nul": b'"a\\u0000b"', "nul in a key": b'{"a\\u0000":1}', "nul deep inside": b'[1,{"x":["\\u0000"]}]',
    "lone high surrogate": b'"\\ud800"', "lone low surrogate": b'"\\udc00"', "high surrogate before text": b'"\\ud800x"',
    "two high surrogates": b'"\\ud800\\ud800"', "lone surrogate in a key": b'{"\\udfff":1}',
    "invalid utf-8": b'"\xff"', "overlong utf-8": b'"\xc0\x80"', "utf-8 surrogate": b'"\xed\xa0\x80"',
    "cut utf-8": b'"\xe2\x82"', "beyond unicode": b'"\xf4\x90\x80\x80"',
    "nesting": b"[" * 300 + b"]" * 300, "nesting of objects": b'{"a":' * 300 + b"1" + b"}" * 300,
    "deepest nesting": b"[" * 100000 + b"]" * 100000,
    "huge exponent": b"1e200000", "tiny exponent": b"1e-20000", "huge exponent deep inside": b'{"a":[-1E+999999999]}', "endless exponent": b"1e" + b"9" * 40,
}


@pytest.mark.parametrize("name", list(BAD_PAYLOADS))
def test_a_payload_that_jsonb_refuses_is_refused_by_item_and_nothing_is_stored(broker, queue, name):
    r = raw_push(broker, queue, b"1", b"2", BAD_PAYLOADS[name], b"4").expect(400)
    assert re.search(r"\b2\b", r.json["error"]), "the text names the item: %s" % r.json["error"]
    assert broker.take(queue) == []


@pytest.mark.parametrize("text", [b"01", b"+1", b".5", b"1.", b"0x10", b"NaN", b"Infinity", b"tru", b"'a'", b'"a\nb"', b'"\\x"',
                                  b'"\\u12"', b"[1,]", b'{"a":1,}', b'{a:1}', b'{"a"}', b"[1 2]", b'"open', b"\xef\xbb\xbf1"])
def test_a_payload_that_is_not_json_is_refused(broker, queue, text):
    raw_push(broker, queue, b"1", text).expect(400)
    assert broker.take(queue) == []


@pytest.mark.parametrize("field", ["queue", "partition", "transactionId"])
@pytest.mark.parametrize("text", [b"a\\u0000b", b"\\ud800", b"\xff\xfe"])
def test_a_name_that_postgresql_cannot_hold_is_refused(broker, queue, field, text):
    fields = {"queue": queue.encode(), "partition": b"p", "transactionId": b"t"}
    fields[field] = text
    item = b",".join(b'"%s":"%s"' % (k.encode(), v) for k, v in fields.items())
    broker.post("/api/v1/push", b'{"items":[{"queue":"%s"},{%s}]}' % (queue.encode(), item)).expect(400)
    assert broker.take(queue) == []


def test_a_bad_request_leaves_its_neighbours_in_the_micro_batch_alone(broker, queue):
    bad = list(BAD_PAYLOADS.values())

    def call(i):
        payload = bad[i % len(bad)] if i % 3 == 0 else b'"%d"' % i
        return lambda: raw_push(broker, queue, payload).status
    for _ in range(3):
        statuses = in_parallel(call(i) for i in range(24))
        assert statuses == [400 if i % 3 == 0 else 201 for i in range(24)]
    assert sorted(stored(broker, queue)) == sorted(str(i) for i in range(24) if i % 3 for _ in range(3))


def test_the_last_of_two_equal_keys_in_an_item_wins(broker, queue):
    body = '{"items":[{"queue":"wrong-%s","queue":"%s","payload":1,"payload":2}]}' % (queue, queue)
    broker.post("/api/v1/push", body).expect(201)
    assert stored(broker, queue) == [2]


def test_escaped_keys_and_names_are_understood(broker, queue):
    broker.post("/api/v1/push", '{"\\u0069tems":[{"\\u0071ueue":"%s","payload":1}]}'
                % queue.replace("t", "\\u0074")).expect(201)
    assert stored(broker, queue) == [1]


# --- visibility, order and identifiers -----------------------------------------------------------------------------

def test_a_push_is_seen_by_the_very_next_wildcard_pop(broker, broker2, queue):
    for i in range(30):
        broker.put(queue, [i], partition="p%d" % i)
        (message,) = (broker if i % 2 else broker2).take(queue, autoAck=True)
        assert message["data"] == i


def test_items_of_one_request_and_of_successive_requests_keep_their_order(broker, queue):
    n = 0
    for size in (1, 5, 1, 200, 3):
        broker.put(queue, list(range(n, n + size)), partition="p")
        n += size
    assert stored(broker, queue) == list(range(n))


def test_ids_rise_as_text_and_agree_with_created_at(broker, queue):
    answered = []
    for _ in range(3):
        answered += [r["message_id"] for r in broker.put(queue, list(range(6000)))]
    messages = broker.drain(queue, batch=10000)
    ids = [m["id"] for m in messages]
    assert ids == answered
    assert all(a < b for a, b in zip(ids, ids[1:]))
    created = [m["createdAt"] for m in messages]
    assert all(a <= b for a, b in zip(created, created[1:]))
    # the stream runners of the official clients sort again, by millisecond and then by id
    assert sorted(messages, key=lambda m: (m["createdAt"][:23], m["id"])) == messages
    assert all(uuid.UUID(i).version == 7 for i in ids[:10])


def test_a_transaction_id_of_255_characters_is_kept(broker, queue):
    ids = ["x" * 255, "ж" * 255, " lead and trail ", "\"quoted\"\\", "日本"]
    broker.put(queue, ids, ids=ids)
    assert [m["transactionId"] for m in broker.drain(queue)] == ids


@pytest.mark.parametrize("partition", ["with space", "a/b", "ünï", "per%cent", "q?x=1&y#z", "Ж" * 255, "plus+plus"])
def test_odd_partition_names_are_kept_and_can_be_popped(broker, queue, partition):
    broker.put(queue, [1], partition=partition)
    (message,) = broker.take(queue, partition)
    assert message["partition"] == partition


def test_the_partition_id_stays_the_same(broker, broker2, queue):
    ids = {r["partition_id"] for b in (broker, broker2, broker) for r in b.put(queue, [1, 2], partition="p")}
    assert len(ids) == 1
    assert {m["partitionId"] for m in broker.drain(queue)} == ids


def test_uuid7_transaction_ids_come_back_as_sent(broker, queue):
    ids = [uuid7(), uuid7().upper(), uuid7().replace("-", ""), "{%s}" % uuid7(), str(uuid.uuid4()), str(uuid.uuid1())]
    results = broker.put(queue, ids, ids=ids)
    assert [r["transaction_id"] for r in results] == ids
    assert [m["transactionId"] for m in broker.drain(queue)] == ids
