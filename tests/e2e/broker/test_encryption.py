"""Encryption at rest: stored payloads, delivered payloads, and changes of keys and options."""
import contextlib
import json
import threading
import pathlib
import uuid

import pytest

import harness
from harness import wait_until
from test_api_keys import Guarded, init

KEY = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
OTHER = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
SECRET = {"card": "4000-0000-0000-0002", "nested": [1, {"deep": "grün"}], "n": 1.10}


@pytest.fixture(scope="module")
def sealing(pg, broker):
    """A broker with a key, on the database of the session."""
    b = harness.begin({**pg.env(), "SIDECAR_POOL_SIZE": "4", "QUEEN_ENCRYPTION_KEY": "first:" + KEY})
    yield b
    harness.end(b, clean_exit=True)


def stored(sql, queue):
    """(payload, is_encrypted) of every message as SQL sees it, in order."""
    return sql("select m.payload, m.is_encrypted from queen.messages m join queen.partitions p on p.id = m.partition_id "
               "join queen.queues q on q.id = p.queue_id where q.name = %s order by m.id", queue)


def bodies(sql, queue):
    return b"".join(bytes(r[0]) for r in sql(
        "select s.body from queen.segments s join queen.lanes l on l.num = s.lane join queen.queues q on q.id = l.queue_id "
        "where q.name = %s", queue))


def test_a_payload_is_ciphertext_in_the_table_and_itself_in_a_pop(sealing, queue, sql):
    sealing.configure(queue, encryptionEnabled=True)
    sealing.put(queue, [SECRET, None, "x"], partition="a")
    rows = stored(sql, queue)
    assert [r[1] for r in rows] == [True] * 3
    assert set(rows[0][0]) == {"encrypted", "iv", "authTag", "keyId"} and rows[0][0]["keyId"] == "first"
    assert b"4000-0000" not in bodies(sql, queue)
    assert len({r[0]["iv"] for r in rows}) == 3
    assert [m["data"] for m in sealing.take(queue, batch=10)] == [SECRET, None, "x"]


def test_the_bytes_of_a_payload_are_kept(sealing, queue):
    sealing.configure(queue, encryptionEnabled=True)
    text = '{"b" : 1.10, "a":[ 1e2 ],"b":2}'
    sealing.post("/api/v1/push", '{"items":[{"queue":"%s","payload":%s}]}' % (queue, text)).expect(201)
    assert '"data":%s,' % text in sealing.pop(queue).expect(200).text


def test_a_queue_without_the_option_is_stored_in_clear(sealing, queue, sql):
    sealing.put(queue, [SECRET])
    assert stored(sql, queue) == [(SECRET, False)]


def test_an_object_that_only_looks_encrypted_is_unchanged(sealing, queue):
    look = {"encrypted": "AAAA", "iv": "AAAA", "authTag": "AAAA"}
    sealing.put(queue, [look])
    assert sealing.take(queue)[0]["data"] == look


def test_switching_the_option_counts_for_later_messages_at_once(sealing, queue, sql):
    sealing.put(queue, ["clear 1"])
    for enabled, payload in ((True, "sealed 2"), (False, "clear 3"), (True, "sealed 4")):
        sealing.configure(queue, encryptionEnabled=enabled)
        sealing.put(queue, [payload])
    assert [r[1] for r in stored(sql, queue)] == [False, True, False, True]
    assert [m["data"] for m in sealing.take(queue, batch=10)] == ["clear 1", "sealed 2", "clear 3", "sealed 4"]


def test_another_broker_cannot_store_plaintext_after_the_option_was_switched_on(sealing, make_broker, queue, sql):
    other = make_broker(QUEEN_ENCRYPTION_KEY="first:" + KEY)
    other.put(queue, ["clear"])  # has cached the queue as unencrypted
    sealing.configure(queue, encryptionEnabled=True)
    other.put(queue, ["sealed"])
    other.transaction([{"type": "push", "items": [{"queue": queue, "payload": "sealed too"}]}])
    assert [r[1] for r in stored(sql, queue)] == [False, True, True]
    assert [m["data"] for m in sealing.take(queue, batch=10)] == ["clear", "sealed", "sealed too"]


def test_another_broker_notices_before_long_that_it_was_switched_off(sealing, make_broker, queue, sql):
    other = make_broker(QUEEN_ENCRYPTION_KEY="first:" + KEY, QUEEN_CACHE_REFRESH_INTERVAL_MS=200)
    sealing.configure(queue, encryptionEnabled=True)
    other.put(queue, [0])
    sealing.configure(queue, encryptionEnabled=False)
    wait_until(lambda: other.put(queue, [1]) and not stored(sql, queue)[-1][1], 10, "stored in clear", 0.1)


def test_a_transaction_encrypts_its_pushes(sealing, queue, sql):
    sealing.configure(queue, encryptionEnabled=True)
    r = sealing.transaction([{"type": "push", "items": [{"queue": queue, "payload": SECRET},
                                                        {"queue": queue + "-clear", "payload": 7}]}])
    assert r["success"], r
    assert stored(sql, queue)[0][1] and b"4000-0000" not in bodies(sql, queue)
    assert stored(sql, queue + "-clear") == [(7, False)]
    assert sealing.take(queue)[0]["data"] == SECRET


def test_partitions_created_later_are_sealed_too(sealing, queue, sql):
    sealing.configure(queue, encryptionEnabled=True)
    items = [{"queue": queue, "partition": "p%d" % i, "payload": i} for i in range(20)]
    assert {r["status"] for r in sealing.push(items).expect(201).json} == {"queued"}
    assert all(r[1] for r in stored(sql, queue))
    assert sorted(m["data"] for m in sealing.drain(queue)) == list(range(20))


def test_one_request_may_go_to_both_kinds(sealing, queue, sql):
    sealing.configure(queue, encryptionEnabled=True)
    sealing.push([{"queue": queue, "payload": 1}, {"queue": queue + "x", "payload": 2}]).expect(201)
    assert stored(sql, queue)[0][1] and stored(sql, queue + "x") == [(2, False)]


def test_duplicates_and_limits_work_on_sealed_queues(sealing, queue, sql):
    sealing.configure(queue, encryptionEnabled=True, maxSize=3)
    ids = [str(uuid.uuid4()), "plain-id"]
    first = sealing.put(queue, ["a", "b"], ids=ids)
    again = sealing.push([{"queue": queue, "payload": "c", "transactionId": i} for i in ids]).expect(201).json
    assert [(r["status"], r["message_id"]) for r in again] == [("duplicate", f["message_id"]) for f in first]
    sealing.push([{"queue": queue, "payload": i} for i in range(2)]).expect(429)
    assert [r[1] for r in stored(sql, queue)] == [True, True]


def test_a_large_payload_comes_back(sealing, queue):
    sealing.configure(queue, encryptionEnabled=True)
    big = {"text": "x" * 2000000}
    sealing.put(queue, [big, 1, big])
    assert [m["data"] for m in sealing.take(queue, batch=10)] == [big, 1, big]


def test_keys_are_rotated_over_restarts(make_broker, queue, sql):
    old = make_broker(QUEEN_ENCRYPTION_KEY=KEY)  # a bare key, with an id of its own
    old.configure(queue, encryptionEnabled=True)
    old.put(queue, ["under the old key"])
    old.terminate()

    both = make_broker(QUEEN_ENCRYPTION_KEY="new:%s,%s" % (OTHER, KEY))
    both.put(queue, ["under the new key"])
    ids = [r[0]["keyId"] for r in stored(sql, queue)]
    assert ids[1] == "new" and ids[0] != "new"
    assert [m["data"] for m in both.take(queue, batch=10, consumerGroup="a")] == ["under the old key", "under the new key"]
    both.terminate()

    new = make_broker(QUEEN_ENCRYPTION_KEY="new:" + OTHER)
    got = [m["data"] for m in new.take(queue, batch=10, consumerGroup="b")]
    assert got[1] == "under the new key"
    assert set(got[0]) == {"encrypted", "iv", "authTag", "keyId"}, "passed through as it is stored"
    assert "seal.unread" in new.log_text()


def test_without_a_key_payloads_are_unencrypted_and_logged_once(make_broker, queue, sql):
    b = make_broker(NUM_WORKERS=1)
    b.configure(queue, encryptionEnabled=True)
    b.put(queue, [SECRET])
    b.put(queue, [SECRET], partition="other")
    r = b.transaction([{"type": "push", "items": [{"queue": queue, "payload": SECRET}]}])
    assert r["success"], r
    assert stored(sql, queue) == [(SECRET, False)] * 3
    assert [m["data"] for m in b.drain(queue)] == [SECRET] * 3
    assert b.log_text().count("seal.no_key") == 1 and queue in b.log_text()


def test_a_protected_broker_without_a_key_refuses_messages_of_encrypted_queues(pg, make_broker, queue, tmp_path):
    """Unless the queue has allowUnencrypted. Nothing of a refused request is stored."""
    path, key = init(tmp_path)
    database = pg.create_database("no_key_" + uuid.uuid4().hex[:8])
    b = make_broker(database=database, QUEEN_ADMIN_KEY_FILE=path, FILE_BUFFER_DIR=str(tmp_path / "buffer"), NUM_WORKERS=1)
    g = Guarded(b, key)

    def send(method, path, body=None):
        return g.call(g.admin, method, path, body)
    lax, plain = queue + "-lax", queue + "-plain"
    send("POST", "/api/v1/configure", {"queue": queue, "options": {"encryptionEnabled": True}}).expect(200)
    r = send("POST", "/api/v1/configure", {"queue": lax, "options": {"encryptionEnabled": True, "allowUnencrypted": True}}).expect(200)
    assert r.json["options"]["allowUnencrypted"] is True
    for _ in range(2):
        r = send("POST", "/api/v1/push", {"items": [{"queue": queue, "payload": 1}]}).expect(503)
        assert queue in r.json["error"] and "QUEEN_ENCRYPTION_KEY" in r.json["error"]
        send("POST", "/api/v1/push", {"items": [{"queue": queue, "payload": 1, "delaySeconds": 60}]}).expect(503)
        send("POST", "/api/v1/push", {"items": [{"queue": queue, "payload": 1}, {"queue": queue, "payload": 1, "delaySeconds": 60}]}).expect(503)
    for operations in [[{"type": "push", "queue": queue, "payload": 1}],
                       [{"type": "push", "queue": plain, "payload": 1}, {"type": "push", "queue": queue, "payload": 1, "delaySeconds": 60}]]:
        r = send("POST", "/api/v1/transaction", {"operations": operations}).expect(200)
        assert r.json["success"] is False and "QUEEN_ENCRYPTION_KEY" in r.text, r.text
    schedule = {"name": queue, "queue": queue, "cron": "@yearly", "payload": 1}
    assert "QUEEN_ENCRYPTION_KEY" in send("POST", "/api/v1/schedules", schedule).expect(400).json["error"]
    made = send("POST", "/api/v1/schedules", {**schedule, "queue": lax}).expect(201).json
    send("PATCH", "/api/v1/schedules/" + made["id"], {"queue": queue}).expect(400)
    for item in [{"queue": lax, "payload": 1}, {"queue": plain, "payload": 1}, {"queue": lax, "payload": 1, "delaySeconds": 60}]:
        send("POST", "/api/v1/push", {"items": [item]}).expect(201)
    send("POST", "/api/v1/transaction", {"operations": [{"type": "push", "queue": lax, "payload": 2}]}).expect(200)
    assert send("GET", "/api/v1/pop/queue/%s" % queue).status == 204
    assert send("GET", "/api/v1/scheduled/count?queue=%s" % queue).expect(200).json["count"] == 0
    assert [m["data"] for m in send("GET", "/api/v1/pop/queue/%s?batch=10" % lax).json["messages"]] == [1, 2]
    # The option is taken back: messages that the broker would otherwise mark are refused as well.
    send("POST", "/api/v1/configure", {"queue": lax, "options": {"encryptionEnabled": True}}).expect(200)
    send("POST", "/api/v1/push", {"items": [{"queue": lax, "payload": 1}]}).expect(503)
    assert b.log_text().count("seal.no_key") == 2 and "refused" in b.log_text()
    # The buffered messages wait, and a broker with the key stores it encrypted.
    send("POST", "/api/v1/system/maintenance", {"enabled": True}).expect(200)
    for q in (queue, plain):
        assert send("POST", "/api/v1/push", {"items": [{"queue": q, "payload": 7}]}).expect(201).json[0]["status"] == "buffered"
    send("POST", "/api/v1/system/maintenance", {"enabled": False}).expect(200)
    wait_until(lambda: send("GET", "/api/v1/pop/queue/%s?batch=10&consumerGroup=g" % plain).status == 200, 60, "the other queue drained")
    b.terminate()
    c = make_broker(database=database, QUEEN_ADMIN_KEY_FILE=path, QUEEN_ENCRYPTION_KEY=KEY, FILE_BUFFER_DIR=str(tmp_path / "buffer"))
    got = Guarded(c, key).call(key, path="/api/v1/pop/queue/%s?wait=true&timeout=60000&consumerGroup=g" % queue).expect(200).json["messages"]
    assert [m["data"] for m in got] == [7]
    with pg.connect(database=database) as db, db.cursor() as cur:
        cur.execute("select distinct m.is_encrypted from queen.messages m join queen.partitions p on p.id = m.partition_id "
                    "join queen.queues q on q.id = p.queue_id where q.name = %s", (queue,))
        assert cur.fetchall() == [(True,)]


@pytest.fixture(scope="module")
def protected(pg, tmp_path_factory):
    """A broker with a key and authentication."""
    path, key = init(tmp_path_factory.mktemp("bound"))
    database = pg.create_database("bound_" + uuid.uuid4().hex[:8])
    b = harness.begin({**pg.env(database), "SIDECAR_POOL_SIZE": "4", "QUEEN_ADMIN_KEY_FILE": path, "QUEEN_ENCRYPTION_KEY": KEY})
    g = Guarded(b, key)
    g.database = database
    yield g
    harness.end(b, clean_exit=True)


def test_payloads_do_not_open_in_other_messages(protected, pg, queue):
    """Whoever can write to the database swaps two payloads, or takes the binding away."""
    def call(method, path, body=None):
        return protected.call(protected.admin, method, path, body)
    call("POST", "/api/v1/configure", {"queue": queue, "options": {"encryptionEnabled": True}}).expect(200)
    call("POST", "/api/v1/push", {"items": [{"queue": queue, "transactionId": t, "payload": n} for t, n in [("a", 111), ("b", 222), ("c", 333), ("d", 444)]]}).expect(201)
    with pg.connect(database=protected.database) as db, db.cursor() as cur:
        cur.execute("select s.lane, s.first_seq, s.body from queen.segments s join queen.lanes l on l.num = s.lane "
                    "join queen.queues q on q.id = l.queue_id where q.name = %s", (queue,))
        lane, seq, body = cur.fetchone()
        texts = [t + b"}" for t in bytes(body).split(b"}")[:-1]]
        texts = [t[t.index(b'{"encrypted"'):] for t in texts]
        assert len(texts) == 4 and all(set(json.loads(t)) == {"encrypted", "iv", "authTag", "keyId", "for"} for t in texts)
        third = json.loads(texts[2])
        name = (',"for":"%s"' % third["for"]).encode()
        changed = bytes(body).replace(texts[0], b"?").replace(texts[1], texts[0]).replace(b"?", texts[1])
        changed = changed.replace(texts[2], texts[2].replace(name, b"") + b" " * len(name))
        cur.execute("update queen.segments set body = %s where lane = %s and first_seq = %s", (changed, lane, seq))
        db.commit()
    got = {m["transactionId"]: m["data"] for m in call("GET", "/api/v1/pop/queue/%s?batch=10" % queue).expect(200).json["messages"]}
    assert got["d"] == 444 and all(isinstance(got[t], dict) and "encrypted" in got[t] for t in "abc")
    assert "seal.unread" in protected.broker.log_text()


def test_a_bound_payload_stays_readable_wherever_its_message_goes(protected, queue):
    """Retries, dead letters, redrives here and elsewhere, delayed messages, reports."""
    def call(method, path, body=None):
        return protected.call(protected.admin, method, path, body)

    def take(q, status, wait=30000):
        m = call("GET", "/api/v1/pop/queue/%s?batch=1&wait=true&timeout=%d" % (q, wait)).expect(200).json["messages"][0]
        call("POST", "/api/v1/ack", {"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": m["leaseId"], "status": status}).expect(200)
        assert m["data"] == SECRET, m
        return m
    other = queue + "-other"
    for q, options in [(queue, {"retryPolicy": {"mode": "scheduled", "strategy": "list", "delays": [1], "maxAttempts": 5}}), (other, {})]:
        call("POST", "/api/v1/configure", {"queue": q, "options": {"encryptionEnabled": True, **options}}).expect(200)
    for item in [{"transactionId": "named"}, {}, {"delaySeconds": 1}]:
        call("POST", "/api/v1/push", {"items": [{"queue": queue, "payload": SECRET, **item}]}).expect(201)
        take(queue, "failed")
        take(queue, "dlq")
        assert call("POST", "/api/v1/dlq/redrive", {"queue": queue, "limit": 1}).expect(200).json["redriven"] == 1
        m = take(queue, "dlq")
        shown = call("GET", "/api/v1/messages/%s/%s" % (m["partitionId"], m["transactionId"])).expect(200).json
        assert shown["payload"] == SECRET
        assert call("GET", "/api/v1/dlq?queue=" + queue).expect(200).json["messages"][0]["data"] == SECRET
        assert call("POST", "/api/v1/dlq/redrive", {"queue": queue, "targetQueue": other}).expect(200).json["redriven"] == 1
        take(other, "completed")


def test_a_broker_without_the_key_delivers_the_ciphertext(sealing, broker, queue):
    sealing.configure(queue, encryptionEnabled=True)
    sealing.put(queue, [SECRET])
    assert set(broker.take(queue)[0]["data"]) == {"encrypted", "iv", "authTag", "keyId"}


@pytest.mark.parametrize("key", ["hunter2", KEY[:-1], KEY + "0", "a:" + KEY + ",a:" + OTHER, KEY + ",", "bad id:" + KEY])
def test_a_bad_key_stops_the_start_with_one_line(make_broker, key):
    b = make_broker(start=False, QUEEN_ENCRYPTION_KEY=key).spawn()
    assert b.process.wait(20) == 1
    lines = [x for x in b.log_text().splitlines() if "QUEEN_ENCRYPTION_KEY" in x]
    assert len(lines) == 1 and "hunter2" not in b.log_text() and KEY[:20] not in b.log_text()


def test_sql_functions_push_in_clear_and_see_ciphertext(sealing, queue, sql):
    sealing.configure(queue, encryptionEnabled=True)
    sealing.put(queue, [SECRET])
    sql("select queen.push_messages_v2(%s::jsonb)", json.dumps([{"queue": queue, "payload": "by SQL"}]))
    rows = stored(sql, queue)
    assert [r[1] for r in rows] == [True, False] and rows[1][0] == "by SQL"
    assert [m["data"] for m in sealing.take(queue, batch=10)] == [SECRET, "by SQL"]


def test_an_update_by_hand_counts_too(sealing, queue, sql):
    sealing.put(queue, [1])
    sql("update queen.queues set encryption_enabled = true where name = %s", queue)
    sealing.put(queue, [2])
    assert [r[1] for r in stored(sql, queue)] == [False, True]


def test_a_dead_letter_stays_sealed_in_its_lane(sealing, queue, sql):
    sealing.configure(queue, encryptionEnabled=True, retryLimit=0)
    sealing.put(queue, [SECRET])
    sealing.ack(sealing.take(queue)[0], "dlq", error="no")
    assert b"4000-0000" not in bodies(sql, queue)
    assert sql("select count(*) from queen.dead_letter_queue d join queen.lanes l on l.num = d.lane "
               "join queen.queues q on q.id = l.queue_id where q.name = %s", queue) == [(1,)]


def test_output_of_a_stream_is_encrypted(sealing, queue, sql):
    sealing.configure(queue, encryptionEnabled=True)
    query = sealing.post("/streams/v1/queries", {"name": queue, "source_queue": queue + "-src",
                                                 "config_hash": "h"}).expect(200).json["query_id"]
    answer = sealing.post("/streams/v1/cycle", {"query_id": query, "partition_id": str(uuid.uuid4()),
                                                "push_items": [{"queue": queue, "payload": SECRET}]}).expect(200).json
    assert answer["success"], answer
    assert stored(sql, queue)[0][1] and sealing.take(queue)[0]["data"] == SECRET


def test_reports_decrypt_payloads(sealing, broker, queue):
    sealing.configure(queue, encryptionEnabled=True)
    pushed = sealing.put(queue, [SECRET])[0]
    path = "/api/v1/messages/%s/%s" % (pushed["partition_id"], pushed["transaction_id"])
    one = sealing.get(path).expect(200).json
    assert one["payload"] == SECRET and one["isEncrypted"] is True
    sealing.post("/api/v1/traces", {"transactionId": pushed["transaction_id"], "partitionId": pushed["partition_id"],
                                    "data": {}, "traceNames": [queue]}).expect(201)
    assert sealing.get("/api/v1/traces/by-name/" + queue).expect(200).json["traces"][0]["message_payload"] == SECRET
    sealing.ack(sealing.take(queue)[0], "dlq", error="no")
    assert sealing.get("/api/v1/dlq?queue=" + queue).expect(200).json["messages"][0]["data"] == SECRET
    assert set(broker.get(path).expect(200).json["payload"]) == {"encrypted", "iv", "authTag", "keyId"}


def test_replayed_messages_are_encrypted(make_broker, pg, queue):
    """Files of the buffer hold ciphertext, also of queues without the option; draining them is an ordinary push."""
    database = pg.create_database("sealed_%s" % uuid.uuid4().hex[:12])
    b = make_broker(database=database, QUEEN_ENCRYPTION_KEY=KEY)
    b.configure(queue, encryptionEnabled=True)
    b.post("/api/v1/system/maintenance", {"enabled": True}).expect(200)
    items = [{"queue": queue, "payload": SECRET}, {"queue": queue + ".plain", "payload": SECRET}]
    assert [r["status"] for r in b.push(items).expect(201).json] == ["buffered", "buffered"]
    files = b"".join(p.read_bytes() for p in pathlib.Path(b.env["FILE_BUFFER_DIR"]).rglob("*") if p.is_file())
    assert queue.encode() in files and b"4000-0000" not in files
    b.post("/api/v1/system/maintenance", {"enabled": False}).expect(200)
    wait_until(lambda: b.get("/api/v1/system/maintenance").expect(200).json["bufferedMessages"] == 0, 10, "drained")
    with pg.connect(database=database) as db, db.cursor() as cur:
        def sql(text, *args):
            cur.execute(text, args)
            return cur.fetchall()
        assert [r[1] for r in stored(sql, queue)] == [True]
        assert b"4000-0000" not in bodies(sql, queue)
    assert [m["data"] for m in b.take(queue)] == [SECRET]
    assert [m["data"] for m in b.take(queue + ".plain")] == [SECRET]


def test_a_buffer_that_no_key_opens_is_stored_as_it_is(make_broker, pg, queue, tmp_path):
    """The broker was restarted without its key: nothing is lost, and the key opens it later."""
    database = pg.create_database("sealed_%s" % uuid.uuid4().hex[:12])
    b = make_broker(database=database, QUEEN_ENCRYPTION_KEY=KEY, FILE_BUFFER_DIR=str(tmp_path))
    b.post("/api/v1/system/maintenance", {"enabled": True}).expect(200)
    assert b.push([{"queue": queue, "payload": SECRET}]).expect(201).json[0]["status"] == "buffered"
    b.terminate()
    c = make_broker(database=database, FILE_BUFFER_DIR=str(tmp_path))
    c.post("/api/v1/system/maintenance", {"enabled": False}).expect(200)
    wait_until(lambda: c.get("/api/v1/system/maintenance").expect(200).json["bufferedMessages"] == 0, 30, "drained")
    assert set(c.take(queue)[0]["data"]) == {"encrypted", "iv", "authTag", "keyId"}
    assert "seal.unread" in c.log_text()


# --- recurring messages -----------------------------------------------------------------------------------------------

def schedule(broker, queue, **more):
    return broker.post("/api/v1/schedules", {"name": queue, "queue": queue, "cron": "0 0 1 1 *", **more}).expect(201).json


def kept(sql, name):
    """(payload, sealed) of a recurring message as it lies in its table."""
    return sql("select payload, sealed from queen.schedules where name = %s", name)[0]


def change(broker, name, **fields):
    return broker.request("PATCH", "/api/v1/schedules/" + name, fields).expect(200).json


def run(broker, name):
    broker.post("/api/v1/schedules/%s/run" % name).expect(200)


def test_a_recurring_payload_is_ciphertext_in_the_tables_and_itself_in_answers(sealing, queue, group, sql):
    sealing.configure(queue, encryptionEnabled=True)
    made = schedule(sealing, queue, payload=SECRET)
    assert made["payload"] == SECRET
    payload, is_sealed = kept(sql, queue)
    assert is_sealed and set(payload) == {"encrypted", "iv", "authTag", "keyId"}
    assert sealing.get("/api/v1/schedules/" + queue).expect(200).json == made
    assert sealing.get("/api/v1/schedules?queue=" + queue).expect(200).json == {"schedules": [made]}
    run(sealing, queue)
    (m,) = sealing.take(queue, consumerGroup=group, wait="true", timeout=10000)
    assert m["data"] == SECRET
    assert [r[1] for r in stored(sql, queue)] == [True] and b"4000-0000" not in bodies(sql, queue)
    assert change(sealing, queue, payload="other")["payload"] == "other"
    assert kept(sql, queue)[1] and "other" not in json.dumps(kept(sql, queue)[0])


def test_a_recurring_payload_follows_its_queue(sealing, queue, sql):
    assert schedule(sealing, queue, payload=SECRET)["payload"] == SECRET
    assert kept(sql, queue) == (SECRET, False)
    sealing.configure(queue + "-sealed", encryptionEnabled=True)
    assert change(sealing, queue, queue=queue + "-sealed")["payload"] == SECRET
    sealed = kept(sql, queue)
    assert sealed[1] and change(sealing, queue, paused=True)["payload"] == SECRET and kept(sql, queue) == sealed
    # A new payload is of the new queue.
    assert change(sealing, queue, queue=queue, payload=1)["payload"] == 1
    assert kept(sql, queue) == (1, False)


def test_switching_the_option_on_seals_recurring_payloads_before_the_answer(sealing, queue, group, sql):
    for nth in "abc":
        schedule(sealing, queue, name=queue + nth, payload=SECRET)
    sealing.configure(queue, encryptionEnabled=True)
    assert all(kept(sql, queue + nth)[1] for nth in "abc") and "4000" not in json.dumps(kept(sql, queue + "b")[0])
    run(sealing, queue + "b")
    (m,) = sealing.take(queue, consumerGroup=group, wait="true", timeout=10000, autoAck="true")
    assert m["data"] == SECRET and [r[1] for r in stored(sql, queue)] == [True]
    # Off again: what was sealed stays so, and is opened as before.
    sealing.configure(queue, encryptionEnabled=False)
    run(sealing, queue + "b")
    assert sealing.take(queue, consumerGroup=group, wait="true", timeout=10000)[0]["data"] == SECRET


@pytest.mark.parametrize("how", ["create", "change"])
def test_a_recurring_payload_stored_while_its_queue_is_made_is_sealed_before_the_answer(sealing, pg, queue, sql, how):
    """It is stored by a transaction that began when there was no such queue, and ends when there is one."""
    if how == "change":
        schedule(sealing, queue + "-other", name=queue, payload=SECRET)
    with contextlib.closing(pg.connect(autocommit=False)) as db, db.cursor() as cur:
        if how == "create":
            body = {"name": queue, "queue": queue, "cron": "0 0 1 1 *", "payload": SECRET}
            cur.execute("select status from queen.create_schedule(%s)", [json.dumps({"body": body})])
        else:
            cur.execute("select status from queen.change_schedule(%s, 'change')", [json.dumps({"id": queue, "body": {"queue": queue}})])
        assert cur.fetchone()[0] in (200, 201), "in clear: there is no such queue"
        answers = []
        configure = threading.Thread(target=lambda: answers.append(sealing.configure(queue, encryptionEnabled=True)))
        configure.start()
        wait_until(lambda: answers or sql("select 1 from pg_locks where locktype = 'advisory' and classid = 737004 and not granted"), 10,
                   "the queue is made, and what may be in clear is looked for")
        assert not answers, "it waits for what it cannot see yet"
        db.commit()
    configure.join()
    assert answers and kept(sql, queue)[1] and "4000" not in json.dumps(kept(sql, queue)[0])


def test_without_a_key_a_recurring_payload_is_unencrypted_and_logged(make_broker, queue, sql):
    b = make_broker()
    b.configure(queue, encryptionEnabled=True)
    assert schedule(b, queue, payload=SECRET)["payload"] == SECRET
    assert kept(sql, queue) == (SECRET, False)
    assert change(b, queue, payload=2)["payload"] == 2
    assert "a recurring message is stored in clear" in b.log_text()
