"""Acknowledgement: http-api section 5, semantics 9 and 13. Generated batches are in test_ack_model.py."""
import time
import uuid

import pytest

from harness import QUEUE_MODE, in_parallel, unit_of_time

KEYS = {"index", "transactionId", "success", "error", "queueName", "partitionName", "leaseReleased", "dlq"}
NOT_FOUND, BAD_LEASE = "Message not found", "Invalid or expired lease"


@pytest.fixture(params=["serving broker", "other broker"])
def acker(request, broker, broker2):
    """Acks must work the same on the broker that served the pop and on another one."""
    return broker if request.param == "serving broker" else broker2


def filled(broker, queue, n, partition="p", **params):
    broker.put(queue, list(range(n)), partition=partition, ids=["m%d" % i for i in range(n)])
    return broker.take(queue, partition, batch=n, **params)


def dead(sql, queue):
    return sql("select m.transaction_id, d.consumer_group, d.error_message, d.retry_count, m.payload "
               "from queen.dead_letter_queue d join queen.messages m on m.id = d.message_id "
               "join queen.partitions p on p.id = d.partition_id join queen.queues q on q.id = p.queue_id "
               "where q.name = %s order by d.failed_at, m.id", queue)


def test_a_single_ack_is_answered_with_an_array_of_exactly_one_result(broker, acker, queue, group):
    (m,) = filled(broker, queue, 1, consumerGroup=group)
    r = acker.post("/api/v1/ack", {"transactionId": "m0", "partitionId": m["partitionId"], "status": "completed",
                                   "leaseId": m["leaseId"], "consumerGroup": group}).expect(200)
    assert r.json == [{"index": 0, "transactionId": "m0", "success": True, "error": None, "queueName": queue,
                       "partitionName": "p", "leaseReleased": True, "dlq": False}]


def test_a_batch_is_answered_in_request_order(broker, acker, queue):
    messages = filled(broker, queue, 4)
    order = [messages[i] for i in (2, 0, 3, 1)]
    results = acker.ack_batch(order)
    assert [r["index"] for r in results] == [0, 1, 2, 3]
    assert [r["transactionId"] for r in results] == ["m2", "m0", "m3", "m1"]
    assert all(set(r) >= KEYS and r["success"] is True and r["error"] is None and r["dlq"] is False for r in results)
    assert broker.take(queue) == []
    broker.put(queue, ["next"], partition="p")
    assert broker.take(queue)[0]["data"] == "next"


def test_the_group_of_the_batch_overrides_that_of_the_entries(broker, queue, group):
    messages = filled(broker, queue, 2, consumerGroup=group)
    entries = [broker.ack_entry(m, "completed", consumerGroup="other") for m in messages]
    assert [r["success"] for r in broker.ack_batch(entries, group)] == [True, True]


def test_without_a_group_an_ack_is_of_queue_mode(broker, queue):
    (m,) = filled(broker, queue, 1)
    assert m["consumerGroup"] == QUEUE_MODE
    assert broker.post("/api/v1/ack", broker.ack_entry(m)).expect(200).json[0]["leaseReleased"] is True


@pytest.mark.parametrize("field, value", [("status", None)] + [(f, v) for f in ("leaseId", "consumerGroup", "error")
                                                               for v in (None, 5, [], {}, True)])
def test_null_or_a_wrong_type_counts_as_absent_in_optional_fields(broker, queue, field, value):
    (m,) = filled(broker, queue, 1)
    body = {"transactionId": "m0", "partitionId": m["partitionId"], field: value}
    (result,) = broker.post("/api/v1/ack", body).expect(200).json
    assert result["success"] is True and result["error"] is None
    assert broker.take(queue) == [] and result["dlq"] is False


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"{}", b"null", b'{"transactionId":"a"}', b'{"partitionId":"a"}', b'{"transactionId":5,"partitionId":"a"}',
    b'{"transactionId":"a","partitionId":null}', b'{"transactionId":"a","partitionId":5}', b'{"transactionId":"\xff","partitionId":"a"}'])
def test_a_malformed_ack_is_refused(broker, body):
    assert isinstance(broker.post("/api/v1/ack", body).expect(400).json["error"], str)


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"{}", b'{"acknowledgments":null}', b'{"acknowledgments":{}}', b'{"acknowledgments":"x"}',
    b'{"acknowledgments":[5]}', b'{"acknowledgments":[null]}', b'{"acknowledgments":[{}]}'])
def test_a_malformed_batch_is_refused(broker, body):
    assert isinstance(broker.post("/api/v1/ack/batch", body).expect(400).json["error"], str)


@pytest.mark.parametrize("bad", [{"transactionId": "x"}, {"partitionId": "x"}, {"transactionId": 1, "partitionId": "x"}, 7])
def test_one_malformed_entry_refuses_the_batch_and_does_nothing(broker, queue, bad):
    messages = filled(broker, queue, 2)
    body = {"acknowledgments": [broker.ack_entry(messages[0]), broker.ack_entry(messages[1]), bad]}
    broker.post("/api/v1/ack/batch", body).expect(400)
    assert broker.take(queue) == [], "the lease is still held"
    assert all(r["success"] for r in broker.ack_batch(messages))


def test_an_empty_batch_is_answered_with_an_empty_array(broker):
    assert broker.post("/api/v1/ack/batch", {"acknowledgments": []}).expect(200).json == []


def test_a_batch_of_a_thousand_entries(broker, acker, queue):
    messages = filled(broker, queue, 1000)
    results = acker.ack_batch(messages)
    assert all(r["success"] for r in results)
    assert [r["transactionId"] for r in results] == ["m%d" % i for i in range(1000)]
    assert broker.take(queue) == []


# --- rejected entries -----------------------------------------------------------------------------------------------

def test_an_unknown_message_is_rejected_alone(broker, acker, queue):
    messages = filled(broker, queue, 2)
    ghost = {"transactionId": "ghost", "partitionId": messages[0]["partitionId"], "leaseId": messages[0]["leaseId"]}
    a, g, b = acker.ack_batch([broker.ack_entry(messages[0]), ghost, broker.ack_entry(messages[1])])
    assert (a["success"], b["success"]) == (True, True)
    assert (g["success"], g["error"], g["dlq"]) == (False, NOT_FOUND, False)
    assert (g["queueName"], g["partitionName"]) == (queue, "p")


@pytest.mark.parametrize("partition", ["not-a-uuid", "", "12345", str(uuid.UUID(int=7)), "x" * 300])
def test_an_unknown_or_malformed_partition_is_reported_for_that_entry_only(broker, acker, queue, partition):
    (m,) = filled(broker, queue, 1)
    bad, good = acker.ack_batch([{"transactionId": "m0", "partitionId": partition}, broker.ack_entry(m)])
    assert (bad["success"], bad["error"]) == (False, NOT_FOUND)
    assert bad["queueName"] is None and bad["partitionName"] is None and bad["leaseReleased"] is None
    assert good["success"] is True


@pytest.mark.parametrize("lease", [str(uuid.uuid4()), "nonsense", "x" * 300])
def test_a_wrong_lease_is_rejected_and_changes_nothing(broker, acker, queue, lease):
    (m,) = filled(broker, queue, 1)
    result = acker.ack(m, lease=lease)
    assert (result["success"], result["error"]) == (False, BAD_LEASE)
    assert result["leaseReleased"] is False
    assert acker.ack(m)["success"] is True


def test_an_expired_lease_is_rejected(broker, acker, queue):
    broker.configure(queue, leaseTime=1)
    (m,) = filled(broker, queue, 1)
    time.sleep(1.1)
    assert acker.ack(m)["error"] == BAD_LEASE
    (again,) = broker.take(queue)
    assert again["id"] == m["id"] and again["leaseId"] != m["leaseId"]
    assert acker.ack(m)["error"] == BAD_LEASE
    assert acker.ack(again)["success"] is True


def test_without_a_lease_id_the_lease_is_not_checked(broker, acker, queue):
    filled(broker, queue, 3)
    m = {"transactionId": "m1", "partitionId": broker.push([{"queue": queue, "partition": "p", "payload": "x"}]).json[0]["partition_id"]}
    assert acker.ack(m, lease=None)["success"] is True


@pytest.mark.parametrize("status", ["COMPLETED", "done", "ack", " completed", "unknown"])
def test_an_unknown_status_is_rejected_with_a_text_and_changes_nothing(broker, acker, queue, status):
    (m,) = filled(broker, queue, 1)
    result = acker.ack(m, status)
    assert result["success"] is False and isinstance(result["error"], str) and result["error"]
    assert broker.take(queue) == []
    assert acker.ack(m)["success"] is True


@pytest.mark.parametrize("status", ["completed", "failed", "retry", "dlq"])
def test_a_group_without_state_changes_nothing(broker, acker, queue, group, status):
    (m,) = filled(broker, queue, 1)
    result = acker.ack(m, status, lease=None, consumerGroup=group)
    assert (result["success"], result["leaseReleased"]) == (status == "completed", None)
    assert broker.take(queue, consumerGroup=group)[0]["data"] == 0


# --- completed ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("status", ["completed", "success", None])
def test_completing_the_batch_releases_the_lease(broker, acker, queue, status):
    messages = filled(broker, queue, 2)
    assert acker.ack(messages[0], status)["leaseReleased"] is False
    assert broker.take(queue) == []
    assert acker.ack(messages[1], status)["leaseReleased"] is True
    broker.put(queue, ["next"], partition="p")
    assert broker.take(queue)[0]["data"] == "next"


def test_acks_are_cumulative(broker, acker, queue):
    unit = unit_of_time()
    broker.configure(queue, leaseTime=unit)
    messages = filled(broker, queue, 5)
    assert acker.ack(messages[2])["success"] is True
    time.sleep(unit + 0.1)
    assert [m["data"] for m in broker.take(queue, batch=9)] == [3, 4]


def test_a_partial_batch_keeps_the_lease_and_only_the_rest_is_redelivered(broker, acker, queue):
    unit = unit_of_time()
    broker.configure(queue, leaseTime=unit)
    messages = filled(broker, queue, 10)
    assert [r["leaseReleased"] for r in acker.ack_batch(messages[:4])] == [False] * 4
    assert broker.take(queue) == []
    time.sleep(unit + 0.1)
    assert [m["data"] for m in broker.take(queue, batch=99)] == [4, 5, 6, 7, 8, 9]


def test_a_partial_batch_can_be_finished_later(broker, acker, queue):
    messages = filled(broker, queue, 10)
    acker.ack_batch(messages[:4])
    assert acker.ack_batch(messages[4:])[-1]["leaseReleased"] is True
    assert broker.take(queue) == []


@pytest.mark.parametrize("order", [(2, 0, 1), (2, 1, 0), (0, 2, 1), (1, 0, 2)])
def test_acks_out_of_order_never_move_the_cursor_back(broker, acker, queue, order):
    messages = filled(broker, queue, 3)
    for i in order:
        assert acker.ack(messages[i])["success"] is True
    assert broker.take(queue) == []
    broker.put(queue, ["next"], partition="p")
    assert [m["data"] for m in broker.take(queue, batch=9)] == ["next"], "the lease is free and nothing comes again"


def test_parallel_acks_of_a_batch_complete_it(broker, broker2, queue):
    messages = filled(broker, queue, 12)
    in_parallel([lambda m=m, b=b: b.ack(m)["success"] or pytest.fail("rejected")
                 for m, b in zip(messages, [broker, broker2] * 6)])
    broker.put(queue, ["next"], partition="p")
    assert [m["data"] for m in broker.take(queue, batch=99)] == ["next"]


@pytest.mark.parametrize("how", ["in one request", "in two requests", "three times"])
def test_acking_one_message_twice_does_not_complete_the_lease_for_another(broker, acker, queue, how):
    first, second = filled(broker, queue, 2)
    if how == "in one request":
        assert [r["success"] for r in acker.ack_batch([first, first])] == [True, True]
    else:
        for _ in range(2 if how == "in two requests" else 3):
            assert acker.ack(first)["success"] is True
    assert broker.take(queue) == [], "the second message is still leased"
    assert acker.ack(second)["leaseReleased"] is True
    assert broker.take(queue) == []


def test_acking_an_old_message_of_an_earlier_batch_changes_nothing(broker, acker, queue):
    messages = filled(broker, queue, 2)
    acker.ack_batch(messages)
    broker.put(queue, ["a", "b"], partition="p")
    later = broker.take(queue, batch=2)
    assert acker.ack(messages[0], lease=None)["success"] is True
    assert broker.take(queue) == []
    acker.ack_batch(later)
    assert broker.take(queue) == []


def test_acking_an_auto_acked_message_is_harmless(broker, acker, queue):
    broker.put(queue, [1, 2, 3], partition="p")
    messages = broker.take(queue, batch=2, autoAck=True)
    assert acker.ack(messages[0])["success"] is True
    assert [m["data"] for m in broker.take(queue, batch=9)] == [3]


# --- failed, retry, dlq ---------------------------------------------------------------------------------------------

def test_a_failure_releases_the_lease_and_the_rest_is_redelivered(broker, acker, queue):
    messages = filled(broker, queue, 4)
    acker.ack(messages[0])
    result = acker.ack(messages[1], "failed", error="boom")
    assert (result["success"], result["leaseReleased"], result["dlq"]) == (True, True, False)
    for m in messages[2:]:
        assert acker.ack(m)["error"] == BAD_LEASE
    again = broker.take(queue, batch=9)
    assert [(m["data"], m["retryCount"]) for m in again] == [(1, 1), (2, 1), (3, 1)]


def test_a_second_failure_of_a_released_lease_does_not_count(broker, acker, queue, sql):
    """A client that repeats its request after a timeout must not use up a retry."""
    broker.configure(queue, retryLimit=1)
    (m,) = filled(broker, queue, 1)
    assert acker.ack(m, "failed")["success"] is True
    assert acker.ack(m, "failed")["error"] == BAD_LEASE
    assert broker.take(queue)[0]["retryCount"] == 1
    assert dead(sql, queue) == []


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_a_retry_limit_of_r_gives_r_plus_one_deliveries_and_then_a_dead_letter(broker, acker, queue, group, sql, limit):
    broker.configure(queue, retryLimit=limit)
    broker.put(queue, [{"bad": True}, "after"], partition="p", ids=["bad", "good"])
    for delivery in range(limit + 1):
        (m,) = broker.take(queue, consumerGroup=group)
        assert (m["transactionId"], m["retryCount"]) == ("bad", delivery)
        result = acker.ack(m, "failed", error="try %d" % delivery)
        assert result["success"] is True and result["dlq"] is (delivery == limit)
    assert dead(sql, queue) == [("bad", group, "try %d" % limit, limit, {"bad": True})]
    (m,) = broker.take(queue, consumerGroup=group)
    assert (m["data"], m["retryCount"]) == ("after", 0), "the counter starts anew behind a dead letter"
    assert broker.take(queue, consumerGroup=group + "2")[0]["transactionId"] == "bad", "only that group has passed it"


def test_the_counter_is_reset_by_success(broker, acker, queue):
    broker.configure(queue, retryLimit=1)
    broker.put(queue, [1, 2], partition="p")
    for expected in (1, 2):
        (m,) = broker.take(queue)
        assert (m["data"], m["retryCount"]) == (expected, 0)
        acker.ack(m, "failed")
        (m,) = broker.take(queue)
        assert (m["data"], m["retryCount"]) == (expected, 1)
        assert acker.ack(m)["success"] is True


@pytest.mark.parametrize("passed_by", ["completed", "dlq"])
def test_the_counter_is_reset_when_the_cursor_passes_the_failing_message(broker, acker, queue, passed_by):
    """Also in the middle of a batch: the next message has all its retries."""
    broker.configure(queue, retryLimit=1)
    first, _ = filled(broker, queue, 2)
    assert acker.ack(first, "failed")["dlq"] is False
    first, second = broker.take(queue, batch=2)
    assert second["retryCount"] == 1
    assert acker.ack(first, passed_by)["success"] is True
    result = acker.ack(second, "failed")
    assert (result["success"], result["dlq"], result["leaseReleased"]) == (True, False, True)
    (again,) = broker.take(queue, batch=2)
    assert (again["data"], again["retryCount"]) == (1, 1)


def test_a_lease_that_runs_out_does_not_count_as_a_failure(broker, queue):
    broker.configure(queue, leaseTime=1, retryLimit=0)
    filled(broker, queue, 1)
    time.sleep(1.1)
    assert broker.take(queue)[0]["retryCount"] == 0


def test_retry_gives_the_batch_back_without_counting(broker, acker, queue, sql):
    broker.configure(queue, retryLimit=0)
    for _ in range(3):
        messages = filled(broker, queue, 2) if _ == 0 else broker.take(queue, batch=2)
        assert [(m["data"], m["retryCount"]) for m in messages] == [(0, 0), (1, 0)]
        result = acker.ack(messages[0], "retry")
        assert (result["success"], result["leaseReleased"], result["dlq"]) == (True, True, False)
    assert dead(sql, queue) == []


def test_dlq_dead_letters_at_once(broker, acker, queue, group, sql):
    messages = filled(broker, queue, 2, consumerGroup=group)
    result = acker.ack(messages[0], "dlq", error="hopeless")
    assert (result["success"], result["dlq"]) == (True, True)
    assert dead(sql, queue) == [("m0", group, "hopeless", 0, 0)]
    assert broker.take(queue, consumerGroup=group) == [], "the second is still leased"
    assert acker.ack(messages[1])["leaseReleased"] is True


@pytest.mark.parametrize("batch", [False, True], ids=["single", "batch"])
def test_a_dead_letter_without_an_error_has_retries_exhausted(broker, acker, queue, sql, batch):
    broker.configure(queue, retryLimit=0)
    (m,) = filled(broker, queue, 1)
    if batch:
        acker.ack_batch([broker.ack_entry(m, "failed", error=None)])
    else:
        acker.ack(m, "failed", error=None)
    assert [row[2] for row in dead(sql, queue)] == ["Retries exhausted"]


@pytest.mark.parametrize("status", ["dlq", "failed"])
def test_a_message_named_twice_is_dead_lettered_once(broker, acker, queue, sql, status):
    broker.configure(queue, retryLimit=0)
    first, second = filled(broker, queue, 2)
    entry = broker.ack_entry(first, status, error="x")
    assert all(r["success"] for r in acker.ack_batch([entry, entry]))
    assert [row[0] for row in dead(sql, queue)] == ["m0"]
    assert broker.take(queue) == [], "the second message is still leased"
    assert acker.ack(second)["leaseReleased"] is True


def test_a_dead_letter_keeps_the_times(broker, acker, queue, sql):
    broker.configure(queue, retryLimit=0)
    (m,) = filled(broker, queue, 1)
    acker.ack(m, "failed")
    assert sql("select d.message_id::text, d.partition_id::text, d.original_created_at = m.created_at, "
               "d.failed_at > d.original_created_at from queen.dead_letter_queue d join queen.messages m "
               "on m.id = d.message_id where d.message_id = %s", m["id"]) == [(m["id"], m["partitionId"], True, True)]


# --- mixed batches (the generated ones are in test_ack_model.py) -----------------------------------------------------

def test_completed_failed_completed_loses_nothing(broker, acker, queue, sql):
    a, b, c = filled(broker, queue, 3)
    results = acker.ack_batch([broker.ack_entry(a, "completed"), broker.ack_entry(b, "failed"), broker.ack_entry(c, "completed")])
    assert [r["success"] for r in results] == [True, True, True]
    assert not any(r["dlq"] for r in results)
    assert [m["data"] for m in broker.take(queue, batch=9)] == [1, 2]
    assert dead(sql, queue) == []


def test_a_whole_batch_that_fails_twice_is_delivered_three_times_and_none_is_dead(broker, acker, queue, sql):
    broker.configure(queue, retryLimit=3)
    broker.put(queue, list(range(100)), partition="p")
    for status in ("failed", "failed", "completed"):
        messages = broker.take(queue, batch=100)
        assert [m["data"] for m in messages] == list(range(100))
        results = acker.ack_batch([broker.ack_entry(m, status, error="x") for m in messages])
        assert all(r["success"] and not r["dlq"] for r in results)
    assert broker.take(queue) == [] and dead(sql, queue) == []


def test_a_whole_batch_that_fails_with_one_retry_left_is_retried_whole(broker, acker, queue, sql):
    broker.configure(queue, retryLimit=1)
    for expected_dead in (0, 3):
        messages = filled(broker, queue, 3) if expected_dead == 0 else broker.take(queue, batch=3)
        assert len(messages) == 3
        acker.ack_batch([broker.ack_entry(m, "failed", error="no") for m in messages])
        assert len(dead(sql, queue)) == expected_dead
    assert broker.take(queue) == []


def test_when_retries_are_exhausted_every_failed_entry_is_dead_lettered_and_the_others_complete(broker, acker, queue, sql):
    broker.configure(queue, retryLimit=0)
    messages = filled(broker, queue, 4)
    statuses = ["failed", "completed", "failed", "completed"]
    results = acker.ack_batch([broker.ack_entry(m, s) for m, s in zip(messages, statuses)])
    assert [r["dlq"] for r in results] == [True, False, True, False]
    assert [row[0] for row in dead(sql, queue)] == ["m0", "m2"]
    broker.put(queue, ["next"], partition="p")
    assert [m["data"] for m in broker.take(queue, batch=9)] == ["next"]


def test_a_dlq_entry_before_a_failure_is_dead_lettered_in_its_turn(broker, acker, queue, sql):
    messages = filled(broker, queue, 3)
    results = acker.ack_batch([broker.ack_entry(m, s) for m, s in zip(messages, ["dlq", "failed", "completed"])])
    assert [(r["success"], r["dlq"]) for r in results] == [(True, True), (True, False), (True, False)]
    assert [row[0] for row in dead(sql, queue)] == ["m0"]
    assert [m["data"] for m in broker.take(queue, batch=9)] == [1, 2]


def test_a_batch_over_several_partitions_is_judged_per_partition(broker, acker, queue):
    for p in "abc":
        broker.put(queue, [p + "1", p + "2"], partition=p)
    messages = broker.take(queue, batch=100, partitions=3)
    entries = [broker.ack_entry(m, "failed" if m["data"] == "b1" else "completed") for m in messages]
    assert all(r["success"] for r in acker.ack_batch(entries[::-1]))
    assert [m["data"] for m in broker.take(queue, batch=100, partitions=9)] == ["b1", "b2"]


def test_totals_and_state_are_kept(broker, acker, queue, sql):
    messages = filled(broker, queue, 3)
    state = ("select worker_id, batch_size, acked_count, batch_retry_count, total_messages_consumed, lease_expires_at > now(), "
             "last_consumed_id::text from queen.partition_consumers where partition_id = %s and consumer_group = %s")
    where = (messages[0]["partitionId"], QUEUE_MODE)
    assert sql(state, *where) == [(messages[0]["leaseId"], 3, 0, 0, 0, True, str(uuid.UUID(int=0)))]
    acker.ack(messages[0])
    assert sql(state, *where) == [(messages[0]["leaseId"], 3, 1, 0, 1, True, messages[0]["id"])]
    acker.ack_batch(messages[1:])
    (row,) = sql(state, *where)
    assert row[4] == 3 and row[6] == messages[2]["id"] and row[3] == 0 and not row[5]


@pytest.mark.parametrize("status", ["failed", "retry", "dlq", "completed"])
def test_a_late_ack_of_a_settled_message_leaves_the_lease_of_others_alone(broker, acker, sql, queue, group, status):
    broker.configure(queue, retryLimit=3)
    broker.put(queue, [0, 1], partition="p", ids=["m0", "m1"])
    (first,) = broker.take(queue, "p", consumerGroup=group)
    assert broker.ack(first)["success"] is True
    (second,) = broker.take(queue, "p", consumerGroup=group)
    before = sql("select batch_retry_count, total_messages_consumed, lease_expires_at from queen.partition_consumers "
                 "where consumer_group = %s", group)
    r = acker.ack(first, status, lease=False)
    assert (r["success"], r["leaseReleased"], r["dlq"]) == (status == "completed", False, False)
    assert sql("select batch_retry_count, total_messages_consumed, lease_expires_at from queen.partition_consumers "
               "where consumer_group = %s", group) == before
    assert broker.take(queue, "p", consumerGroup=group) == []
    r = acker.ack(second)
    assert (r["success"], r["leaseReleased"]) == (True, True)
    assert dead(sql, queue) == []


@pytest.mark.parametrize("mode", ["inline", "scheduled"])
def test_a_message_is_dead_lettered_once(broker, acker, sql, queue, group, mode):
    broker.configure(queue, retryPolicy={"mode": mode})
    (m,) = filled(broker, queue, 1, consumerGroup=group)
    for lease in (True, False, False):
        r = acker.ack(m, "dlq", lease=lease, error="bad")
        assert (r["success"], r["dlq"]) == (True, True)
    assert len(dead(sql, queue)) == 1
    assert broker.post("/api/v1/dlq/redrive", {"queue": queue}).expect(200).json["redriven"] == 1


@pytest.mark.parametrize("mode", ["inline", "scheduled"])
def test_a_completed_message_does_not_become_a_dead_letter(broker, acker, sql, queue, group, mode):
    broker.configure(queue, retryLimit=0, retryPolicy={"mode": mode})
    (m,) = filled(broker, queue, 1, consumerGroup=group)
    assert broker.ack(m)["success"] is True
    for status in ("dlq", "failed"):
        r = acker.ack(m, status, lease=False)
        assert (r["success"], r["dlq"], r["error"]) == (False, False, "Message is settled already")
        entry = {"type": "ack", "transactionId": m["transactionId"], "partitionId": m["partitionId"], "status": status,
                 "consumerGroup": group}
        assert "Message is settled already" in acker.transaction([entry])["error"]
    assert dead(sql, queue) == []


def test_a_message_that_fails_again_after_a_seek_keeps_one_dead_letter(broker, sql, queue, group):
    broker.configure(queue, retryLimit=0)
    (m,) = filled(broker, queue, 1, consumerGroup=group)
    assert broker.ack(m, "failed", error="one")["dlq"] is True
    broker.post("/api/v1/consumer-groups/%s/queues/%s/seek" % (group, queue), {"timestamp": "2000-01-01T00:00:00Z"}).expect(200)
    (m,) = broker.take(queue, "p", consumerGroup=group)
    assert broker.ack(m, "failed", error="two")["dlq"] is True
    assert [d[2] for d in dead(sql, queue)] == ["two"]
