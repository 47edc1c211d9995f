"""GET /api/v1/messages/timeline: the history of a message, and when it is retried."""
import uuid

import pytest

from harness import urlencode, wait_until

SOON = {"mode": "scheduled", "strategy": "list", "delays": [0.05], "maxAttempts": 3}
LATER = {"mode": "scheduled"}


def timeline(broker, status=200, **params):
    return broker.get("/api/v1/messages/timeline?" + urlencode(params)).expect(status).json


def plain(t):
    return t["status"], t["attempt"], t["maxAttempts"], t["nextAttemptAt"] is not None


def events(m):
    return [(e["event"], e.get("attempt"), e.get("error"), e.get("worker")) for e in m["events"]]


def next_of(broker, queue, group):
    (m,) = broker.take(queue, consumerGroup=group, wait="true", timeout=10000)
    return m


def test_from_push_to_delivery_after_two_failures(broker, queue, group):
    broker.configure(queue, retryPolicy=SOON)
    cid = "campaign " + queue
    (r,) = broker.push([{"queue": queue, "partition": "p", "payload": 1, "transactionId": "t", "correlationId": cid,
                         "eventType": "paid"}]).expect(201).json
    assert plain(timeline(broker, correlationId=cid)) == ("PENDING", 0, 3, False)
    m = next_of(broker, queue, group)
    t = timeline(broker, correlationId=cid)
    assert plain(t) == ("LEASED", 1, 3, False) and events(t["messages"][0])[-1][0] == "delivered"
    broker.ack(m, "failed", error="first", worker="w1")
    t = timeline(broker, correlationId=cid)
    assert t["status"] == "RETRYING" and t["attempt"] == 1
    m = next_of(broker, queue, group)
    assert plain(timeline(broker, correlationId=cid)) == ("LEASED", 2, 3, False)
    broker.ack(m, "failed", error="second", worker="w2", errorCode="E")
    broker.ack(next_of(broker, queue, group), "completed", worker="w3")
    t = timeline(broker, correlationId=cid)
    assert plain(t) == ("DELIVERED", 3, 3, False) and t["correlationId"] == cid
    (m,) = t["messages"]
    assert (m["id"], m["transactionId"], m["queue"], m["partition"], m["eventType"]) == (r["messageId"], "t", queue, "p", "paid")
    assert [(g["consumerGroup"], g["status"], g["attempt"], g["lastError"]) for g in m["consumerGroups"]] == \
        [(group, "DELIVERED", 3, "second")]
    assert events(m) == [("pushed", None, None, None),
                         ("delivered", 1, None, "w1"), ("failed", 1, "first", "w1"), ("retryScheduled", 1, None, "w1"),
                         ("delivered", 2, None, "w2"), ("failed", 2, "second", "w2"), ("retryScheduled", 2, None, "w2"),
                         ("delivered", 3, None, "w3"), ("completed", 3, None, "w3")]
    at = [e["at"] for e in m["events"]]
    assert at == sorted(at)
    for how in ({"transactionId": "t", "queue": queue}, {"transactionId": "t", "queue": queue, "partition": "p"},
                {"messageId": r["messageId"]}):
        assert timeline(broker, **how) == t
    assert timeline(broker, status=404, transactionId="t", queue=queue, partition="q")


def test_when_the_next_attempt_is(broker, queue, group):
    broker.configure(queue, retryPolicy=LATER)
    broker.put(queue, [1], ids=["t"])
    r = broker.ack(next_of(broker, queue, group), "failed")
    # No correlation id was pushed: the transaction id has become it.
    t = timeline(broker, correlationId="t")
    mine = [m for m in t["messages"] if m["queue"] == queue]
    assert mine[0]["nextAttemptAt"][:22] == r["nextAttemptAt"][:22] and mine[0]["maxAttempts"] == 29
    assert plain(timeline(broker, transactionId="t", queue=queue)) == ("RETRYING", 1, 29, True)


def test_each_group_has_its_own_state_and_the_worst_is_reported(broker, queue, group):
    broker.configure(queue, retryPolicy={**LATER, "nonRetryable": ["X"]})
    broker.put(queue, [1], ids=["t"])
    a, b, c, d = (group + x for x in "abcd")
    broker.ack(next_of(broker, queue, a))
    assert timeline(broker, transactionId="t", queue=queue)["status"] == "DELIVERED"
    next_of(broker, queue, b)
    assert timeline(broker, transactionId="t", queue=queue)["status"] == "LEASED"
    broker.ack(next_of(broker, queue, c), "failed", errorCode="X")
    assert timeline(broker, transactionId="t", queue=queue)["status"] == "FAILED"
    broker.ack(next_of(broker, queue, d), "failed")
    t = timeline(broker, transactionId="t", queue=queue)
    assert t["status"] == "RETRYING"
    assert {g["consumerGroup"]: g["status"] for g in t["messages"][0]["consumerGroups"]} == \
        {a: "DELIVERED", b: "LEASED", c: "FAILED", d: "RETRYING"}
    assert plain(timeline(broker, transactionId="t", queue=queue, consumerGroup=c))[:2] == ("FAILED", 1)


def test_inline_failures_are_in_the_timeline(broker, queue, group):
    broker.configure(queue, retryLimit=2)
    broker.put(queue, [1, 2], ids=["t", "u"])
    for error in ("one", "two"):
        ms = broker.take(queue, batch=2, consumerGroup=group)
        broker.ack_batch([broker.ack_entry(m, "failed", error=error) for m in ms], group=group)
        assert timeline(broker, transactionId="t", queue=queue)["status"] == "RETRYING"
    ms = broker.take(queue, batch=2, consumerGroup=group)
    broker.ack_batch([broker.ack_entry(m, "completed") for m in ms], group=group)
    for name in ("t", "u"):
        t = timeline(broker, transactionId=name, queue=queue)
        assert plain(t) == ("DELIVERED", 3, 3, False)
        assert [e[0] for e in events(t["messages"][0])] == ["pushed", "delivered", "failed", "redelivery", "delivered", "failed",
                                                            "redelivery", "delivered", "completed"]


def test_messages_that_never_fail_leave_nothing_behind(broker, queue, group, sql):
    broker.put(queue, list(range(5)))
    broker.ack_batch([broker.ack_entry(m) for m in broker.take(queue, batch=5, consumerGroup=group)], group=group)
    assert sql("select count(*) from queen.attempts where grp = %s", group) == [(0,)]
    assert sql("select count(*) from queen.correlations c join queen.lanes l on l.num = c.lane join queen.queues q on q.id = l.queue_id"
               " where q.name = %s", queue) == [(0,)]


def test_one_that_waits_for_its_time_keeps_its_correlation(broker, queue, group):
    cid = "c-" + queue
    (r,) = broker.push([{"queue": queue, "payload": 1, "correlationId": cid, "delaySeconds": 1}]).expect(201).json
    t = timeline(broker, correlationId=cid)
    assert (t["status"], t["attempt"]) == ("SCHEDULED", 0) and t["nextAttemptAt"][:22] == r["scheduledAt"][:22]
    assert [e["event"] for e in t["messages"][0]["events"]] == ["scheduled"]
    assert timeline(broker, messageId=r["messageId"])["status"] == "SCHEDULED"
    m = next_of(broker, queue, group)
    assert m["correlationId"] == cid and m["id"] == r["messageId"]
    assert timeline(broker, correlationId=cid)["status"] == "LEASED"


@pytest.mark.parametrize("more", [{}, {"correlationId": "c"}, {"transactionId": "t"}], ids=lambda m: "".join(m) or "bare")
def test_one_that_waited_is_found_by_its_id_alone(broker, queue, group, sql, more):
    items = [{"queue": queue, "payload": i, "delaySeconds": 0.2, **({k: v + queue + str(i) for k, v in more.items()})} for i in range(3)]
    ids = [r["messageId"] for r in broker.push(items).expect(201).json]
    got = []
    wait_until(lambda: got.extend(broker.take(queue, batch=3, consumerGroup=group)) or len(got) == 3, 10, "the messages")
    t = timeline(broker, messageId=ids[1])
    assert t["status"] == "LEASED" and [m["id"] for m in t["messages"]] == [ids[1]]
    assert t["correlationId"] == items[1].get("correlationId")
    broker.ack_batch([broker.ack_entry(m) for m in got], group=group)
    assert timeline(broker, messageId=ids[1])["status"] == "DELIVERED"
    broker.request("DELETE", "/api/v1/queues/%s/clear" % queue).expect(200)
    assert timeline(broker, status=404, messageId=ids[1])
    assert sql("select count(*) from queen.correlations where correlation = any (%s::uuid[])", ids) == [(0,)]


def test_several_messages_of_one_correlation_across_queues_and_ways(broker, queue, group, sql):
    cid = "c-" + queue
    broker.push([{"queue": queue + str(i), "payload": i, "correlationId": cid} for i in range(3)])
    broker.transaction([{"type": "push", "queue": queue + "3", "payload": 3, "correlationId": cid}])
    sql("select queen.push_messages_v2(jsonb_build_array(jsonb_build_object('queue', %s::text, 'payload', 4, 'correlationId', %s::text)))",
        queue + "4", cid)
    t = timeline(broker, correlationId=cid)
    assert sorted(m["queue"] for m in t["messages"]) == [queue + str(i) for i in range(5)]
    # They go with the messages.
    broker.request("DELETE", "/api/v1/resources/queues/" + queue + "0").expect(200)
    broker.request("DELETE", "/api/v1/queues/%s1/clear" % queue).expect(200)
    assert sorted(m["queue"] for m in timeline(broker, correlationId=cid)["messages"]) == [queue + str(i) for i in (2, 3, 4)]
    assert sql("select count(*) from queen.correlations where correlation = queen.transaction_key(%s)", cid) == [(3,)]


def test_a_cancelled_retry_is_a_dead_letter(broker, queue, group, sql):
    broker.configure(queue, retryPolicy=LATER)
    broker.put(queue, [1], ids=["t"])
    broker.ack(next_of(broker, queue, group), "failed", error="boom")
    (w,) = broker.get("/api/v1/scheduled?queue=" + queue).expect(200).json["scheduled"]
    assert (w["kind"], w["queue"], w["partition"], w["consumerGroup"], w["attempt"], w["correlationId"]) == \
        ("retry", queue, "Default", group, 2, "t")
    broker.request("DELETE", "/api/v1/scheduled/" + w["id"]).expect(200)
    t = timeline(broker, transactionId="t", queue=queue)
    assert plain(t)[0] == "FAILED" and events(t["messages"][0])[-1][0] == "retryCancelled"
    (d,) = broker.get("/api/v1/dlq?queue=" + queue).json["messages"]
    assert (d["errorMessage"], d["consumerGroup"], d["retryCount"]) == ("boom", group, 0)


def test_old_history_goes(broker, queue, group, sql):
    broker.configure(queue, retryPolicy=LATER)
    broker.put(queue, [1, 2], ids=["t", "u"])
    for m in broker.take(queue, batch=2, consumerGroup=group):
        broker.ack(m, "failed")
    sql("update queen.attempts set at = now() - interval '91 days' where grp = %s and transaction_id = 't'", group)
    assert sql("select queen.trim_attempts(90, 1000)") == [(False,)]
    assert sql("select transaction_id from queen.attempts where grp = %s", group) == [("u",)]
    # It is retried all the same.
    assert timeline(broker, transactionId="t", queue=queue)["status"] == "RETRYING"


@pytest.mark.parametrize("params, word", [
    ({}, "correlationId"), ({"messageId": "x"}, "messageId must be a UUID"), ({"correlationId": "x", "transactionId": "y"}, "only one of"),
    ({"messageId": str(uuid.UUID(int=1)), "transactionId": "y"}, "only one of"), ({"correlationId": "x", "partition": "p"}, "queue")])
def test_bad_questions(broker, params, word):
    assert word in timeline(broker, status=400, **params)["error"]


def test_queue_and_partition_limit_every_kind_of_id(broker, queue, group):
    broker.configure(queue, retryPolicy=LATER)
    other = queue + "-other"
    broker.push([{"queue": q, "partition": p, "payload": 1, "transactionId": "%s-%s" % (q, p), "correlationId": queue}
                 for q in (queue, other) for p in ("a", "b")] +
                [{"queue": q, "payload": 1, "delaySeconds": 3600, "correlationId": queue} for q in (queue, other)]).expect(201)
    for m in broker.take(queue, consumerGroup=group, batch=9, partitions=9):
        assert broker.ack(m, "failed")["success"]
    found = lambda **params: timeline(broker, correlationId=queue, **params)
    assert found()["total"] == 6
    assert {m["queue"] for m in found(queue=other)["messages"]} == {other} and found(queue=other)["total"] == 3
    assert (found(queue=other)["status"], found(queue=queue)["status"]) == ("PENDING", "RETRYING")
    only = found(queue=queue, partition="b")
    assert [(m["queue"], m["partition"], m["status"]) for m in only["messages"]] == [(queue, "b", "RETRYING")]
    the_id = only["messages"][0]["id"]
    assert timeline(broker, messageId=the_id, queue=queue, partition="b")["total"] == 1
    for params in ({"correlationId": queue, "queue": "none-" + queue}, {"messageId": the_id, "queue": other},
                   {"messageId": the_id, "queue": queue, "partition": "a"}):
        timeline(broker, status=404, **params)


def test_unknown_ones(broker, queue):
    broker.put(queue, [1])
    for params in ({"correlationId": "none-" + queue}, {"messageId": str(uuid.uuid4())}, {"transactionId": "none", "queue": queue},
                   {"transactionId": "none", "queue": "none-" + queue}):
        assert timeline(broker, status=404, **params)["error"]


@pytest.mark.one_broker  # a process counts what it did itself
def test_metrics_count_retries_and_the_end_of_them(broker, queue, group):
    def value(name):
        text = broker.get("/metrics/prometheus").expect(200).text
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))

    before = [value(n) for n in ('queen_retries_scheduled_total{attempt="1"}', "queen_retries_exhausted_total ")]
    broker.configure(queue, retryPolicy={**LATER, "nonRetryable": ["X"]})
    broker.put(queue, [1, 2])
    a, b = broker.take(queue, batch=2, consumerGroup=group)
    broker.ack(a, "failed")
    broker.ack(b, "failed", errorCode="X")
    wait_until(lambda: [value(n) for n in ('queen_retries_scheduled_total{attempt="1"}', "queen_retries_exhausted_total ")]
               == [before[0] + 1, before[1] + 1], 5, "the counters")
