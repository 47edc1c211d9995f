"""Scheduled retries: a failed message leaves its partition and is delivered again to its group when it is due."""
import uuid

import pytest

from harness import Background, is_blocked, wait_for_figures, wait_until



SOON = {"mode": "scheduled", "strategy": "list", "delays": [0.05], "maxAttempts": 3}
LATER = {"mode": "scheduled"}


def dlq(broker, queue, **params):
    return broker.get("/api/v1/dlq?queue=" + queue).expect(200).json["messages"]


def waiting(pg, queue):
    """Retries that wait: (group, attempt, seconds until due)."""
    with pg.connect() as conn, conn.cursor() as cur:
        cur.execute("""select w.grp, w.attempt, extract(epoch from w.due_at - w.created_at)::float8
                         from queen.scheduled w join queen.lanes r on r.num = w.lane join queen.queues q on q.id = r.origin_queue
                        where q.name = %s and w.kind = 'r' order by w.num""", (queue,))
        return cur.fetchall()


def lanes(pg, queue):
    with pg.connect() as conn, conn.cursor() as cur:
        cur.execute("""select r.num, (select count(*) from queen.segments s where s.lane = r.num)
                         from queen.lanes r join queen.queues q on q.id = r.origin_queue where q.name = %s order by r.num""", (queue,))
        return cur.fetchall()


def fail(broker, message, error="boom", **more):
    return broker.ack(message, "failed", error=error, **more)


def next_of(broker, queue, group=None, **params):
    (m,) = broker.take(queue, consumerGroup=group, batch=1, wait="true", timeout=10000, **params)
    return m


def test_the_rest_of_the_partition_is_delivered(broker, queue, group, pg):
    broker.configure(queue, retryPolicy=LATER)
    broker.put(queue, [1, 2, 3, 4])
    ms = broker.take(queue, batch=4, consumerGroup=group)
    results = broker.ack_batch([broker.ack_entry(ms[0], "completed"), broker.ack_entry(ms[1], "failed", error="boom"),
                                broker.ack_entry(ms[2], "completed"), broker.ack_entry(ms[3], "failed")], group=group)
    assert [r["success"] for r in results] == [True] * 4 and [r["dlq"] for r in results] == [False] * 4
    assert [r.get("nextAttempt") for r in results] == [None, 2, None, 2]
    assert results[3]["leaseReleased"] is True
    # Ten seconds is the first step of fibonacci.
    assert [(g, n, round(s)) for g, n, s in waiting(pg, queue)] == [(group, 2, 10)] * 2
    broker.put(queue, [5])
    assert [m["data"] for m in broker.take(queue, batch=10, consumerGroup=group)] == [5]
    assert dlq(broker, queue) == []


def test_a_retry_is_delivered_only_to_its_group_with_its_history(broker, queue, group, pg):
    other = group + "-other"
    broker.configure(queue, retryPolicy=SOON)
    broker.push([{"queue": queue, "partition": "p", "transactionId": "t-1", "payload": {"a":  1}}])
    first = next_of(broker, queue, group)
    assert [m["data"] for m in broker.take(queue, consumerGroup=other)] == [{"a": 1}]
    assert "attempt" not in first
    r = fail(broker, first, error="first")
    again = next_of(broker, queue, group)
    assert (again["attempt"], again["lastError"], again["correlationId"]) == (2, "first", "t-1")
    assert again["firstFailedAt"] < again["createdAt"] and r["nextAttemptAt"] <= again["createdAt"]
    for name in ("id", "transactionId", "data", "traceId", "producerSub", "partition", "queue", "consumerGroup"):
        assert again[name] == first[name], name
    r = fail(broker, again, error="second")
    assert r["nextAttempt"] == 3
    third = next_of(broker, queue, group)
    assert (third["attempt"], third["lastError"], third["firstFailedAt"]) == (3, "second", again["firstFailedAt"])
    broker.ack(third)
    assert broker.take(queue, consumerGroup=group, wait="true", timeout=300) == []
    assert broker.take(queue, consumerGroup=other) == []
    assert waiting(pg, queue) == [] and dlq(broker, queue) == []


def test_after_the_last_attempt_it_is_a_dead_letter_with_its_history(broker, queue, group):
    broker.configure(queue, retryPolicy=SOON)
    broker.put(queue, ["x"], partition="p", ids=["t-1"])
    for n in (1, 2, 3):
        m = next_of(broker, queue, group)
        r = fail(broker, m, error="no %d" % n, errorCode="E%d" % n, worker="w%d" % n)
        assert r["dlq"] is (n == 3)
    (d,) = dlq(broker, queue)
    assert (d["transactionId"], d["partition"], d["consumerGroup"], d["errorMessage"], d["retryCount"], d["status"], d["data"]) == \
        ("t-1", "p", group, "no 3", 2, "FAILED", "x")
    assert [(a["attempt"], a["outcome"], a["error"], a["errorCode"], a["worker"]) for a in d["attempts"]] == \
        [(n, "dlq" if n == 3 else "retry", "no %d" % n, "E%d" % n, "w%d" % n) for n in (1, 2, 3)]
    detail = broker.get("/api/v1/messages/%s/t-1" % m["partitionId"]).expect(200).json
    assert detail["status"] == "dead_letter" and len(detail["attempts"]) == 3
    assert detail["partition"] == "p" and detail["partitionId"] == m["partitionId"]


def test_errors_that_are_not_worth_it_are_dead_at_once(broker, queue, group, pg):
    broker.configure(queue, retryPolicy={"mode": "scheduled", "nonRetryable": ["BAD_CARD"]})
    broker.put(queue, [1, 2])
    a, b = broker.take(queue, batch=2, consumerGroup=group)
    r = fail(broker, a, errorCode="BAD_CARD")
    assert r["dlq"] is True
    r = fail(broker, b, errorCode="TIMEOUT")
    assert r["dlq"] is False and len(waiting(pg, queue)) == 1 and len(dlq(broker, queue)) == 1


def test_inline_policies_support_codes_attempts_and_delays(broker, queue, group):
    broker.configure(queue, retryLimit=9, retryPolicy={"maxAttempts": 2, "nonRetryable": ["BAD"], "strategy": "fixed", "base": 0.3})
    broker.put(queue, [1, 2])
    a = next_of(broker, queue, group)
    r = fail(broker, a, errorCode="BAD")
    assert r["dlq"] is True
    b = next_of(broker, queue, group)
    r = fail(broker, b)
    assert r["dlq"] is False and r["leaseReleased"] is True and "nextAttempt" not in r
    assert broker.take(queue, consumerGroup=group) == []
    b = next_of(broker, queue, group)
    assert b["data"] == 2 and b["retryCount"] == 1
    r = fail(broker, b)
    assert r["dlq"] is True


def test_message_and_event_type_override_the_queue(broker, queue, group, pg):
    broker.configure(queue, retryPolicy={"byType": {"paid": {"mode": "scheduled", "strategy": "fixed", "base": 7}}})
    broker.push([{"queue": queue, "payload": 1, "eventType": "paid"},
                 {"queue": queue, "payload": 2, "eventType": "paid", "retryPolicy": {"base": 9}},
                 {"queue": queue, "payload": 3, "retryPolicy": {"mode": "scheduled", "strategy": "fixed", "base": 3}},
                 {"queue": queue, "payload": 4, "eventType": "paid", "retryPolicy": {"maxAttempts": 1}},
                 {"queue": queue, "payload": 5, "eventType": "other"}])
    for m in broker.take(queue, batch=5, consumerGroup=group):
        r = fail(broker, m)
        assert r["dlq"] is (m["data"] == 4)
    assert [round(s) for _, _, s in waiting(pg, queue)] == [7, 9, 3]
    (m,) = broker.take(queue, batch=5, consumerGroup=group)
    assert m["data"] == 5 and m["retryCount"] == 1


def test_a_pop_of_the_partition_gets_its_retries(broker, queue, group):
    broker.configure(queue, retryPolicy=SOON)
    broker.put(queue, ["a"], partition="p")
    broker.put(queue, ["b"], partition="q")
    fail(broker, next_of(broker, queue, group, partition="p"))
    fail(broker, next_of(broker, queue, group, partition="q"))
    again = next_of(broker, queue, group, partition="p")
    assert (again["data"], again["attempt"], again["partition"]) == ("a", 2, "p")
    assert broker.take(queue, partition="p", consumerGroup=group) == []
    assert next_of(broker, queue, group, partition="q")["data"] == "b"


def test_many_retries_in_one_batch_and_an_expired_lease(broker, queue, group):
    broker.configure(queue, leaseTime=1, retryPolicy=SOON)
    broker.put(queue, list(range(20)))
    broker.ack_batch([broker.ack_entry(m, "failed") for m in broker.take(queue, batch=20, consumerGroup=group)], group=group)
    got = wait_until(lambda: broker.take(queue, batch=20, consumerGroup=group), 5, "the retries")
    assert [m["data"] for m in got] == list(range(len(got))) and {m["attempt"] for m in got} == {2}
    # Without an acknowledgement the lease of the retries expires, and the same retries are delivered again in order.
    again = wait_until(lambda: broker.take(queue, batch=20, consumerGroup=group), 5, "the lease to end")
    assert [(m["id"], m["attempt"]) for m in again[:len(got)]] == [(m["id"], m["attempt"]) for m in got]


def test_status_retry_and_transactions_ignore_the_policy(broker, queue, group, pg):
    broker.configure(queue, retryPolicy=LATER)
    broker.put(queue, [1])
    m = next_of(broker, queue, group)
    broker.ack(m, "retry")
    m = next_of(broker, queue, group)
    assert "attempt" not in m and waiting(pg, queue) == []
    r = broker.transaction([{"type": "ack", "transactionId": m["transactionId"], "partitionId": m["partitionId"],
                             "consumerGroup": group, "status": "failed", "error": "in a transaction"}])
    assert r["success"] is True and waiting(pg, queue) == []
    (d,) = dlq(broker, queue)
    assert d["errorMessage"] == "in a transaction" and len(d["attempts"]) == 1


def test_a_late_failure_of_something_done_changes_nothing(broker, queue, group, pg):
    broker.configure(queue, retryPolicy=LATER)
    broker.put(queue, [1])
    m = next_of(broker, queue, group)
    broker.ack(m)
    broker.ack(m, "failed", lease=False)
    broker.ack(m, "failed", lease=False)
    assert waiting(pg, queue) == [] and dlq(broker, queue) == []
    fail_once = broker.put(queue, [2]) and next_of(broker, queue, group)
    fail(broker, fail_once)
    broker.ack(fail_once, "failed", lease=False)
    assert len(waiting(pg, queue)) == 1


def test_retry_lanes_are_no_partitions(broker, queue, group, pg):
    broker.configure(queue, retryPolicy=SOON)
    broker.put(queue, [1, 2, 3], partition="p")
    for m in broker.take(queue, batch=3, consumerGroup=group):
        fail(broker, m)
    wait_until(lambda: waiting(pg, queue) == [], 5, "the retries to be due")
    wait_for_figures(broker, lambda: broker.get("/api/v1/resources/queues/" + queue).expect(200).json["totals"]["total"] == 3, "counted")
    r = broker.get("/api/v1/resources/queues/" + queue).expect(200).json
    assert [p["name"] for p in r["partitions"]] == ["p"]
    (p,) = broker.get("/api/v1/resources/partitions?queue=" + queue).expect(200).json["partitions"]
    assert p["name"] == "p" and p["messages"]["total"] == 3
    s = broker.get("/api/v1/status/queues/" + queue).expect(200).json
    assert [p["name"] for p in s["partitions"]] == ["p"]
    g = broker.get("/api/v1/consumer-groups/" + group).expect(200).json
    assert g[queue]["partitions"] and {p["partition"] for p in g[queue]["partitions"]} == {"Default", "p"}
    with pg.connect() as conn, conn.cursor() as cur:
        for view in ("partitions", "partition_lookup"):
            cur.execute("select count(*) from queen.%s v join queen.lanes l on l.id = v.id where l.origin is not null" % view)
            assert cur.fetchone()[0] == 0
        cur.execute("select count(*) from queen.messages m join queen.partitions p on p.id = m.partition_id"
                    " join queen.queues q on q.id = p.queue_id where q.name = %s", (queue,))
        assert cur.fetchone()[0] == 3


def test_a_retry_lane_does_not_grow(broker, queue, group, pg):
    broker.configure(queue, retryPolicy={"mode": "scheduled", "strategy": "fixed", "base": 0.001, "maxAttempts": 50})
    broker.put(queue, [1])
    for n in range(8):
        fail(broker, next_of(broker, queue, group))
    broker.ack(next_of(broker, queue, group))
    ((_, segments),) = lanes(pg, queue)
    assert segments == 1


@pytest.mark.parametrize("how", ["queue", "clear", "group", "message"])
def test_retries_are_deleted_with_queue_messages_or_group(broker, queue, group, pg, how):
    broker.configure(queue, retryPolicy=LATER)
    broker.put(queue, [1, 2], ids=["a", "b"])
    ms = broker.take(queue, batch=2, consumerGroup=group)
    for m in ms:
        fail(broker, m)
    assert len(waiting(pg, queue)) == 2 and len(lanes(pg, queue)) == 1
    if how == "queue":
        broker.request("DELETE", "/api/v1/resources/queues/" + queue).expect(200)
    elif how == "clear":
        broker.request("DELETE", "/api/v1/queues/%s/clear" % queue).expect(200)
    elif how == "group":
        r = broker.request("DELETE", "/api/v1/consumer-groups/%s" % group).expect(200).json
        assert r["deletedPartitions"] == 1
    else:
        broker.request("DELETE", "/api/v1/messages/%s/a" % ms[0]["partitionId"]).expect(200)
    with pg.connect() as conn, conn.cursor() as cur:
        cur.execute("select count(*) from queen.scheduled where grp = %s", (group,))
        assert cur.fetchone()[0] == (1 if how == "message" else 0)
        cur.execute("select count(*) from queen.attempts where grp = %s", (group,))
        assert cur.fetchone()[0] == {"message": 1, "group": 2}.get(how, 0)
        cur.execute("select count(*) from queen.lanes where name = %s", (group,))
        assert cur.fetchone()[0] == (1 if how == "message" else 0)


def test_sealed_messages_stay_sealed(make_broker, queue, group, pg):
    broker = make_broker(QUEEN_ENCRYPTION_KEY="k:" + "00" * 32)
    broker.configure(queue, encryptionEnabled=True, retryPolicy=SOON)
    secret = uuid.uuid4().hex
    broker.put(queue, [{"card": secret}])
    m = next_of(broker, queue, group)
    assert m["data"] == {"card": secret}
    fail(broker, m)
    with pg.connect() as conn, conn.cursor() as cur:
        cur.execute("select count(*) from queen.scheduled where position(%s::bytea in message) > 0", (secret.encode(),))
        assert cur.fetchone()[0] == 0
    assert next_of(broker, queue, group)["data"] == {"card": secret}


def test_acks_by_sql_take_codes_and_workers(broker, queue, group, pg):
    broker.configure(queue, retryPolicy={"mode": "scheduled", "nonRetryable": ["X"]})
    broker.put(queue, [1], ids=["t"])
    m = next_of(broker, queue, group)
    with pg.connect() as conn, conn.cursor() as cur:
        cur.execute("select queen.ack_messages_v2(jsonb_build_array(jsonb_build_object('transactionId', 't', 'partitionId', %s::text,"
                    " 'leaseId', %s::text, 'consumerGroup', %s::text, 'status', 'failed', 'error', 'e', 'errorCode', 'X', 'worker', 'w')))",
                    (m["partitionId"], m["leaseId"], group))
        assert cur.fetchone()[0][0]["dlq"] is True
    (d,) = dlq(broker, queue)
    assert (d["attempts"][0]["errorCode"], d["attempts"][0]["worker"]) == ("X", "w")


@pytest.mark.parametrize("path", ["/api/v1/resources/queues/{queue}", "/api/v1/consumer-groups/{group}"])
def test_deleting_and_an_acknowledgement_of_partitions_and_retries_cannot_deadlock(broker, queue, group, pg, path):
    """Consumers are locked by number, those of retry lanes among the others: here partition, retry lane, partition."""
    broker.configure(queue, retryPolicy=LATER)
    for partition in ("p1", "p2"):
        broker.put(queue, [1], partition)
        fail(broker, next_of(broker, queue, group, partition=partition))
    with pg.connect(autocommit=False) as settling, settling.cursor() as cur:
        cur.execute("""select c.num, l.origin is not null from queen.consumers c join queen.lanes l on l.num = c.lane
                        where c.grp = %s order by c.num""", (group,))
        (first, _), (retry, is_retry), (last, _), _ = cur.fetchall()
        assert is_retry

        def lock(consumer):
            cur.execute("select from queen.consumers where num = %s for no key update", (consumer,))
        lock(retry)
        deleting = Background(lambda: broker.request("DELETE", path.format(queue=queue, group=group)))
        # Deleting a queue leaves what others hold for later.
        wait_until(lambda: deleting.done or is_blocked(pg), 10, "the deletion ends or waits")
        lock(last)
        settling.commit()
    deleting.result().expect(200)
