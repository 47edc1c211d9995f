"""POST /api/v1/dlq/redrive: dead letters are delivered again."""
import pytest

from harness import Background, is_blocked, urlencode, wait_until

NEVER = {"mode": "scheduled", "maxAttempts": 1}


def redrive(broker, status=200, **body):
    return broker.post("/api/v1/dlq/redrive", body).expect(status).json


def dlq(broker, queue):
    return broker.get("/api/v1/dlq?limit=1000&queue=" + queue).expect(200).json["messages"]


def bury(broker, queue, n, group, error="boom", partition="p", configure=True):
    if configure:
        broker.configure(queue, retryPolicy=NEVER)
    broker.put(queue, [{"no": i} for i in range(n)], partition=partition, ids=["%s-%d" % (partition, i) for i in range(n)])
    for m in broker.take(queue, partition=partition, batch=n, consumerGroup=group):
        broker.ack(m, "failed", error=error)


def due(broker, queue, group, n=1, **params):
    got = []
    while len(got) < n:
        some = broker.take(queue, consumerGroup=group, batch=100, wait="true", timeout=10000, **params)
        assert some, "only %d of %d" % (len(got), n)
        broker.ack_batch([broker.ack_entry(m) for m in some], group=group)
        got += some
    return got


def test_by_filter_back_to_the_group_that_gave_up(broker, queue, group):
    other = group + "-other"
    bury(broker, queue, 3, group)
    assert len(broker.take(queue, batch=9, consumerGroup=other)) == 3
    answer = redrive(broker, queue=queue)
    assert answer["redriven"] == 3 and answer["more"] is False
    assert redrive(broker, queue=queue) == {"redriven": 0, "more": False, "lastDueAt": None}
    assert dlq(broker, queue) == []
    got = due(broker, queue, group, 3)
    assert [(m["data"]["no"], m["attempt"], m["lastError"], m["partition"]) for m in got] == [(i, 1, "boom", "p") for i in range(3)]
    assert broker.take(queue, batch=9, consumerGroup=group) == [] == broker.take(queue, batch=9, consumerGroup=other)
    t = broker.get("/api/v1/messages/timeline?" + urlencode({"transactionId": "p-0", "queue": queue, "consumerGroup": group})).json
    assert t["status"] == "DELIVERED"
    assert [e["event"] for e in t["messages"][0]["events"]] == ["pushed", "delivered", "failed", "deadLettered", "redriven", "delivered",
                                                                "completed"]


def test_attempts_restart_and_history_stays(broker, queue, group):
    bury(broker, queue, 1, group)
    broker.configure(queue, retryPolicy={"mode": "scheduled", "strategy": "fixed", "base": 0.05, "maxAttempts": 2})
    redrive(broker, queue=queue)
    for n in (1, 2):
        (m,) = broker.take(queue, consumerGroup=group, wait="true", timeout=10000)
        assert m["attempt"] == n
        assert broker.ack(m, "failed", error="again")["dlq"] is (n == 2)
    (d,) = dlq(broker, queue)
    assert [(a["attempt"], a["outcome"]) for a in d["attempts"]] == [(1, "dlq"), (0, "redriven"), (1, "retry"), (2, "dlq")]


def test_by_id_once_even_if_repeated(broker, queue, group):
    bury(broker, queue, 3, group)
    letters = dlq(broker, queue)
    ids = [letters[0]["dlqId"], letters[1]["id"]]
    assert redrive(broker, ids=ids)["redriven"] == 2
    assert redrive(broker, ids=ids)["redriven"] == 0
    assert [d["dlqId"] for d in dlq(broker, queue)] == [letters[2]["dlqId"]]
    assert sorted(m["id"] for m in due(broker, queue, group, 2)) == sorted([letters[0]["id"], letters[1]["id"]])


def test_filters(broker, queue, group):
    bury(broker, queue, 2, group, error="Connection TIMEOUT", partition="a")
    bury(broker, queue, 1, group, error="bad card", partition="b", configure=False)
    bury(broker, queue, 1, group + "2", error="bad card", partition="c", configure=False)
    assert redrive(broker, queue=queue, error="timeout", partition="b")["redriven"] == 0
    assert redrive(broker, queue=queue, **{"from": "2999-01-01T00:00:00Z"})["redriven"] == 0
    assert redrive(broker, queue=queue, to="2001-01-01")["redriven"] == 0
    assert redrive(broker, queue=queue, error="timeout", limit=1) | {"lastDueAt": 0} == {"redriven": 1, "more": True, "lastDueAt": 0}
    assert redrive(broker, queue=queue, error="timeout")["redriven"] == 1
    assert redrive(broker, queue=queue, consumerGroup=group + "2")["redriven"] == 1
    assert redrive(broker, queue=queue, partition="b")["redriven"] == 1


def test_to_another_queue_as_new_messages(broker, queue, group):
    target = queue + "-repair"
    bury(broker, queue, 2, group, partition="acct")
    letters = dlq(broker, queue)
    assert redrive(broker, queue=queue, targetQueue=target)["redriven"] == 2
    assert redrive(broker, ids=[d["dlqId"] for d in letters], targetQueue=target)["redriven"] == 0
    got = due(broker, target, group, 2)
    assert sorted(m["transactionId"] for m in got) == sorted("redrive-" + d["dlqId"] for d in letters)
    assert {m["partition"] for m in got} == {"acct"} and not {m["id"] for m in got} & {d["id"] for d in letters}
    assert sorted(m["correlationId"] for m in got) == ["acct-0", "acct-1"] and "attempt" not in got[0] and "lastError" not in got[0]
    assert dlq(broker, queue) == [] and broker.take(queue, consumerGroup=group) == []
    t = broker.get("/api/v1/messages/timeline?" + urlencode({"transactionId": "acct-0", "queue": queue})).json
    assert t["status"] == "FAILED" and t["messages"][0]["events"][-1]["targetQueue"] == target


def test_at_a_rate(broker, queue, group, sql):
    bury(broker, queue, 5, group)
    redrive(broker, queue=queue, ratePerSecond=10)
    at = [float(x[0]) for x in sql("select extract(epoch from w.due_at - min(w.due_at) over ()) from queen.scheduled w"
                                   " join queen.lanes r on r.num = w.lane join queen.queues q on q.id = r.origin_queue"
                                   " where q.name = %s order by w.due_at", queue)]
    assert at[-4:] == pytest.approx([a + at[-4] - 0 for a in (0, 0.1, 0.2, 0.3)], abs=0.001)
    assert [m["data"]["no"] for m in due(broker, queue, group, 5)] == list(range(5))


def test_a_letter_outlives_its_message(broker, queue, group, sql):
    """Retention took the message while it waited for its retry: the copy is what the dead letter has, and what is redriven."""
    broker.configure(queue, retryPolicy={"mode": "scheduled", "strategy": "fixed", "base": 0.05, "maxAttempts": 2})
    broker.put(queue, ["x"], partition="p", ids=["t"])
    (m,) = broker.take(queue, consumerGroup=group)
    broker.ack(m, "failed")
    sql("select queen.forget_segments(l.num, 1) from queen.lanes l join queen.queues q on q.id = l.queue_id where q.name = %s and l.name = 'p'",
        queue)
    (m,) = broker.take(queue, consumerGroup=group, wait="true", timeout=10000)
    assert m["data"] == "x" and broker.ack(m, "failed", error="gone")["dlq"] is True
    (d,) = dlq(broker, queue)
    assert (d["data"], d["partition"], d["transactionId"], len(d["attempts"])) == ("x", "p", "t", 2)
    assert redrive(broker, queue=queue)["redriven"] == 1
    assert due(broker, queue, group)[0]["data"] == "x"


@pytest.mark.parametrize("body, word", [
    ({}, "ids"), ({"all": False}, "ids"), ({"ids": []}, "ids"), ({"ids": ["x"]}, "ids"), ({"ids": "x"}, "ids"), ({"queue": 1}, "queue"),
    ({"queue": ""}, "queue"), ({"queue": "q", "limit": 0}, "limit"), ({"queue": "q", "limit": 10001}, "limit"),
    ({"queue": "q", "limit": "9"}, "limit"), ({"queue": "q", "ratePerSecond": 0}, "ratePerSecond"), ({"queue": "q", "all": 1}, "all"),
    ({"queue": "q", "from": "someday"}, "from"), ({"queue": "q", "to": 7}, "to"), ({"queue": "q", "targetQueue": ""}, "targetQueue"),
    ({"queue": "q", "target": "x"}, "target")])
def test_bad_requests(broker, body, word):
    assert word in redrive(broker, status=400, **body)["error"]


def test_a_target_that_is_encrypted_takes_no_clear_messages(broker, queue, group):
    bury(broker, queue, 1, group)
    broker.configure(queue + "-sealed", encryptionEnabled=True)
    assert "encrypted" in redrive(broker, status=400, queue=queue, targetQueue=queue + "-sealed")["error"]
    assert len(dlq(broker, queue)) == 1


def test_a_target_with_a_fixed_set_of_partitions_takes_no_others(broker, queue, group):
    bury(broker, queue, 1, group, partition="acct")
    broker.configure(queue + "-fixed", partitions=4)
    error = redrive(broker, status=400, queue=queue, targetQueue=queue + "-fixed")["error"]
    assert "fixed set" in error and "acct" in error
    assert len(dlq(broker, queue)) == 1


def test_a_target_deleted_meanwhile_is_created_again(broker, queue, group, pg):
    """The redrive has found the partition and waits for its lock; when it gets that, the partition is gone."""
    target = queue + "-repair"
    bury(broker, queue, 1, group)
    broker.push([{"queue": target, "payload": 1}]).expect(201)
    with pg.connect(autocommit=False) as conn, conn.cursor() as cur:
        cur.execute("delete from queen.queues where name = %s", (target,))
        redriving = Background(lambda: broker.post("/api/v1/dlq/redrive", {"queue": queue, "targetQueue": target}))
        wait_until(lambda: is_blocked(pg), 10, "the redrive waits for the partition")
        conn.commit()
    assert redriving.result().expect(200).json["redriven"] == 1
    assert len(due(broker, target, group, 1)) == 1


def test_a_deletion_that_loses_against_a_redrive_is_sent_again(broker, queue, group, pg):
    """A redrive locks dead letters and then waits for their lane, a deletion does the opposite.  PostgreSQL aborts one; the broker repeats it."""
    bury(broker, queue, 1, group)
    with pg.connect(autocommit=False) as redriving, redriving.cursor() as cur:
        cur.execute("set local deadlock_timeout = '10s'")  # so that the other one notices first, also on a busy machine
        cur.execute("""select d.lane from queen.dead_letter_queue d join queen.lanes l on l.num = d.lane join queen.queues q on q.id = l.queue_id
                        where q.name = %s for update of d""", (queue,))
        (lane,) = cur.fetchone()
        deleting = Background(lambda: broker.request("DELETE", "/api/v1/resources/queues/" + queue))
        wait_until(lambda: is_blocked(pg), 10, "the deletion waits")
        cur.execute("select from queen.lanes where num = %s for no key update", (lane,))
        redriving.commit()
    deleting.result().expect(200)
    assert broker.get("/api/v1/resources/queues/" + queue).status == 404
