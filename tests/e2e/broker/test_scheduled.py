"""Scheduled delivery: pushes that wait for their time (docs/guide/scheduled-delivery.md)."""
import json
import random
import time
import uuid
from datetime import datetime, timedelta, timezone
from urllib.parse import urlencode

import pytest

from harness import Background, patience, uuid7, wait_until

FAR = "2034-05-06T07:08:09.010Z"


def at(seconds):
    """ISO 8601, this many seconds from now."""
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).isoformat()


def later(queue, payload=None, **fields):
    return dict({"queue": queue, "payload": payload, "scheduledAt": FAR}, **fields)


def waiting(sql, queue):
    """Numbers of the messages of a queue that wait."""
    return [r[0] for r in sql("select s.num from queen.scheduled s join queen.lanes l on l.num = s.lane "
                              "join queen.queues q on q.id = l.queue_id where q.name = %s order by s.due_at, s.num", queue)]


def all_of(broker, queue, n, timeout=10, **params):
    """Takes until there are n messages."""
    got = []
    deadline = time.monotonic() + timeout
    while len(got) < n and time.monotonic() < deadline:
        got += broker.take(queue, wait=True, timeout=1000, autoAck=True, batch=1000, partitions=1000, **params)
    assert len(got) == n, "%d of %d came" % (len(got), n)
    return got


def let_pass(broker, queue, seconds):
    """Until brokers have fired what was due this many seconds from now: a message that is due then has come."""
    broker.push([{"queue": queue + "-clock", "payload": None, "delaySeconds": seconds}]).expect(201)
    all_of(broker, queue + "-clock", 1)


# --- pushing ---------------------------------------------------------------------------------------------------------

def test_the_answer_has_id_and_time_and_so_has_the_message(broker, queue):
    before = time.time()
    first, second, third = broker.push([
        {"queue": queue, "payload": {"n": 1}, "delaySeconds": 0.4, "transactionId": "a", "traceId": str(uuid.uuid4())},
        {"queue": queue, "payload": 2},
        later(queue, 3)]).expect(201).json
    assert [r["status"] for r in (first, second, third)] == ["scheduled", "queued", "scheduled"]
    assert [r["index"] for r in (first, second, third)] == [0, 1, 2]
    assert first["scheduleId"] == first["messageId"] == first["message_id"] and first["partitionId"] == second["partitionId"]
    assert third["scheduledAt"] == FAR and first["transactionId"] == "a" and first["trace_id"]
    due = datetime.fromisoformat(first["scheduledAt"].replace("Z", "+00:00")).timestamp()
    assert before + 0.3 < due < time.time() + 0.4
    assert "scheduleId" not in second and "scheduledAt" not in second
    assert [m["data"] for m in broker.take(queue, autoAck=True, batch=10)] == [2], "nobody is given what waits"
    (message,) = broker.take(queue, wait=True, timeout=5000, autoAck=True)
    assert message["id"] == first["scheduleId"] and message["data"] == {"n": 1} and message["transactionId"] == "a"
    assert message["traceId"] == first["trace_id"]


@pytest.mark.parametrize("fields, wrong", [
    ({"scheduledAt": "tomorrow"}, "scheduledAt must be an ISO 8601 time"),
    ({"scheduledAt": "2030-01-01T00:00:00"}, "scheduledAt must be an ISO 8601 time"),
    ({"scheduledAt": "2030-02-30T00:00:00Z"}, "scheduledAt must be an ISO 8601 time"),
    ({"scheduledAt": 1893456000}, "scheduledAt must be an ISO 8601 time"),
    ({"scheduledAt": ""}, "scheduledAt must be an ISO 8601 time"),
    ({"scheduledAt": "2077-01-01T00:00:00Z"}, "scheduledAt must be within 10 years"),
    ({"delaySeconds": -0.1}, "delaySeconds must be a number of 0 or more"),
    ({"delaySeconds": "5"}, "delaySeconds must be a number of 0 or more"),
    ({"delaySeconds": True}, "delaySeconds must be a number of 0 or more"),
    ({"delaySeconds": 1e10}, "delaySeconds must be within 10 years"),
    ({"delaySeconds": 1, "scheduledAt": FAR}, "scheduledAt and delaySeconds exclude each other"),
])
def test_an_invalid_time_is_rejected_and_nothing_is_stored(broker, queue, sql, fields, wrong):
    items = [{"queue": queue, "payload": 1}, later(queue), dict({"queue": queue}, **fields)]
    assert broker.push(items).expect(400).json["error"].startswith("item 2: " + wrong)
    r = broker.post("/api/v1/transaction", {"operations": [{"type": "push", "items": items}]}).expect(400)
    assert r.json["error"].startswith("operation 0, item 2: " + wrong)
    with pytest.raises(Exception, match="item 2: " + wrong.split(" must")[0]):
        sql("select queen.push_messages_v2(%s)", json.dumps(items))
    assert waiting(sql, queue) == [] and broker.take(queue) == []


def test_null_means_that_it_was_not_given(broker, queue):
    (r,) = broker.push([{"queue": queue, "payload": 1, "scheduledAt": None, "delaySeconds": None}]).expect(201).json
    assert r["status"] == "queued"


@pytest.mark.parametrize("fields", [{"scheduledAt": "1999-12-31T23:59:59+01:00"}, {"delaySeconds": 0}])
def test_a_time_that_has_passed_is_now(broker, queue, fields):
    (r,) = broker.push([dict({"queue": queue, "payload": 1}, **fields)]).expect(201).json
    assert r["status"] == "scheduled" and abs(datetime.fromisoformat(r["scheduledAt"].replace("Z", "+00:00")).timestamp() - time.time()) < 5
    assert [m["id"] for m in broker.take(queue, wait=True, timeout=5000)] == [r["messageId"]]


def test_it_is_never_early_by_the_clock_of_postgresql(broker, queue, sql):
    n = 60
    broker.push([{"queue": queue, "partition": str(i % 7), "payload": i, "delaySeconds": i / 100, "transactionId": str(i)}
                 for i in range(n)]).expect(201)
    due = dict(sql("select s.transaction_id, s.due_at from queen.scheduled s join queen.lanes l on l.num = s.lane "
                   "join queen.queues q on q.id = l.queue_id where q.name = %s", queue))
    stored = {}
    for m in all_of(broker, queue, n):
        stored[m["transactionId"]] = datetime.fromisoformat(m["createdAt"].replace("Z", "+00:00"))
    assert len(due) > n / 2, "most were seen waiting"
    for name, when in due.items():
        assert stored[name] >= when, "message %s came early" % name


def test_equals_come_in_the_order_in_which_they_were_scheduled(broker, queue):
    when = at(1)
    for start in range(0, 600, 100):
        broker.push([{"queue": queue, "partition": "p", "payload": i, "scheduledAt": when} for i in range(start, start + 100)]).expect(201)
    assert [m["data"] for m in all_of(broker, queue, 600)] == list(range(600))


def test_messages_are_delivered_in_order_of_their_times(broker, queue):
    for delay in (0.9, 0.3, 0.6):
        broker.push([{"queue": queue, "payload": delay, "delaySeconds": delay}]).expect(201)
    assert [m["data"] for m in all_of(broker, queue, 3)] == [0.3, 0.6, 0.9]


def test_large_and_many_messages_fit_into_segments(broker, queue, sql):
    when = at(0.8)
    big = "x" * 50_000
    broker.push([{"queue": queue, "payload": big, "scheduledAt": when} for _ in range(5)]).expect(201)
    broker.push([{"queue": queue, "payload": i, "scheduledAt": when} for i in range(700)]).expect(201)
    got = all_of(broker, queue, 705)
    assert [m["data"] for m in got] == [big] * 5 + list(range(700))
    rows = sql("select s.count, length(s.body) from queen.segments s join queen.lanes l on l.num = s.lane "
               "join queen.queues q on q.id = l.queue_id where q.name = %s", queue)
    assert all(c <= 256 and size < 2 * 65536 for c, size in rows)


# --- deduplication ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("make", [uuid7, lambda: str(uuid.uuid4()), lambda: "order-" + uuid.uuid4().hex])
def test_a_transaction_id_is_taken_while_its_message_waits_and_afterwards(broker, broker2, queue, make):
    tx = make()
    item = later(queue, "first", transactionId=tx)
    (first,) = broker.push([item]).expect(201).json
    plain = {"queue": queue, "payload": "second", "transactionId": tx}
    for b in (broker, broker2):
        answers = b.push([plain, item, dict(plain, delaySeconds=0), plain]).expect(201).json
        assert [(r["status"], r["messageId"]) for r in answers] == [("duplicate", first["messageId"])] * 4
    broker.request("PATCH", "/api/v1/scheduled/" + first["scheduleId"], {"delaySeconds": 0}).expect(200)
    (message,) = all_of(broker, queue, 1)
    assert (message["id"], message["data"]) == (first["messageId"], "first")
    for b in (broker, broker2):
        answers = b.push([plain, item]).expect(201).json
        assert [(r["status"], r["messageId"]) for r in answers] == [("duplicate", first["messageId"])] * 2
    assert broker.take(queue) == []


def test_a_scheduled_message_is_a_duplicate_of_a_stored_one(broker, queue, sql):
    for tx in (uuid7(), "text-" + uuid.uuid4().hex):
        (first,) = broker.put(queue, ["x"], ids=[tx])
        (again,) = broker.push([later(queue, transactionId=tx)]).expect(201).json
        assert (again["status"], again["messageId"]) == ("duplicate", first["messageId"])
    assert waiting(sql, queue) == []


def test_one_request_may_hold_an_id_twice(broker, queue, sql):
    answers = broker.push([later(queue, 1, transactionId="x"), later(queue, 2, transactionId="x"),
                           later(queue, 3, transactionId="x", partition="other")]).expect(201).json
    assert [r["status"] for r in answers] == ["scheduled", "duplicate", "scheduled"]
    assert answers[1]["messageId"] == answers[0]["messageId"]
    assert len(waiting(sql, queue)) == 2


def test_a_request_with_items_for_now_and_for_later_is_stored_whole_or_not_at_all(broker, queue, sql):
    """If an item cannot be scheduled, the items for now are not stored either, and the answer reports it."""
    poison = "poison-" + queue
    name = "q" + queue.replace("-", "")
    sql("create function queen.%s() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$" % name)
    sql("create trigger %s before insert on queen.scheduled for each row when (new.transaction_id = '%s') execute function queen.%s()"
        % (name, poison, name))
    items = [{"queue": queue, "payload": 1, "transactionId": "a"}, {"queue": queue, "partition": "p", "payload": 2, "delaySeconds": 3600},
             {"queue": queue, "payload": 3, "delaySeconds": 3600, "transactionId": poison}]
    try:
        assert "error" in broker.push(items).expect(500).json
        assert broker.pop(queue).status == 204 and waiting(sql, queue) == []
        assert [r["status"] for r in broker.push(items[:2]).expect(201).json] == ["queued", "scheduled"]
    finally:
        sql("drop function queen.%s() cascade" % name)
    assert [r["status"] for r in broker.push(items).expect(201).json] == ["duplicate", "scheduled", "scheduled"]


def test_every_item_of_a_mixed_request_has_its_own_result(broker, queue, sql):
    item = lambda tx, **more: {"queue": queue, "payload": tx, "transactionId": tx, **more}  # noqa: E731
    later = {"delaySeconds": 3600}
    first = broker.push([item("old"), item("waits", **later)]).expect(201).json
    mixed = [item("waits"), item("new"), item("old", **later), item("soon", delaySeconds=0.2), item("new", partition="p"), item("new"),
             item("far", scheduledAt="2033-05-05T05:05:05Z"), item("far", **later), item("waits", **later)]
    got = broker.push(mixed).expect(201).json
    assert [r["status"] for r in got] == ["duplicate", "queued", "duplicate", "scheduled", "queued", "duplicate", "scheduled", "duplicate",
                                          "duplicate"]
    assert got[0]["messageId"] == got[8]["messageId"] == first[1]["messageId"] and got[2]["messageId"] == first[0]["messageId"]
    assert got[5]["messageId"] == got[1]["messageId"] and got[7]["messageId"] == got[6]["messageId"]
    came = all_of(broker, queue, 4)
    assert sorted(m["id"] for m in came) == sorted([first[0]["messageId"]] + [got[i]["messageId"] for i in (1, 3, 4)])


def test_a_lane_that_never_had_one_is_not_marked(broker, queue, sql):
    broker.put(queue, [1])
    flag = "select bool_or(l.scheduling) from queen.lanes l join queen.queues q on q.id = l.queue_id where q.name = %s"
    assert sql(flag, queue) == [(False,)]
    broker.push([later(queue)]).expect(201)
    assert sql(flag, queue) == [(True,)]


# --- transactions and SQL --------------------------------------------------------------------------------------------

def test_a_transaction_acknowledges_and_schedules_together(broker, queue, sql):
    broker.put(queue, ["in"])
    (m,) = broker.take(queue)
    out = queue + "-out"
    answer = broker.transaction([
        {"type": "ack", "transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": m["leaseId"]},
        {"type": "push", "items": [{"queue": out, "payload": "now"}, {"queue": out, "payload": "soon", "delaySeconds": 0.5}]},
        {"type": "push", "queue": out, "payload": "far", "scheduledAt": FAR}])
    assert answer["success"]
    ack, now, soon, far = answer["results"]
    assert "scheduleId" not in now and soon["status"] == far["status"] == "scheduled" and far["scheduledAt"] == FAR
    assert soon["scheduleId"] == soon["messageId"]
    got = all_of(broker, out, 2)
    assert [(x["data"], x["id"]) for x in got] == [("now", now["messageId"]), ("soon", soon["messageId"])]
    assert broker.take(queue) == [] and len(waiting(sql, out)) == 1


def test_a_transaction_that_fails_schedules_nothing(broker, queue, sql):
    broker.put(queue, ["there"], ids=["taken"])
    for operations in ([{"type": "push", "items": [later(queue, 1), {"queue": queue, "payload": 2, "transactionId": "taken"}]}],
                       [{"type": "push", "items": [{"queue": queue, "payload": 3}, later(queue, 4, transactionId="taken")]}],
                       [{"type": "push", "items": [later(queue, 5, transactionId="b"), later(queue, 6, transactionId="b")]}],
                       [{"type": "push", "items": [later(queue, 7, transactionId="c"), {"queue": queue, "payload": 8, "transactionId": "c"}]}],
                       [{"type": "push", "items": [later(queue, 9)]},
                        {"type": "ack", "transactionId": "no", "partitionId": str(uuid.uuid4())}]):
        answer = broker.transaction(operations)
        assert not answer["success"], operations
        assert "duplicate" in answer["error"] or "not found" in answer["error"]
    assert waiting(sql, queue) == [] and [m["data"] for m in broker.drain(queue)] == ["there"]


def test_sql_sessions_schedule_in_their_own_transaction(broker, queue, pg, sql):
    conn = pg.connect(autocommit=False)
    try:
        with conn.cursor() as cur:
            items = [{"queue": queue, "payload": 1}, {"queue": queue, "payload": 2, "delaySeconds": 0.3, "transactionId": "x"},
                     {"queue": queue, "payload": 3, "delaySeconds": 0.3, "transactionId": "x"}, later(queue, 4)]
            cur.execute("select queen.push_messages_v2(%s)", (json.dumps(items),))
            answers = cur.fetchone()[0]
            assert [r["status"] for r in answers] == ["queued", "scheduled", "duplicate", "scheduled"]
            assert answers[2]["message_id"] == answers[1]["message_id"] and answers[3]["scheduled_at"] == FAR
        assert broker.take(queue) == [] and waiting(sql, queue) == []
        conn.commit()
        got = all_of(broker, queue, 2)
        assert [(m["data"], m["id"]) for m in got] == [(1, answers[0]["message_id"]), (2, answers[1]["message_id"])]
    finally:
        conn.close()


def test_sql_transactions_schedule_too(broker, queue, sql):
    ops = [{"type": "push", "queue": queue, "payload": "now"}, {"type": "push", "queue": queue, "payload": "soon", "delaySeconds": 0.2},
           {"type": "push", "items": [later(queue, "far")]}]
    answer = sql("select queen.execute_transaction_v2(%s)", json.dumps(ops))[0][0]
    assert answer["success"] and [r.get("status") for r in answer["results"]] == [None, "scheduled", "scheduled"]
    assert [(m["data"], m["id"]) for m in all_of(broker, queue, 2)] == [
        ("now", answer["results"][0]["messageId"]), ("soon", answer["results"][1]["messageId"])]
    again = sql("select queen.execute_transaction_v2(%s)",
                json.dumps([{"type": "push", "queue": queue, "payload": 0, "transactionId": "z", "delaySeconds": 9},
                            {"type": "push", "queue": queue, "payload": 0, "transactionId": "z"}]))[0][0]
    assert not again["success"] and "duplicate" in again["error"]
    assert len(waiting(sql, queue)) == 1


def test_streams_refuse_it(broker, queue):
    r = broker.post("/streams/v1/cycle", {"query_id": str(uuid.uuid4()), "partition_id": str(uuid.uuid4()),
                                          "push_items": [{"queue": queue, "payload": 1, "delaySeconds": 5}]})
    assert r.status == 400 and "later" in r.json["error"]


# --- looking, cancelling, rescheduling -------------------------------------------------------------------------------

def listed(broker, **params):
    return broker.get("/api/v1/scheduled?" + urlencode(params)).expect(200).json


def count(broker, **params):
    return broker.get("/api/v1/scheduled/count?" + urlencode(params)).expect(200).json["count"]


def cancel(broker, **params):
    return broker.request("DELETE", "/api/v1/scheduled?" + urlencode(params))


def test_a_list_has_all_fields_but_the_payload(broker, queue):
    (r,) = broker.push([later(queue, {"secret": 1}, partition="p", transactionId="a-1")]).expect(201).json
    page = listed(broker, queue=queue)
    (entry,) = page["scheduled"]
    assert page["next"] is None
    assert entry.pop("bytes") > 10 and entry.pop("createdAt")
    assert entry == {"id": r["scheduleId"], "kind": "push", "queue": queue, "partition": "p", "partitionId": r["partitionId"],
                     "transactionId": "a-1", "correlationId": None, "consumerGroup": None, "attempt": None, "scheduledAt": FAR}


def test_one_is_shown_with_its_payload_as_it_was_sent(broker, queue):
    text = '{"b" : 1.10, "a":[ 1e2 ]}'
    r = broker.post("/api/v1/push", '{"items":[{"queue":"%s","payload":%s,"scheduledAt":"%s"}]}' % (queue, text, FAR)).expect(201).json[0]
    answer = broker.get("/api/v1/scheduled/" + r["scheduleId"]).expect(200)
    assert '"data":%s}' % text in answer.text and answer.json["queue"] == queue and answer.json["transactionId"] == r["transactionId"]
    for unknown in (str(uuid.uuid4()), "no-uuid", r["scheduleId"][:-1] + ("1" if r["scheduleId"].endswith("0") else "0")):
        broker.get("/api/v1/scheduled/" + unknown).expect(404)


def test_filters_and_pages(broker, queue, sql):
    day = [datetime(2033, 3, 1 + i, tzinfo=timezone.utc).isoformat() for i in range(10)]
    items = [{"queue": queue, "partition": "ab"[i % 2], "payload": i, "scheduledAt": day[i % 10],
              "transactionId": "%s_%%-%d" % ("left" if i < 10 else "right", i)} for i in range(30)]
    broker.push(items).expect(201)
    every = [e["transactionId"] for e in listed(broker, queue=queue, limit=1000)["scheduled"]]
    assert every == [items[i + j]["transactionId"] for i in range(10) for j in (0, 10, 20)], "by time, then by arrival"

    def names(**params):
        found, cursor = [], None
        for _ in range(40):
            page = listed(broker, queue=queue, **params, **({"cursor": cursor} if cursor else {}))
            found += [e["transactionId"] for e in page["scheduled"]]
            cursor = page["next"]
            if not cursor:
                return found
        raise AssertionError("pages do not end")

    assert names(limit=4) == every and names(limit=1) == every
    assert names(limit=7, partition="a") == [n for n in every if int(n.rsplit("-", 1)[1]) % 2 == 0]
    some = [n for n in every if int(n.rsplit("-", 1)[1]) % 10 in (3, 4)]
    assert names(**{"from": day[3], "to": day[5]}) == some and count(broker, queue=queue, **{"from": day[3], "to": day[5]}) == 6
    counted = broker.get("/api/v1/scheduled/count?" + urlencode({"queue": queue, "from": day[3], "to": day[6], "bucketSeconds": 12 * 3600})).expect(200).json
    assert counted["count"] == 9 and [b["count"] for b in counted["buckets"]] == [3, 0] * 3
    assert [datetime.fromisoformat(b["from"]) for b in counted["buckets"]] == [datetime.fromisoformat(day[3]) + timedelta(hours=12 * i) for i in range(6)]
    assert names(transactionIdPrefix="left_%") == [n for n in every if n.startswith("left")]
    assert names(transactionIdPrefix="left%") == [] and names(transactionIdPrefix="l") == [n for n in every if n.startswith("l")]
    assert names(kind="push") == every and names(kind="retry") == []
    sql("update queen.scheduled s set correlation_id = 'c-1' from queen.lanes l join queen.queues q on q.id = l.queue_id "
        "where l.num = s.lane and q.name = %s and s.transaction_id like 'right%%'", queue)
    assert names(correlationId="c-1", limit=6) == [n for n in every if n.startswith("right")]
    assert count(broker, correlationId="c-1", queue=queue) == 20 == count(broker, queue=queue, correlationId="c-1", kind="push")
    assert count(broker, queue=queue) == 30 and count(broker, queue=queue, partition="b") == 15
    assert count(broker, queue=queue, partition="none") == 0 == count(broker, queue="no-such-" + queue)
    assert count(broker) >= 30 and len(listed(broker, limit=5)["scheduled"]) == 5


@pytest.mark.parametrize("query", ["kind=cron", "from=yesterdayish", "to=x", "cursor=abc", "partition=p"])
def test_filters_that_mean_nothing_are_refused(broker, query):
    r = broker.get("/api/v1/scheduled?" + query).expect(400)
    assert query.split("=")[0] in r.json["error"]


@pytest.mark.parametrize("query", ["bucketSeconds=60", "bucketSeconds=1&from=2033-03-01T00:00:00Z&to=2033-03-02T00:00:00Z"])
def test_counts_by_time_need_a_bounded_period(broker, query):
    assert "bucketSeconds" in broker.get("/api/v1/scheduled/count?" + query).expect(400).json["error"]


def test_a_cancelled_message_never_comes_and_its_transaction_id_is_free(broker, queue, sql):
    item = {"queue": queue, "payload": 1, "transactionId": "x", "delaySeconds": 0.5}
    (r,) = broker.push([item]).expect(201).json
    assert broker.request("DELETE", "/api/v1/scheduled/" + r["scheduleId"]).expect(200).json == {"cancelled": 1}
    broker.request("DELETE", "/api/v1/scheduled/" + r["scheduleId"]).expect(404)
    broker.request("DELETE", "/api/v1/scheduled/none").expect(404)
    broker.get("/api/v1/scheduled/" + r["scheduleId"]).expect(404)
    (again,) = broker.push([dict(item, payload=2)]).expect(201).json
    assert again["status"] == "scheduled" and again["scheduleId"] != r["scheduleId"]
    # Had the first one waited on, it would have come before.
    assert [m["data"] for m in all_of(broker, queue, 1)] == [2]
    assert broker.take(queue) == []


def test_delivered_messages_cannot_be_cancelled_or_rescheduled(broker, queue):
    (r,) = broker.push([{"queue": queue, "payload": 1, "delaySeconds": 0}]).expect(201).json
    all_of(broker, queue, 1)
    broker.request("DELETE", "/api/v1/scheduled/" + r["scheduleId"]).expect(404)
    broker.request("PATCH", "/api/v1/scheduled/" + r["scheduleId"], {"delaySeconds": 1}).expect(404)


def test_cancelling_by_filter_needs_one(broker, queue):
    assert "filter" in cancel(broker).expect(400).json["error"]
    assert "filter" in cancel(broker, all="false").expect(400).json["error"]
    broker.push([later(queue, i, partition=str(i % 3)) for i in range(9)]).expect(201)
    assert cancel(broker, queue=queue, partition="1").expect(200).json == {"cancelled": 3}
    assert cancel(broker, queue=queue, **{"from": FAR}).expect(200).json == {"cancelled": 6}
    assert cancel(broker, queue=queue).expect(200).json == {"cancelled": 0}


def test_many_are_cancelled_in_steps(broker, queue, sql):
    broker.push([later(queue)]).expect(201)
    sql("insert into queen.scheduled select -g, s.due_at, s.created_at, s.lane, queen.uuid_v7(), gen_random_uuid(), null, 'p', null, null, "
        "null, s.message from queen.scheduled s join queen.lanes l on l.num = s.lane join queen.queues q on q.id = l.queue_id, "
        "generate_series(1, 45000) g where q.name = %s", queue)
    assert cancel(broker, queue=queue).expect(200).json == {"cancelled": 45001}
    assert waiting(sql, queue) == []


def test_another_time_keeps_the_id(broker, queue):
    first, second = broker.push([later(queue, "a"), {"queue": queue, "payload": "b", "delaySeconds": 0.5}]).expect(201).json
    moved = broker.request("PATCH", "/api/v1/scheduled/" + first["scheduleId"], {"delaySeconds": 0.2}).expect(200).json
    assert moved["id"] == first["scheduleId"] and moved["scheduledAt"] != FAR
    gone = broker.request("PATCH", "/api/v1/scheduled/" + second["scheduleId"], {"scheduledAt": "2035-06-07T10:09:10+02:00"}).expect(200).json
    assert gone["scheduledAt"] == "2035-06-07T08:09:10.000Z"
    begin = time.monotonic()
    assert [(m["data"], m["id"]) for m in all_of(broker, queue, 1)] == [("a", first["scheduleId"])]
    assert time.monotonic() - begin < patience(3), "nobody had to find out by himself"
    let_pass(broker, queue, 0.3)
    assert broker.take(queue) == [] and count(broker, queue=queue) == 1


@pytest.mark.parametrize("body, wrong", [({}, "scheduledAt or delaySeconds must be given"), ({"delaySeconds": -1}, "delaySeconds must"),
                                         ({"scheduledAt": "soon"}, "scheduledAt must"), ({"delaySeconds": 1, "scheduledAt": FAR}, "exclude"),
                                         ([], "body")])
def test_another_time_must_be_one(broker, queue, body, wrong):
    (r,) = broker.push([later(queue)]).expect(201).json
    assert wrong in broker.request("PATCH", "/api/v1/scheduled/" + r["scheduleId"], body).expect(400).json["error"]
    assert broker.get("/api/v1/scheduled/" + r["scheduleId"]).json["scheduledAt"] == FAR


def test_cancelling_in_the_moment_of_firing_happens_or_does_not(broker, broker2, queue):
    """Each message is either delivered or reported cancelled, never both and never neither."""
    n = 150
    ids = [r["scheduleId"] for r in broker.push([{"queue": queue, "partition": str(i % 5), "payload": i, "delaySeconds": 0.4 + i / 1000}
                                                 for i in range(n)]).expect(201).json]

    def cancel_all():
        time.sleep(0.35)
        return [broker2.request("DELETE", "/api/v1/scheduled/" + i).status for i in ids]

    statuses = Background(cancel_all).result()
    delivered = {m["id"] for m in broker.drain(queue)}
    wait_until(lambda: count(broker, queue=queue) == 0, 5, "none waits")
    delivered |= {m["id"] for m in broker.drain(queue)}
    cancelled = {i for i, s in zip(ids, statuses) if s == 200}
    assert set(statuses) <= {200, 404}
    assert delivered | cancelled == set(ids) and not delivered & cancelled


# --- queues and their options ----------------------------------------------------------------------------------------

def test_a_full_queue_accepts_scheduled_messages_when_due(broker, queue):
    broker.configure(queue, maxSize=1)
    answers = broker.push([{"queue": queue, "payload": i, "delaySeconds": 0.3} for i in range(3)]).expect(201).json
    assert [r["status"] for r in answers] == ["scheduled"] * 3, "what waits does not count"
    wait_until(lambda: count(broker, queue=queue) == 0, 5, "fired")
    assert broker.push([{"queue": queue, "payload": "more"}]).status == 429
    assert [m["data"] for m in broker.drain(queue)] == [0, 1, 2]


def test_a_deleted_queue_takes_its_waiting_messages_along(broker, queue, sql):
    broker.push([later(queue, transactionId="x"), {"queue": queue, "payload": 1, "delaySeconds": 0.3}]).expect(201)
    broker.request("DELETE", "/api/v1/resources/queues/" + queue).expect(200)
    assert waiting(sql, queue) == [] and count(broker, queue=queue) == 0
    (again,) = broker.push([later(queue, transactionId="x")]).expect(201).json
    assert again["status"] == "scheduled"
    let_pass(broker, queue, 0.3)
    assert broker.take(queue) == [] and count(broker, queue=queue) == 1


def test_clearing_a_queue_keeps_scheduled_messages(broker, queue):
    broker.push([{"queue": queue, "payload": "now"}, {"queue": queue, "payload": "then", "delaySeconds": 0.4, "transactionId": "x"}]).expect(201)
    broker.request("DELETE", "/api/v1/queues/%s/clear" % queue).expect(200)
    (again,) = broker.push([{"queue": queue, "payload": "twice", "transactionId": "x"}]).expect(201).json
    assert again["status"] == "duplicate"
    assert [m["data"] for m in all_of(broker, queue, 1)] == ["then"]


def test_an_unused_partition_with_a_waiting_message_is_kept(broker, queue, sql):
    broker.push([later(queue)]).expect(201)
    sql("update queen.lanes l set created_at = now() - interval '99 days', active_at = now() - interval '99 days' from queen.queues q "
        "where q.id = l.queue_id and q.name = %s", queue)
    wait_until(lambda: sql("select l.active_at > now() - interval '1 day' from queen.lanes l join queen.queues q on q.id = l.queue_id, "
                           "queen.tidy(30, 30, 1000) where q.name = %s limit 1", queue) == [(True,)], 5, "looked at")
    assert len(waiting(sql, queue)) == 1


def test_payloads_of_encrypted_queues_are_sealed_while_they_wait(make_broker, queue, sql):
    b = make_broker(QUEEN_ENCRYPTION_KEY="first:" + "00112233445566778899aabbccddeeff" * 2)
    b.configure(queue, encryptionEnabled=True)
    secret = {"card": "4000-0000-0000-0002"}
    (r,) = b.push([{"queue": queue, "payload": secret, "delaySeconds": 0.6}]).expect(201).json
    answer = b.transaction([{"type": "push", "queue": queue, "payload": secret, "scheduledAt": FAR}])
    assert answer["success"]
    rows = sql("select s.message from queen.scheduled s join queen.lanes l on l.num = s.lane join queen.queues q on q.id = l.queue_id "
               "where q.name = %s", queue)
    assert len(rows) == 2 and all(b"4000-0000" not in bytes(row[0]) for row in rows)
    assert b.get("/api/v1/scheduled/" + r["scheduleId"]).expect(200).json["data"] == secret
    assert [(m["id"], m["data"]) for m in all_of(b, queue, 1)] == [(r["scheduleId"], secret)]


def test_maintenance_holds_firing_back(make_broker, pg, queue):
    b = make_broker(database=pg.create_database("held_%d" % time.monotonic_ns()))
    b.push([{"queue": queue, "payload": 1, "delaySeconds": 0.7}]).expect(201)
    b.post("/api/v1/system/maintenance", {"enabled": True}).expect(200)
    (r,) = b.push([{"queue": queue, "payload": 2, "delaySeconds": 0.7, "transactionId": "x"}]).expect(201).json
    assert r["status"] == "buffered"
    time.sleep(1)
    assert b.take(queue) == [], "nothing comes into queues"
    b.post("/api/v1/system/maintenance", {"enabled": False}).expect(200)
    assert sorted(m["data"] for m in all_of(b, queue, 2)) == [1, 2]


def test_during_an_outage_the_time_is_kept_in_the_file_buffer(make_broker, frail_pg, queue):
    b = make_broker(server=frail_pg, database=frail_pg.create_database("outage_%d" % time.monotonic_ns()))
    b.push([{"queue": queue, "payload": "before", "delaySeconds": 1}]).expect(201)
    frail_pg.halt()
    begin = time.time()
    answers = b.push([{"queue": queue, "payload": "delay", "delaySeconds": 2}, {"queue": queue, "payload": "far", "scheduledAt": FAR},
                      {"queue": queue, "payload": "plain"}]).expect(201).json
    assert [r["status"] for r in answers] == ["buffered"] * 3
    frail_pg.launch()
    got = [(m["data"], m["createdAt"]) for m in all_of(b, queue, 3, timeout=30)]
    assert sorted(d for d, _ in got) == ["before", "delay", "plain"]
    when = datetime.fromisoformat(dict(got)["delay"].replace("Z", "+00:00")).timestamp()
    assert when >= begin + 1.9, "a delay counts from the push"
    assert [e["scheduledAt"] for e in listed(b, queue=queue)["scheduled"]] == [FAR]


# --- the tables ------------------------------------------------------------------------------------------------------

def test_messages_for_any_time_find_their_place(broker, queue, sql):
    rng = random.Random(7)
    times = [at(rng.choice([3600, 86400, 7 * 86400, 90 * 86400, 9 * 365 * 86400]) * rng.random() + 30) for _ in range(60)]
    broker.push([{"queue": queue, "payload": 1, "scheduledAt": t} for t in times[:30]]).expect(201)
    sql("select * from queen.maintain_slices()")
    broker.push([{"queue": queue, "payload": 1, "scheduledAt": t} for t in times[30:]]).expect(201)
    assert len(waiting(sql, queue)) == 60
    assert [e["scheduledAt"] for e in listed(broker, queue=queue)["scheduled"]] == sorted(e["scheduledAt"] for e in listed(broker, queue=queue)["scheduled"])
    assert {r[0] for r in sql("select name from queen.scheduled_slices")} | {"scheduled_far"} == {
        r[0].split(".")[1] for r in sql("select inhrelid::regclass::text from pg_inherits where inhparent = 'queen.scheduled'::regclass")}
    broker.request("PATCH", "/api/v1/scheduled/" + listed(broker, queue=queue)["scheduled"][-1]["id"], {"delaySeconds": 60}).expect(200)
    assert cancel(broker, queue=queue).expect(200).json["cancelled"] == 60


# --- several who fire --------------------------------------------------------------------------------------------------

def test_two_brokers_keep_the_order_of_a_partition(broker, broker2, queue):
    when = at(0.7)
    for i in range(10):
        (broker, broker2)[i % 2].push([{"queue": queue, "payload": i * 50 + j, "scheduledAt": when} for j in range(50)]).expect(201)
    assert [m["data"] for m in all_of(broker, queue, 500)] == list(range(500))


def test_a_session_that_holds_a_partition_stops_that_one_only(broker, queue, pg):
    broker.push([{"queue": queue, "partition": p, "payload": p, "delaySeconds": 0.3} for p in "ab"]).expect(201)
    conn = pg.connect(autocommit=False)
    try:
        with conn.cursor() as cur:
            cur.execute("select queen.push_messages_v2(%s)", (json.dumps([{"queue": queue, "partition": "a", "payload": "sql"}]),))
        assert [m["data"] for m in all_of(broker, queue, 1)] == ["b"]
        conn.commit()
        assert [m["data"] for m in all_of(broker, queue, 2)] == ["sql", "a"]
    finally:
        conn.close()


@pytest.mark.one_broker  # a process counts what it did itself
def test_scheduled_messages_are_in_the_metrics(broker, queue):
    def value(name):
        return sum(float(line.rsplit(" ", 1)[1]) for line in broker.get("/metrics/prometheus").expect(200).text.splitlines()
                   if line.startswith(name))
    before = [value(n) for n in ("queen_scheduled_total", "queen_fired_total", "queen_fired_late_seconds_count")]
    broker.push([{"queue": queue, "payload": i, "delaySeconds": 0.1} for i in range(5)] + [later(queue)]).expect(201)
    all_of(broker, queue, 5)
    after = [value(n) for n in ("queen_scheduled_total", "queen_fired_total", "queen_fired_late_seconds_count")]
    assert after[0] - before[0] == 6
    if not broker.twin:
        assert after[1] - before[1] <= 5 and after[2] - before[2] == after[1] - before[1], "another broker may have fired them"
    assert "queen_scheduled_waiting{" in broker.get("/metrics/prometheus").text
