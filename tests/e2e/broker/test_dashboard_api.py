"""Endpoints of the dashboard beyond the public contract: grouped dead letters, the search in payloads, the preview of a seek, the map of partitions,
figures over time, processors, settings, and the permissions of the sender."""
import json
import time
import uuid
from datetime import datetime, timezone

import pytest

import harness
from harness import urlencode, wait_for_figures, wait_until
from test_api_keys import Guarded, init


@pytest.fixture(autouse=True)
def leave_no_backlog(request):
    """Other tests measure the backlog of the same broker."""
    used = [request.getfixturevalue(name) for name in ("broker", "queue") if name in request.fixturenames]
    yield
    if len(used) == 2:
        used[0].request("DELETE", "/api/v1/resources/queues/" + used[1])


def iso(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fail(broker, queue, n, error, group=None):
    for m in broker.take(queue, batch=n, consumerGroup=group):
        broker.ack(m, "dlq", error=error, consumerGroup=group)


def test_dead_letters_are_counted_by_queue_and_error(broker, queue, group):
    broker.put(queue, [1, 2, 3], partition="p")
    fail(broker, queue, 2, "gateway timeout", group)
    fail(broker, queue, 1, "timeout", group)
    answer = broker.get("/api/v1/dlq/groups?" + urlencode({"queue": queue})).expect(200).json
    assert [(g["error"], g["count"], g["consumerGroups"], g["queue"]) for g in answer["groups"]] == [("gateway timeout", 2, [group], queue), ("timeout", 1, [group], queue)]
    first = answer["groups"][0]
    assert len(first["hourly"]) == 24 and sum(first["hourly"]) == 2 and len(first["samples"]) == 2
    assert answer["counted"] == 3 and answer["truncated"] is False
    assert broker.get("/api/v1/dlq/groups?" + urlencode({"queue": queue, "consumerGroup": "other"})).expect(200).json["groups"] == []
    broker.get("/api/v1/dlq/groups?nonsense=1").expect(400)


def test_a_redrive_by_the_exact_error_leaves_longer_errors(broker, queue, group):
    broker.put(queue, [1, 2, 3], partition="p")
    fail(broker, queue, 2, "gateway timeout", group)
    fail(broker, queue, 1, "timeout", group)
    page = broker.get("/api/v1/dlq?" + urlencode({"queue": queue, "exactError": "timeout"})).expect(200).json
    assert [m["data"] for m in page["messages"]] == [3] and page["total"] == 1
    answer = broker.post("/api/v1/dlq/redrive", {"queue": queue, "exactError": "timeout"}).expect(200).json
    assert answer["redriven"] == 1 and answer["more"] is False
    left = broker.get("/api/v1/dlq?" + urlencode({"queue": queue})).expect(200).json
    assert [m["errorMessage"] for m in left["messages"]] == ["gateway timeout"] * 2
    broker.post("/api/v1/dlq/redrive", {"exactError": ""}).expect(400)


def test_messages_are_found_by_text_in_their_payload(broker, queue):
    broker.put(queue, [{"customer": "Ann Lee", "n": i} for i in range(3)] + [{"customer": "Bob"}], ids=["a-%d" % i for i in range(3)] + ["order-4711"])

    def found(**params):
        return broker.get("/api/v1/messages?" + urlencode({"queue": queue, **params})).expect(200).json
    assert [m["transactionId"] for m in found(contains="ann lee")["messages"]] == ["a-2", "a-1", "a-0"]
    assert found(contains="ann lee")["searched"] == 4 and "searched" not in found()
    assert [m["transactionId"] for m in found(contains="ORDER-47")["messages"]] == ["order-4711"]
    assert [m["transactionId"] for m in found(contains="ann lee", limit=1, offset=1)["messages"]] == ["a-1"]
    assert found(contains="ann lee", search=1)["messages"] == [] and found(contains="ann lee", search=1)["searched"] == 1
    assert found(contains="100%")["messages"] == []  # not a pattern


def test_messages_are_found_by_any_of_their_ids(broker, queue):
    (made,) = broker.push([{"queue": queue, "payload": 1, "transactionId": queue + "-t", "correlationId": queue + "-c"}]).json

    def by(**params):
        answer = broker.get("/api/v1/messages/find?" + urlencode(params)).expect(200).json
        return answer["by"], answer["timeline"] and [m["id"] for m in answer["timeline"]["messages"]]
    assert by(id=made["message_id"]) == ("messageId", [made["message_id"]])
    assert by(id=queue + "-c") == ("correlationId", [made["message_id"]])
    assert by(id=queue + "-t", queue=queue) == ("transactionId", [made["message_id"]])
    assert by(id="none-such", queue=queue) == (None, None)
    assert by(id="x" * 3000, queue=queue) == (None, None)
    broker.get("/api/v1/messages/find").expect(400)


def test_encrypted_payloads_are_not_searched(pg):
    b = harness.begin({**pg.env(pg.create_database("search_" + uuid.uuid4().hex[:8])), "QUEEN_ENCRYPTION_KEY": "ab" * 32})
    try:
        b.configure("sealed", encryptionEnabled=True)
        b.put("sealed", [{"secret": "rosebud"}], ids=["visible"])
        for text, n in (("rosebud", 0), ("encrypted", 0), ("VISIBLE", 1)):
            assert len(b.get("/api/v1/messages?queue=sealed&contains=" + text).expect(200).json["messages"]) == n
    finally:
        harness.end(b)


def test_the_preview_of_a_seek_is_what_the_seek_does(broker, queue, group):
    broker.put(queue, [1, 2, 3], partition="p")
    time.sleep(0.01)
    middle = time.time()
    time.sleep(0.01)
    broker.put(queue, [4, 5], partition="p")
    for m in broker.take(queue, batch=4, consumerGroup=group):
        broker.ack(m, consumerGroup=group)
    base = "/api/v1/consumer-groups/%s/queues/%s/seek" % (group, queue)

    def preview(**params):
        return broker.get(base + "?" + urlencode(params)).expect(200).json
    end = preview(toEnd="true", timestamp="1970-01-01T00:00:00Z")
    assert (end["again"], end["skipped"], end["waiting"], end["partitionsAhead"], end["seekToEnd"]) == (0, 1, 0, 1, True)
    begin = preview(timestamp="1970-01-01T00:00:00Z")
    assert (begin["again"], begin["skipped"], begin["waiting"], begin["partitionsBack"]) == (4, 0, 5, 1)
    assert preview(timestamp=iso(middle))["waiting"] in (2, 5)  # a segment is not split: as the seek itself
    expected = preview(timestamp=iso(middle))["waiting"]
    assert len(broker.take(queue, batch=9, consumerGroup=group)) == 1  # a preview changes nothing, and the lease is counted
    assert preview(toEnd="true")["leases"] == 1
    broker.post(base, {"timestamp": iso(middle)}).expect(200)
    assert len(broker.take(queue, batch=9, consumerGroup=group)) == expected
    broker.get(base).expect(400)
    broker.get("/api/v1/consumer-groups/%s/queues/none-such/seek?toEnd=true" % group).expect(404)


def test_the_map_of_partitions_has_cells_of_neighbours(broker, queue, group):
    broker.push([{"queue": queue, "partition": "p%03d" % i, "payload": i} for i in range(100)])
    broker.push([{"queue": queue, "partition": "p042", "payload": i} for i in range(5)])

    def cells(**params):
        return broker.get("/api/v1/status/queues/%s/map?%s" % (queue, urlencode(params))).expect(200).json
    wait_for_figures(broker, lambda: sum(c["pending"] for c in cells()["cells"]) == 105, "the map has all messages")
    whole = cells(cells=10)
    assert whole["partitions"] == 100 and [c["partitions"] for c in whole["cells"]] == [10] * 10
    assert [(c["first"], c["last"]) for c in whole["cells"]][4] == ("p040", "p049")
    assert (whole["cells"][4]["pending"], whole["cells"][4]["mostPending"]) == (15, 6)
    part = cells(**{"from": "p040", "to": "p049"})
    assert part["partitions"] == 10 and [c["first"] for c in part["cells"]] == ["p%03d" % i for i in range(40, 50)]
    (m,) = broker.take(queue, partition="p007", batch=1, consumerGroup=group)
    wait_for_figures(broker, lambda: cells(**{"from": "p007", "to": "p007", "group": group})["cells"][0]["leased"] == 1, "the lease is shown")
    (cell,) = cells(**{"from": "p007", "to": "p007", "group": group})["cells"]
    assert [(k["consumerGroup"], k["leaseId"]) for k in cell["leases"]] == [(group, m["leaseId"])]
    broker.get("/api/v1/status/queues/none-such/map").expect(404)


def test_lists_of_queues_have_groups_rates_and_history_on_request(broker, queue, group):
    broker.put(queue, [1, 2, 3])
    broker.take(queue, consumerGroup=group)

    def row(**params):
        return broker.get("/api/v1/status/queues?" + urlencode({"search": queue, **params})).expect(200).json["queues"][0]
    assert "history" not in row()
    wait_for_figures(broker, lambda: sum(row(history="true")["history"]) == 3 and row(history="true")["groups"] == 1, "the list has the messages and the group")
    assert len(row(history="true")["history"]) == 12 and row(history="true")["ingestedPerSecond"] >= 0


def test_figures_over_time_have_the_backlog(broker, queue):
    broker.put(queue, [1, 2, 3])
    assert broker.take(queue, batch=1, autoAck=True)

    def last(**params):
        points = broker.get("/api/v1/status/analytics?" + urlencode({"interval": "5minutes", **params})).expect(200).json["dataPoints"]
        return [p for p in points if p["pending"] is not None]
    wait_for_figures(broker, lambda: last(queue=queue) and last(queue=queue)[-1]["pending"] == 2, "the backlog is recorded")
    point = last(queue=queue)[-1]
    assert sum(p["messages"] for p in last(queue=queue)) == 3 and point["deadLetter"] == 0
    assert last()[-1]["pending"] >= 2


def test_figures_over_time_have_the_retries_and_the_file_buffer(pg, tmp_path):
    b = harness.begin({**pg.env(pg.create_database("gauges_" + uuid.uuid4().hex[:8])), "METRICS_AGGREGATE_INTERVAL_S": "1", "FILE_BUFFER_DIR": str(tmp_path)})

    def newest(name, **params):
        points = b.get("/api/v1/status/analytics?" + urlencode({"interval": "minute", **params})).expect(200).json["dataPoints"]
        return max((p[name] for p in points if p[name] is not None), default=None)
    try:
        b.configure("failing", retryPolicy={"mode": "scheduled", "strategy": "fixed", "base": 3600})
        b.put("failing", [1, 2])
        for m in b.take("failing", batch=2):
            b.ack(m, "failed", error="again")
        b.push([{"queue": "later", "payload": 1, "delaySeconds": 3600}])
        wait_until(lambda: newest("retries") == 2, 60, "the waiting retries are recorded")
        assert newest("buffered") == 0
        b.post("/api/v1/system/maintenance", {"enabled": True}).expect(200)
        b.push([{"queue": "buffered", "payload": n} for n in range(3)])
        wait_until(lambda: newest("buffered") == 3, 60, "the messages in the buffer are recorded")
        assert newest("retries", queue="failing") is None
    finally:
        harness.end(b)


def test_processors_are_listed_by_queue_and_group(broker, queue, group):
    broker.configure(queue, partitions=4)
    broker.post("/api/v1/consumer-groups/%s/queues/%s/owners/claim" % (group, queue), {"owner": "w-1", "partitions": [{"partition": p, "epoch": 0} for p in "012"], "expirySeconds": 60}).expect(200)
    (g,) = broker.get("/api/v1/processors?" + urlencode({"queue": queue})).expect(200).json["groups"]
    assert (g["consumerGroup"], g["partitions"], g["owned"], g["changes"], g["processors"]) == (group, 4, 3, 3, [{"processor": "w-1", "partitions": 3}])


def test_transactions_that_hold_back_vacuum_are_shown(pg):
    name = pg.create_database("xmin_" + uuid.uuid4().hex[:8])
    b = harness.begin(pg.env(name))
    holder = pg.connect(autocommit=False, database=name)
    try:
        with holder.cursor() as c:
            c.execute("set application_name = 'forgotten report'")
            c.execute("set transaction isolation level repeatable read")
            c.execute("select 1")
        wait_until(lambda: "forgotten report" in [t["name"] for t in b.get("/api/v1/analytics/postgres-stats").expect(200).json["oldTransactions"]], 60,
                   "the transaction is listed")
        (t,) = [t for t in b.get("/api/v1/analytics/postgres-stats").json["oldTransactions"] if t["name"] == "forgotten report"]
        assert t["kind"] == "session" and t["state"] == "idle in transaction" and t["ageSeconds"] >= 10 and t["xminAge"] >= 0
    finally:
        holder.close()
        harness.end(b)


def test_settings_are_shown_with_their_origin_and_without_secrets(pg, tmp_path):
    path, key = init(tmp_path)
    b = harness.begin({**pg.env(pg.create_database("settings_" + uuid.uuid4().hex[:8])), "QUEEN_ADMIN_KEY_FILE": path, "STATS_INTERVAL_MS": "777",
                       "QUEEN_ENCRYPTION_KEY": "ab" * 32})
    try:
        g = Guarded(b, key)
        answer = g.call(key, "GET", "/api/v1/system/settings").expect(200).json
        by = {s["name"]: s for s in answer["settings"]}
        assert (by["STATS_INTERVAL_MS"]["value"], by["STATS_INTERVAL_MS"]["origin"], by["STATS_INTERVAL_MS"]["unit"]) == ("777", "environment", "ms")
        assert by["DEFAULT_TIMEOUT"]["origin"] == "default"
        assert by["QUEEN_ENCRYPTION_KEY"]["value"] == "(secret)" and "ab" * 32 not in json.dumps(answer)
        reader = g.call(key, "POST", "/api/v1/keys", {"name": "reader", "role": "read-only"}).expect(201).json["key"]
        g.call(reader, "GET", "/api/v1/system/settings").expect(403)
    finally:
        harness.end(b)


@pytest.mark.parametrize("new,expected", [
    ({"role": "read-only"}, {"role": "read-only", "allow": None, "has": ["list_messages"], "lacks": ["push", "delete_queue", "settings"]}),
    ({"role": "read-write"}, {"role": "read-write", "allow": None, "has": ["push", "redrive"], "lacks": ["delete_queue", "list_keys"]}),
    ({"role": "admin"}, {"role": "admin", "allow": None, "has": ["push", "delete_queue", "list_keys", "settings"], "lacks": []}),
    ({"allow": "push:orders.*"}, {"role": None, "allow": "push:orders.*", "has": ["push", "identity"], "lacks": ["pop", "list_messages", "list_keys"]}),
    ({"allow": "admin"}, {"role": "admin", "allow": None, "has": ["list_keys", "push"], "lacks": []}),
], ids=["read-only", "read-write", "admin", "rules", "rules-admin"])
def test_a_sender_learns_what_it_may_do(pg, tmp_path, new, expected):
    path, key = init(tmp_path)
    b = harness.begin({**pg.env(pg.create_database("identity_" + uuid.uuid4().hex[:8])), "QUEEN_ADMIN_KEY_FILE": path})
    try:
        g = Guarded(b, key)
        made = g.call(key, "POST", "/api/v1/keys", {"name": "someone", **new}).expect(201).json["key"]
        answer = g.call(made, "GET", "/api/v1/identity").expect(200).json
        assert answer["protected"] is True and answer["subject"] == "key:someone"
        assert (answer["role"], answer["allow"]) == (expected["role"], expected["allow"])
        assert set(expected["has"]) <= set(answer["operations"]) and not set(expected["lacks"]) & set(answer["operations"])
        b.get("/api/v1/identity").expect(401)
    finally:
        harness.end(b)


def test_on_an_unprotected_server_everybody_may_do_everything(broker):
    answer = broker.get("/api/v1/identity").expect(200).json
    assert (answer["protected"], answer["subject"], answer["role"]) == (False, None, "admin") and "delete_queue" in answer["operations"]
