"""POST /api/v1/transaction: http-api section 6, semantics 12."""
import time
import uuid

import pytest

from harness import in_parallel, is_uuid, unit_of_time


def push_op(*items):
    return {"type": "push", "items": list(items)}


def ack_op(message, status=None, lease=False, **more):
    op = {"type": "ack", "transactionId": message["transactionId"], "partitionId": message["partitionId"]}
    if status is not None:
        op["status"] = status
    if lease:
        op["leaseId"] = message["leaseId"]
    if message.get("consumerGroup"):
        op["consumerGroup"] = message["consumerGroup"]
    op.update(more)
    return op


def leases(messages):
    return sorted({m["leaseId"] for m in messages})


def failed(answer, text=None):
    assert answer["success"] is False and isinstance(answer["error"], str) and answer["error"], answer
    assert is_uuid(answer["transactionId"]) and isinstance(answer["results"], list)
    if text:
        assert text.lower() in answer["error"].lower()
    return answer


@pytest.fixture
def out(queue):
    return queue + "-out"


def test_ack_and_push_commit_together(broker, queue, out, group):
    broker.put(queue, [{"no": 41}], ids=["inv-41"])
    (m,) = broker.take(queue, consumerGroup=group)
    answer = broker.transaction([ack_op(m, "completed"),
                                 push_op({"queue": out, "partition": "p", "payload": {"for": 41}, "transactionId": "r-41"},
                                         {"queue": out, "payload": 2})], leases([m]))
    assert answer["success"] is True and "error" not in answer
    assert is_uuid(answer["transactionId"])
    a, b, c = answer["results"]
    assert {k: a[k] for k in ("index", "type", "success", "transactionId", "error", "dlq")} == {
        "index": 0, "type": "ack", "success": True, "transactionId": "inv-41", "error": None, "dlq": False}
    assert (b["index"], b["type"], b["success"], b["transactionId"], b["queueName"]) == (1, "push", True, "r-41", out)
    assert is_uuid(b["messageId"]) and is_uuid(b["partitionId"])
    assert (c["index"], c["type"], c["success"]) == (2, "push", True) and c["transactionId"]
    assert broker.take(queue, consumerGroup=group) == []
    got = {m["partition"]: m for m in broker.drain(out)}
    assert got["p"]["data"] == {"for": 41} and got["p"]["id"] == b["messageId"] and got["p"]["transactionId"] == "r-41"
    assert got["Default"]["data"] == 2


def test_committed_messages_are_seen_by_the_next_pop(broker, broker2, queue):
    for i in range(10):
        assert broker.transaction([push_op({"queue": queue, "partition": "p%d" % i, "payload": i})])["success"]
        assert (broker2 if i % 2 else broker).take(queue, autoAck=True)[0]["data"] == i


def test_the_default_payload_is_an_empty_object(broker, queue):
    broker.transaction([push_op({"queue": queue}, {"queue": queue, "payload": None})])
    assert [m["data"] for m in broker.drain(queue)] == [{}, None]


@pytest.mark.parametrize("key", ["payload", "data"])
def test_the_flat_form_of_a_push_is_accepted(broker, queue, key):
    op = {"type": "push", "queue": queue, key: {"x": 1}, "partition": "p", "transactionId": "flat"}
    answer = broker.transaction([op])
    assert answer["success"] is True and answer["results"][0]["transactionId"] == "flat"
    (m,) = broker.drain(queue)
    assert (m["data"], m["partition"], m["transactionId"]) == ({"x": 1}, "p", "flat")


def test_payload_bytes_are_kept(broker, queue):
    raw = b'{ "b":1.10, "a" : [ 1e5,\t2 ] , "a":0 }'
    broker.post("/api/v1/transaction", b'{"operations":[{"type":"push","items":[{"queue":"%s","payload":%s}]}]}'
                % (queue.encode(), raw)).expect(200)
    assert raw in broker.pop(queue).expect(200).body


def test_pushes_to_many_queues_and_partitions_keep_their_order(broker, queue):
    items = [{"queue": queue + str(i % 2), "partition": "p%d" % (i % 3), "payload": i} for i in range(30)]
    answer = broker.transaction([push_op(*items[:10]), push_op(*items[10:])])
    assert answer["success"] is True and [r["index"] for r in answer["results"]] == list(range(30))
    for q in range(2):
        for p in range(3):
            got = [m["data"] for m in broker.take(queue + str(q), "p%d" % p, batch=100)]
            assert got == [i for i in range(30) if i % 2 == q and i % 3 == p]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b"null", b'{"operations":null}', b'{"operations":[]}', b'{"operations":{}}',
                                  b'{"operations":"x"}'])
def test_a_malformed_request_is_refused(broker, body):
    assert isinstance(broker.post("/api/v1/transaction", body).expect(400).json["error"], str)


@pytest.mark.parametrize("op", [
    5, {}, {"type": "push"}, {"type": "push", "items": [{}]}, {"type": "push", "items": [{"queue": 5}]}, {"type": "ack"},
    {"type": "ack", "transactionId": "x"}, {"type": "pop"}, {"type": 7}, {"type": "push", "items": [{"queue": "q", "payload": "\x00"}]},
    {"type": "push", "items": [{"queue": "q", "traceId": "nope"}]}], ids=str)
def test_a_bad_operation_stores_nothing(broker, queue, op):
    """400 for what is malformed or 200 with success:false for what aborts: the specification leaves the border open."""
    good = push_op({"queue": queue, "payload": 1})
    r = broker.post("/api/v1/transaction", {"operations": [good, op, good]})
    assert r.status in (200, 400), r
    if r.status == 200:
        failed(r.json)
    else:
        assert isinstance(r.json["error"], str)
    assert broker.take(queue) == []


def test_an_unknown_type_aborts_and_is_reported(broker, queue):
    r = broker.post("/api/v1/transaction", {"operations": [push_op({"queue": queue}), {"type": "dance"}]})
    if r.status == 200:
        answer = failed(r.json)
        assert answer["results"][-1]["success"] is False and answer["results"][-1]["type"] == "dance"
        assert answer["results"][0]["success"] is True, "earlier entries still say what they did"
    else:
        r.expect(400)
    assert broker.take(queue) == []


def test_an_unknown_message_rolls_everything_back(broker, queue, out):
    unit = unit_of_time()
    broker.configure(queue, leaseTime=unit)
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    ghost = {"type": "ack", "transactionId": "ghost", "partitionId": m["partitionId"]}
    answer = failed(broker.transaction([push_op({"queue": out, "payload": 1}), ack_op(m), ghost]), "not found")
    assert [r["success"] for r in answer["results"]] == [True, True, False]
    assert broker.take(out) == []
    assert broker.take(queue) == [], "the lease is as it was"
    time.sleep(unit + 0.1)
    assert [x["data"] for x in broker.take(queue)] == [1], "redelivered after its lease ran out"


@pytest.mark.parametrize("partition", ["not-a-uuid", str(uuid.uuid4())])
def test_an_unknown_partition_aborts(broker, queue, partition):
    failed(broker.transaction([push_op({"queue": queue}), {"type": "ack", "transactionId": "x", "partitionId": partition}]))
    assert broker.take(queue) == []


@pytest.mark.parametrize("where", ["stored before", "same operation", "earlier operation"])
@pytest.mark.parametrize("tx", ["dup", "uuid7"])
def test_a_duplicate_aborts(broker, queue, out, where, tx):
    from harness import uuid7
    tx = uuid7() if tx == "uuid7" else tx
    item = {"queue": queue, "partition": "p", "transactionId": tx, "payload": "again"}
    ops = [push_op({"queue": out, "payload": 1}), push_op(item)]
    if where == "stored before":
        broker.put(queue, ["first"], partition="p", ids=[tx])
    elif where == "same operation":
        ops = [ops[0], push_op(item, item)]
    else:
        ops.append(push_op(item))
    failed(broker.transaction(ops))
    assert broker.take(out) == []
    assert [m["data"] for m in broker.drain(queue)] == (["first"] if where == "stored before" else [])


@pytest.mark.parametrize("status", ["completed", "success", None])
def test_acks_complete_the_batch_and_release_the_lease(broker, queue, status):
    broker.put(queue, [1, 2, 3, 4], partition="p")
    messages = broker.take(queue, batch=3)
    assert broker.transaction([ack_op(m, status) for m in messages[:2]], leases(messages))["success"] is True
    assert broker.take(queue) == []
    assert broker.transaction([ack_op(messages[2], status)], leases(messages))["success"] is True
    assert [m["data"] for m in broker.take(queue, batch=9)] == [4]


def test_an_ack_creates_the_state_of_a_group_that_has_none(broker, queue, group):
    broker.put(queue, [1, 2, 3], partition="p")
    second = broker.take(queue, batch=3)[1]
    assert broker.transaction([ack_op(second, consumerGroup=group)], ["whatever"])["success"] is True
    assert [m["data"] for m in broker.take(queue, consumerGroup=group, batch=9)] == [3]


@pytest.mark.parametrize("status", ["failed", "dlq"])
def test_a_failure_is_dead_lettered_at_once(broker, queue, group, sql, status):
    broker.configure(queue, retryLimit=5)
    broker.put(queue, [1, 2], partition="p")
    messages = broker.take(queue, batch=2, consumerGroup=group)
    answer = broker.transaction([ack_op(messages[0], status), ack_op(messages[1])], leases(messages))
    assert answer["success"] is True
    assert [r["dlq"] for r in answer["results"]] == [True, False]
    assert sql("select consumer_group, retry_count, error_message from queen.dead_letter_queue where message_id = %s",
               messages[0]["id"]) == [(group, 0, "Retries exhausted")]
    assert broker.take(queue, consumerGroup=group) == []
    broker.put(queue, ["next"], partition="p")
    assert broker.take(queue, consumerGroup=group)[0]["data"] == "next"


@pytest.mark.parametrize("status", ["retry", "bogus", "COMPLETED"])
def test_any_other_status_aborts(broker, queue, out, status):
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    failed(broker.transaction([push_op({"queue": out}), ack_op(m, status)]))
    assert broker.take(out) == []
    assert broker.ack(m)["success"] is True


# --- leases ---------------------------------------------------------------------------------------------------------

def test_a_lease_in_the_operation_is_checked(broker, queue, out):
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    failed(broker.transaction([push_op({"queue": out}), ack_op(m, leaseId=str(uuid.uuid4()))]), "lease")
    assert broker.take(out) == []
    assert broker.transaction([ack_op(m, lease=True)])["success"] is True


@pytest.mark.parametrize("other", [str(uuid.uuid4()), "nonsense"])
def test_a_lost_lease_among_the_required_aborts(broker, broker2, queue, out, other):
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    for b in (broker, broker2):
        failed(b.transaction([push_op({"queue": out}), ack_op(m)], [other]), "lease")
        assert b.take(out) == []
    assert broker2.transaction([ack_op(m)], [other, m["leaseId"]])["success"] is True


def test_an_expired_lease_among_the_required_aborts(broker, queue, out):
    broker.configure(queue, leaseTime=1)
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    time.sleep(1.1)
    failed(broker.transaction([push_op({"queue": out}), ack_op(m)], leases([m])), "lease")
    assert broker.take(out) == []
    (again,) = broker.take(queue)
    failed(broker.transaction([ack_op(again)], leases([m])), "lease")
    assert broker.transaction([ack_op(again)], leases([again]))["success"] is True


def test_a_lease_released_by_an_earlier_operation_is_accepted(broker, queue):
    broker.put(queue, [1, 2])
    messages = broker.take(queue, batch=2)
    ops = [ack_op(m) for m in messages] + [ack_op(messages[1])]
    assert broker.transaction(ops, leases(messages))["success"] is True
    assert broker.take(queue) == []


@pytest.mark.parametrize("required", [None, []])
def test_without_required_leases_nothing_is_checked(broker, queue, required):
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    assert broker.transaction([ack_op(m)], required)["success"] is True


# --- concurrency ----------------------------------------------------------------------------------------------------

def test_concurrent_transactions_that_cross_do_not_deadlock(broker, broker2, queue):
    def one(i):
        names = ["p%d" % ((i * 7 + k * (1 if i % 2 else -1)) % 6) for k in range(6)]
        ops = [push_op({"queue": queue, "partition": p, "payload": [i, k]}) for k, p in enumerate(names)]
        return lambda: (broker, broker2)[i % 2].transaction(ops)
    answers = in_parallel(one(i) for i in range(24))
    assert all(a["success"] for a in answers), [a for a in answers if not a["success"]]
    assert len(broker.drain(queue)) == 24 * 6


def test_of_parallel_transactions_with_one_id_one_commits(broker, broker2, queue, out):
    def one(i):
        return lambda: (broker, broker2)[i % 2].transaction(
            [push_op({"queue": out, "partition": "o%d" % i, "payload": i}),
             push_op({"queue": queue, "partition": "p", "transactionId": "only-once", "payload": i})])
    answers = in_parallel(one(i) for i in range(8))
    assert sorted(a["success"] for a in answers) == [False] * 7 + [True]
    assert len(broker.drain(queue)) == 1 and len(broker.drain(out)) == 1


def test_a_failing_transaction_leaves_its_neighbours_alone(broker, queue):
    def one(i):
        ops = [push_op({"queue": queue, "partition": "p%d" % i, "payload": i})]
        if i % 3 == 0:
            ops.append({"type": "ack", "transactionId": "ghost", "partitionId": str(uuid.uuid4())})
        return lambda: broker.transaction(ops)["success"]
    assert in_parallel(one(i) for i in range(18)) == [i % 3 != 0 for i in range(18)]
    assert sorted(m["data"] for m in broker.drain(queue)) == [i for i in range(18) if i % 3]
