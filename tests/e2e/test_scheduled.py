"""Scheduled delivery: pushes that wait for their time (docs/scheduled-delivery.md)."""
import json
import time
import uuid
from datetime import datetime, timedelta, timezone

import pytest

from harness import Background, uuid7, wait_until

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


# --- pushing ---------------------------------------------------------------------------------------------------------

def test_the_answer_tells_the_id_and_the_time_and_the_message_has_both(broker, queue):
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
def test_what_is_no_time_is_refused_and_nothing_is_stored(broker, queue, sql, fields, wrong):
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


def test_earlier_times_come_first_whatever_was_scheduled_first(broker, queue):
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
    item = {"queue": queue, "payload": "first", "transactionId": tx, "delaySeconds": 1}
    (first,) = broker.push([item]).expect(201).json
    plain = {"queue": queue, "payload": "second", "transactionId": tx}
    for b in (broker, broker2):
        answers = b.push([plain, item, dict(item, delaySeconds=0), plain]).expect(201).json
        assert [(r["status"], r["messageId"]) for r in answers] == [("duplicate", first["messageId"])] * 4
    (message,) = all_of(broker, queue, 1)
    assert (message["id"], message["data"]) == (first["messageId"], "first")
    for b in (broker, broker2):
        answers = b.push([plain, item]).expect(201).json
        assert [(r["status"], r["messageId"]) for r in answers] == [("duplicate", first["messageId"])] * 2
    assert broker.take(queue) == []


def test_what_was_pushed_before_makes_a_scheduled_one_a_duplicate(broker, queue, sql):
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
