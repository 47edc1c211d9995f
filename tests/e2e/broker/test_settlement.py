"""The effects of one acknowledgement: on the message it names, on the lease, and the answer."""
import time

import pytest

from harness import wait_until

SCHEDULED = {"mode": "scheduled", "strategy": "fixed", "base": 3600, "maxAttempts": 3}
BAD_LEASE = "Invalid or expired lease"


def five(broker, queue, **options):
    broker.configure(queue, **options)
    broker.put(queue, list(range(5)), partition="p", ids=["m%d" % i for i in range(5)])
    return broker.take(queue, "p", batch=5)


def again(broker, queue):
    """All that is delivered after the lease has ended."""
    got = []
    wait_until(lambda: got.extend(m["data"] for m in broker.take(queue, "p", batch=9, autoAck=True)) or got, 10, "a delivery")
    while more := broker.take(queue, "p", batch=9, autoAck=True):
        got += [m["data"] for m in more]
    return got


@pytest.mark.parametrize("path", ["ack", "batch", "sql"])
@pytest.mark.parametrize("status, options, expected", [
    ("failed", {"retryPolicy": SCHEDULED}, [0, 1, 2, 3]),
    ("failed", {"retryLimit": 0}, [0, 1, 2, 3]),
    ("dlq", {}, [0, 1, 2, 3]),
    ("failed", {}, [0, 1, 2, 3, 4]),
    ("retry", {"retryPolicy": SCHEDULED}, [0, 1, 2, 3, 4])])
def test_a_failure_settles_only_its_own_message(broker, sql, queue, path, status, options, expected):
    m = five(broker, queue, leaseTime=1, **options)[4]
    if path == "ack":
        result = broker.ack(m, status)
    elif path == "batch":
        (result,) = broker.ack_batch([broker.ack_entry(m, status)])
    else:
        import json
        result = sql("select queen.ack_messages_v2(%s::jsonb)", json.dumps([broker.ack_entry(m, status)]))[0][0][0]
    assert result["success"] is True
    assert again(broker, queue) == expected


def test_a_failure_in_a_transaction_settles_only_its_own_message(broker, queue):
    m = five(broker, queue, leaseTime=1)[3]
    assert broker.transaction([{"type": "ack", "transactionId": "m3", "partitionId": m["partitionId"], "status": "failed"}])["success"]
    assert again(broker, queue) == [0, 1, 2, 4]


def test_a_dead_letter_behind_a_failure_that_is_retried_is_one_all_the_same(broker, queue):
    messages = five(broker, queue)
    results = broker.ack_batch([broker.ack_entry(messages[1], "failed"), broker.ack_entry(messages[3], "dlq")])
    assert [(r["success"], r["dlq"]) for r in results] == [(True, False), (True, True)]
    assert again(broker, queue) == [0, 1, 2, 4]


@pytest.mark.parametrize("first", [[], ["dlq"], ["dlq", "dlq"]])
def test_completing_the_last_message_ends_the_lease(broker, queue, first):
    messages = five(broker, queue)
    for m, status in zip(messages, first):
        assert broker.ack(m, status)["leaseReleased"] is False
    assert broker.ack(messages[4])["leaseReleased"] is True
    broker.put(queue, ["next"], partition="p")
    assert [m["data"] for m in broker.take(queue, "p", batch=9)] == ["next"]
    assert all(broker.ack(m)["success"] for m in messages[3:]), "late completions of that lease change nothing"


def test_settling_the_messages_one_by_one_ends_the_lease(broker, queue):
    messages = five(broker, queue, retryPolicy=SCHEDULED)
    ended = [broker.ack(messages[i], "failed" if i % 2 else "dlq")["leaseReleased"] for i in (4, 2, 0, 3, 1)]
    assert ended == [False] * 4 + [True]
    broker.put(queue, ["next"], partition="p")
    assert [m["data"] for m in broker.take(queue, "p", batch=9)] == ["next"]


def test_a_completion_of_a_message_that_waits_for_its_retry_is_refused(broker, queue):
    messages = five(broker, queue, retryPolicy=SCHEDULED)
    failed = broker.ack(messages[0], "failed")
    result = broker.ack(messages[0], lease=None)
    assert (result["success"], result["error"]) == (False, "Message is waiting for its retry")
    repeated = broker.ack(messages[0], "failed")
    assert repeated["success"] is True and repeated["nextAttemptAt"] == failed["nextAttemptAt"], "a repeated request gets the same answer"


@pytest.mark.parametrize("options", [{}, {"ordering": "none"}])
def test_a_message_that_waits_for_its_retry_cannot_be_sent_to_the_dead_letters(broker, queue, options):
    """The answer had success without dlq, and the message stayed where it was."""
    messages = five(broker, queue, retryPolicy=SCHEDULED, **options)
    failed = broker.ack(messages[0], "failed")
    result = broker.ack(messages[0], "dlq")
    assert (result["success"], result["error"], result["dlq"]) == (False, "Message is waiting for its retry", False)
    assert broker.get("/api/v1/dlq?queue=" + queue).expect(200).json["total"] == 0
    assert broker.ack(messages[0], "failed")["nextAttemptAt"] == failed["nextAttemptAt"]


@pytest.mark.parametrize("status", ["failed", "retry", "dlq"])
@pytest.mark.parametrize("options", [{}, {"ordering": "none"}])
def test_a_group_that_never_popped_cannot_fail_a_message(broker, queue, group, status, options):
    m = five(broker, queue, **options)[0]
    result = broker.ack(m, status, lease=None, consumerGroup=group)
    assert (result["success"], result["error"], result["dlq"]) == (False, "Message is not delivered", False)
    completed = broker.ack(m, lease=None, consumerGroup=group)
    assert (completed["success"], completed["leaseReleased"]) == (True, None), "the contract: semantics 9.2"
    assert len(broker.take(queue, "p", consumerGroup=group, batch=9)) == 5


@pytest.mark.parametrize("status", ["failed", "retry"])
@pytest.mark.parametrize("options", [{}, {"retryPolicy": SCHEDULED}])
def test_a_message_that_was_not_delivered_cannot_fail(broker, queue, status, options):
    broker.configure(queue, **options)
    (first, *_) = broker.put(queue, [0, 1], partition="p", ids=["m0", "m1"])
    broker.take(queue, "p", batch=1)
    result = broker.ack({"transactionId": "m1", "partitionId": first["partition_id"]}, status, lease=None)
    assert (result["success"], result["error"]) == (False, "Message is not delivered")


def two_of_five(broker, queue):
    """Five messages, two of them delivered: the entry names the lease of these and the last message."""
    broker.configure(queue)
    broker.put(queue, list(range(5)), partition="p", ids=["m%d" % i for i in range(5)])
    messages = broker.take(queue, "p", batch=2)
    return messages, {**messages[0], "transactionId": "m4"}


NOT_DELIVERED = (False, "Message is not delivered")


@pytest.mark.parametrize("path", ["ack", "batch", "sql", "transaction", "required"])
@pytest.mark.parametrize("status", ["completed", "failed", "dlq"])
def test_a_lease_settles_only_messages_that_were_delivered_under_it(broker, sql, queue, path, status):
    """Completions are cumulative within their lease (decisions.md): one behind it would skip messages that nobody has seen."""
    import json
    messages, beyond = two_of_five(broker, queue)
    entry = broker.ack_entry(beyond, status)
    if path == "ack":
        results = [broker.ack(beyond, status)]
    elif path == "batch":
        good, *results = broker.ack_batch([broker.ack_entry(messages[0]), entry])
        assert good["success"] is True, "the entries beside it are applied"
    elif path == "sql":
        results = sql("select queen.ack_messages_v2(%s::jsonb)", json.dumps([entry]))[0][0]
    elif path == "transaction":
        results = [broker.transaction([{"type": "ack", **entry}])]
    else:
        del entry["leaseId"]
        results = [broker.transaction([{"type": "ack", **entry}], required=[beyond["leaseId"]])]
    assert [(r["success"], r["error"]) for r in results] == [NOT_DELIVERED]
    assert sql("select count(*) from queen.dead_letter_queue where partition_id = %s", beyond["partitionId"]) == [(0,)]
    assert broker.ack(messages[1])["leaseReleased"] is True, "the lease goes on"
    assert again(broker, queue) == [2, 3, 4]


def test_an_ordinary_batch_with_one_message_behind_the_lease_settles_the_others(broker, queue):
    messages, beyond = two_of_five(broker, queue)
    results = broker.ack_batch([*messages, beyond])
    assert [(r["success"], r["error"]) for r in results] == [(True, None)] * 2 + [NOT_DELIVERED]
    assert again(broker, queue) == [2, 3, 4]


def test_without_a_lease_id_anybody_moves_the_position(broker, queue):
    """semantics 9.1: no lease id, no lease check."""
    messages, beyond = two_of_five(broker, queue)
    assert broker.ack(beyond, lease=None)["success"] is True
    assert broker.take(queue, "p", batch=9) == []


def test_a_completion_of_a_dead_letter_reports_the_dead_letter(broker, queue):
    messages = five(broker, queue)
    broker.ack(messages[0], "dlq")
    assert broker.ack(messages[0])["dlq"] is True


@pytest.mark.parametrize("n", [10000])
def test_a_large_batch_of_failures_is_settled(broker, sql, queue, n):
    broker.configure(queue, retryPolicy=SCHEDULED)
    for part in range(0, n, 5000):
        broker.put(queue, list(range(part, part + 5000)), partition="p")
    messages = broker.take(queue, "p", batch=n)
    assert len(messages) == n
    started = time.monotonic()
    results = broker.ack_batch([broker.ack_entry(m, "failed", error="boom") for m in messages])
    print("seconds", time.monotonic() - started)
    assert all(r["success"] and r["nextAttempt"] == 2 for r in results) and results[-1]["leaseReleased"] is True
    (count,) = sql("select count(*) from queen.scheduled w join queen.lanes r on r.num = w.lane "
                   "join queen.queues q on q.id = r.origin_queue where q.name = %s", queue)[0]
    assert count == n


def test_a_large_batch_of_a_work_queue_is_settled_in_linear_time(broker, pg, queue):
    """Not each entry searches the keys of the lease."""
    import json
    n = 2000
    broker.configure(queue, retryPolicy=SCHEDULED, ordering="none")
    broker.put(queue, list(range(n)), partition="p")
    messages = broker.take(queue, "p", batch=n)
    entries = [broker.ack_entry(m, "failed", error="e%d" % m["data"]) for m in messages]
    with pg.connect() as conn, conn.cursor() as cur:
        conn.autocommit = False
        cur.execute("set track_functions = 'all'")
        cur.execute("select queen.ack_messages_v2(%s::jsonb)", (json.dumps(entries),))
        results = cur.fetchone()[0]
        cur.execute("select coalesce(sum(calls), 0) from pg_stat_xact_user_functions where funcname = 'key_position'")
        assert cur.fetchone()[0] < n / 10
    assert all(r["success"] and r["nextAttempt"] == 2 for r in results) and results[-1]["leaseReleased"] is True


def test_a_large_shuffled_batch_of_a_work_queue_reaches_every_message(broker, sql, queue):
    import random
    broker.configure(queue, retryPolicy=SCHEDULED, ordering="none")
    broker.put(queue, list(range(600)), partition="p", ids=["m%d" % i for i in range(600)])
    messages = broker.take(queue, "p", batch=300) + broker.take(queue, "p", batch=300)
    assert len({m["leaseId"] for m in messages}) == 2
    random.Random(5).shuffle(messages)
    status = lambda m: ("completed", "failed", "dlq")[m["data"] % 3]
    entries = [broker.ack_entry(m, status(m), error="e%d" % m["data"]) for m in messages]
    for _ in range(2): # the second time everything is settled already
        results = broker.ack_batch(entries + entries[:5])
        assert all(r["success"] for r in results)
        assert [(r["dlq"], "nextAttempt" in r) for r in results[:600]] == [(m["data"] % 3 == 2, m["data"] % 3 == 1) for m in messages]
    letters = sql("select count(*), count(distinct d.error_message) from queen.dead_letter_queue d where d.partition_id = %s", messages[0]["partitionId"])
    assert letters == [(200, 200)]
    errors = sql("select a.transaction_id, a.error from queen.attempts a join queen.lanes l on l.num = a.lane where l.id = %s", messages[0]["partitionId"])
    assert len(errors) == 400 and all(e == "e" + tx[1:] for tx, e in errors)
    assert broker.take(queue, "p", batch=600) == []
