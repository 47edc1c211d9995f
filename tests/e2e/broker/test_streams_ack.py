"""Streams: the acknowledgement of a cycle, and repeated cycles."""
import time
import uuid

import pytest

from harness import ZERO_UUID, Background, in_parallel, unit_of_time, wait_until
from streams import ack_of, cycle, failed, name, out, part, query, register, state, upsert, values  # noqa: F401 (fixtures)

# ---- acknowledgement ----

def test_a_released_lease_wakes_waiting_pops(broker, broker2, query, queue, group):
    broker.put(queue, list(range(5)))
    got = broker.take(queue, consumerGroup=group, batch=2)
    waiting = [Background(lambda b=b: b.take(queue, consumerGroup=group, wait=True, timeout=8000)) for b in (broker, broker2)]
    time.sleep(0.2)
    assert cycle(broker, query, got[0]["partitionId"], consumer_group=group, ack=ack_of(got[:1]))["success"]
    wait_until(lambda: any(w.done for w in waiting), 5, "one of them gets the rest")
    first = next(w for w in waiting if w.done).result()
    assert [m["data"] for m in first] == [1]
    assert cycle(broker2, query, got[0]["partitionId"], consumer_group=group, ack=ack_of(first))["success"]
    assert [m["data"] for m in next(w for w in waiting if w.result() is not first).result()] == [2]


def test_an_unreleased_lease_expires_and_the_rest_is_redelivered(broker, query, queue, group, sql):
    broker.configure(queue, leaseTime=unit_of_time(), retryLimit=0)
    broker.put(queue, list(range(6)))
    got = broker.take(queue, consumerGroup=group, batch=6)
    partition = got[0]["partitionId"]
    answer = cycle(broker, query, partition, consumer_group=group, ack=ack_of(got[:2]), release_lease=False)
    assert answer["ack_result"] == {"success": True, "count": 2, "lease_released": False, "dlq": False}
    assert broker.take(queue, consumerGroup=group) == []
    for expected in ([2, 3, 4, 5], [2, 3, 4, 5]):  # running out twice is no failure, though retryLimit is 0
        rest = broker.take(queue, consumerGroup=group, batch=6, wait=True, timeout=20000)
        assert [m["data"] for m in rest] == expected
    assert cycle(broker, query, partition, consumer_group=group, ack=ack_of(rest))["ack_result"]["lease_released"]
    assert sql("select count(*) from queen.dead_letter_queue where partition_id = %s", partition) == [(0,)]
    assert sql("select batch_retry_count, total_messages_consumed from queen.partition_consumers where partition_id = %s",
               partition) == [(0, 6)]


@pytest.mark.parametrize("status", ["failed", "dlq"])
def test_failed_goes_to_the_dead_letters_at_once(broker, query, queue, group, sql, status):
    broker.put(queue, [1, 2])
    got = broker.take(queue, consumerGroup=group, batch=2)
    partition = got[0]["partitionId"]
    answer = cycle(broker, query, partition, consumer_group=group, ack=ack_of(got[:1], status=status, error="boom"),
                   release_lease=False)
    assert answer["ack_result"] == {"success": True, "count": 1, "lease_released": True, "dlq": True}
    assert sql("select consumer_group, error_message, retry_count from queen.dead_letter_queue where partition_id = %s",
               partition) == [(group, "boom", 0)]
    assert [m["data"] for m in broker.take(queue, consumerGroup=group, batch=5)] == [2]


@pytest.mark.parametrize("status", ["failed", "dlq"])
def test_failed_changes_only_the_message_it_names(broker, query, queue, group, sql, status):
    broker.put(queue, [1, 2, 3, 4, 5])
    got = broker.take(queue, consumerGroup=group, batch=4)
    partition = got[0]["partitionId"]
    answer = cycle(broker, query, partition, consumer_group=group, ack=ack_of(got[:3], status=status, error="boom"))
    assert answer["ack_result"] == {"success": True, "count": 3, "lease_released": True, "dlq": True}
    assert sql("select count(*) from queen.dead_letter_queue where partition_id = %s", partition) == [(1,)]
    for expected in ([1, 2], [4, 5]):  # those before it were not acknowledged
        again = broker.take(queue, consumerGroup=group, batch=5)
        assert [m["data"] for m in again] == expected
        assert cycle(broker, query, partition, consumer_group=group, ack=ack_of(again))["ack_result"]["lease_released"]
    assert broker.take(queue, consumerGroup=group) == []
    assert sql("select total_messages_consumed from queen.partition_consumers where partition_id = %s", partition) == [(5,)]


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_message_that_was_settled_by_itself_is_not_settled_again(broker, query, queue, group, sql, status):
    """A worker has dead-lettered the third message of its batch."""
    broker.put(queue, [1, 2, 3, 4])
    got = broker.take(queue, consumerGroup=group, batch=4)
    partition = got[0]["partitionId"]
    assert broker.ack(got[2], status="dlq")["success"] is True
    before = sql("select id from queen.dead_letter_queue where partition_id = %s", partition)
    answer = cycle(broker, query, partition, consumer_group=group, ack=ack_of(got[:3], status=status))
    assert answer["success"] is True
    assert sql("select id from queen.dead_letter_queue where partition_id = %s", partition) == before
    if status == "completed":
        assert [m["data"] for m in broker.take(queue, consumerGroup=group, batch=4)] == [4]
    else:
        assert answer["ack_result"]["lease_released"] is False, "it changed nothing"
        assert broker.ack(got[3])["success"] is True


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_on_a_partition_with_an_owner_a_cycle_needs_the_lease(broker, queue, group, name, sql, status):
    broker.configure(queue, partitions=1)
    query = register(broker, name, queue)["query_id"]
    pushed = broker.put(queue, [1, 2, 3], partition="0")
    partition = pushed[0]["partition_id"]
    path = "/api/v1/consumer-groups/%s/queues/%s/owners/claim" % (group, queue)
    claim = broker.post(path, {"owner": "new", "partitions": [{"partition": "0", "epoch": 0}]}).expect(200).json["results"][0]
    late = {"transactionId": pushed[1]["transaction_id"], "status": status}
    failed(cycle(broker, query, partition, consumer_group=group, ack=late), "Invalid or expired lease")
    got = broker.pop(queue, "0", consumerGroup=group, owner="new", epoch=claim["epoch"], batch=3).expect(200).json["messages"]
    assert [m["data"] for m in got] == [1, 2, 3], "nothing of the new owner was skipped"
    failed(cycle(broker, query, partition, consumer_group=group, ack=late), "Invalid or expired lease")
    assert cycle(broker, query, partition, consumer_group=group, ack=ack_of(got))["success"] is True


def test_without_a_lease_id_the_cursor_moves_and_a_new_group_is_made(broker, query, queue, group):
    pushed = broker.put(queue, [1, 2, 3])
    ack = {"transactionId": pushed[1]["transaction_id"]}
    answer = cycle(broker, query, pushed[0]["partition_id"], consumer_group=group, ack=ack)
    assert answer["ack_result"] == {"success": True, "count": 1, "lease_released": True, "dlq": False}
    assert [m["data"] for m in broker.take(queue, consumerGroup=group, batch=5, autoAck=True)] == [3]
    older = cycle(broker, query, pushed[0]["partition_id"], consumer_group=group,
                  ack={"transactionId": pushed[0]["transaction_id"]})
    assert older["success"] and broker.take(queue, consumerGroup=group) == []


@pytest.mark.parametrize("status", ["completed", "failed", "dlq"])
def test_a_late_cycle_of_a_settled_message_leaves_the_lease_of_others_alone(broker, query, queue, group, sql, status):
    broker.put(queue, [1, 2])
    (first,) = broker.take(queue, consumerGroup=group)
    assert broker.ack(first)["success"] is True
    (second,) = broker.take(queue, consumerGroup=group)
    late = {"transactionId": first["transactionId"], "status": status}
    answer = cycle(broker, query, first["partitionId"], consumer_group=group, ack=late)
    if status == "completed":
        assert (answer["success"], answer["ack_result"]["lease_released"]) == (True, False)
    else:
        failed(answer, "Message is settled already")
    assert sql("select count(*) from queen.dead_letter_queue where partition_id = %s", first["partitionId"]) == [(0,)]
    assert broker.take(queue, consumerGroup=group) == []
    assert broker.ack(second)["success"] is True


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_message_that_waits_for_its_retry_is_not_settled(broker, query, queue, out, group, status):
    """It was answered with success, and with "dlq": true, and nothing had changed."""
    broker.configure(queue, retryPolicy={"mode": "scheduled", "strategy": "fixed", "base": 3600, "maxAttempts": 3})
    broker.put(queue, [1])
    (m,) = broker.take(queue, consumerGroup=group)
    assert broker.ack(m, status="failed")["success"]
    late = {"transactionId": m["transactionId"], "status": status}
    failed(cycle(broker, query, m["partitionId"], consumer_group=group, ack=late, push_items=[{"queue": out, "payload": 1}]),
           "Message is waiting for its retry")
    assert broker.take(out) == []


def test_leases_of_others_and_expired_ones_are_refused(broker, query, queue, group):
    unit = unit_of_time()
    broker.configure(queue, leaseTime=unit)
    broker.put(queue, [1])
    got = broker.take(queue, consumerGroup=group)
    partition = got[0]["partitionId"]
    failed(cycle(broker, query, partition, consumer_group=group, ack=ack_of(got, leaseId=str(uuid.uuid4()))), "lease")
    failed(cycle(broker, query, partition, consumer_group="other", ack=ack_of(got)), "lease")
    time.sleep(unit + 0.1)
    failed(cycle(broker, query, partition, consumer_group=group, ack=ack_of(got)), "Invalid or expired lease")
    assert len(broker.take(queue, consumerGroup=group)) == 1


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_lease_settles_only_messages_that_were_delivered_under_it(broker, query, queue, group, status):
    pushed = broker.put(queue, [1, 2, 3])
    got = broker.take(queue, consumerGroup=group, batch=1)
    beyond = ack_of(got, transactionId=pushed[2]["transaction_id"], status=status)
    failed(cycle(broker, query, got[0]["partitionId"], consumer_group=group, ack=beyond), "Message is not delivered")
    assert cycle(broker, query, got[0]["partitionId"], consumer_group=group, ack=ack_of(got))["success"] is True
    assert [m["data"] for m in broker.take(queue, consumerGroup=group, batch=5, autoAck=True)] == [2, 3]


def test_a_failure_without_a_lease_leaves_the_lease_of_other_messages_alone(broker, query, queue, group):
    pushed = broker.put(queue, [1, 2, 3])
    (first,) = broker.take(queue, consumerGroup=group, batch=1)
    answer = cycle(broker, query, first["partitionId"], consumer_group=group,
                   ack={"transactionId": pushed[2]["transaction_id"], "status": "failed"})
    assert (answer["success"], answer["ack_result"]["lease_released"]) == (True, False)
    assert broker.take(queue, consumerGroup=group) == []
    assert broker.ack(first)["leaseReleased"] is True
    assert [m["data"] for m in broker.take(queue, consumerGroup=group, batch=5, autoAck=True)] == [2]


# ---- repetition ----

def test_a_repeated_flush_is_answered_as_the_first(broker, broker2, query, part, out):
    broker.put(out, ["there"], partition="p", ids=["dup"])
    body = {"query_id": query, "partition_id": part, "state_ops": [upsert("k", 1)],
            "push_items": [{"queue": out, "partition": p, "payload": i, **({"transactionId": t} if t else {})}
                           for i, (p, t) in enumerate([("p", None), ("q", "x"), ("p", "dup"), ("q", "x"), ("p", None)])]}
    first = broker.post("/streams/v1/cycle", body).expect(200).json
    assert first["success"] and [r["status"] for r in first["push_results"]] == [
        "queued", "queued", "duplicate", "duplicate", "queued"]
    for b in (broker, broker2, broker):
        assert b.post("/streams/v1/cycle", body).expect(200).json == first
    assert len(broker.drain(out)) == 4
    # Another one in between, and it counts again; only the last is remembered.
    assert cycle(broker, query, part, state_ops=[upsert("k", 2)])["success"]
    second = broker.post("/streams/v1/cycle", body).expect(200).json
    assert second["success"] and second != first and values(broker, query, part) == {"k": 1}
    assert len(broker.drain(out)) == 2


def test_a_cycle_under_a_lease_makes_the_one_before_repeatable(broker, query, queue, out, group):
    broker.put(queue, [1])
    got = broker.take(queue, consumerGroup=group)
    partition = got[0]["partitionId"]
    flush = {"push_items": [{"queue": out, "payload": 1}]}
    assert cycle(broker, query, partition, **flush)["success"]
    assert cycle(broker, query, partition, consumer_group=group, ack=ack_of(got))["success"]
    assert cycle(broker, query, partition, **flush)["success"]
    assert len(broker.drain(out)) == 2


def test_a_repeated_gate_cycle_is_answered_as_the_first(broker, query, queue, out, group, sql):
    broker.put(queue, list(range(4)))
    got = broker.take(queue, consumerGroup=group, batch=4)
    partition = got[0]["partitionId"]
    fields = {"consumer_group": group, "ack": ack_of(got[:2]), "release_lease": False,
              "push_items": [{"queue": out, "payload": i} for i in range(2)]}
    first = cycle(broker, query, partition, **fields)
    assert first["success"] and cycle(broker, query, partition, **fields) == first
    assert len(broker.drain(out)) == 2
    assert sql("select total_messages_consumed from queen.partition_consumers where partition_id = %s and consumer_group = %s",
               partition, group) == [(2,)]


def test_a_repeated_cycle_that_gave_its_lease_back_finds_it_gone(broker, query, queue, out, group):
    broker.put(queue, [1])
    got = broker.take(queue, consumerGroup=group)
    fields = {"consumer_group": group, "ack": ack_of(got), "push_items": [{"queue": out}], "state_ops": [upsert("n", 1)]}
    assert cycle(broker, query, got[0]["partitionId"], **fields)["success"]
    failed(cycle(broker, query, got[0]["partitionId"], **fields), "Invalid or expired lease")
    assert len(broker.drain(out)) == 1


def test_repetitions_at_the_same_moment_are_applied_once(broker, broker2, query, part, out):
    body = {"query_id": query, "partition_id": part, "push_items": [{"queue": out, "payload": 1}]}
    answers = in_parallel([lambda b=b: b.post("/streams/v1/cycle", body).expect(200).json for b in (broker, broker2) * 4])
    assert all(a == answers[0] and a["success"] for a in answers) and len(broker.drain(out)) == 1


def test_receipts_older_than_a_minute_are_void_and_their_slot_is_emptied(broker, query, part, sql):
    assert cycle(broker, query, part, state_ops=[upsert("k", 1)])["success"]
    sql("update queen_streams.receipts set at = at - interval '61 seconds' where query_id = %s", query)
    sql("update queen_streams.state set value = '2' where query_id = %s", query)
    assert cycle(broker, query, part, state_ops=[upsert("k", 1)])["success"]
    assert values(broker, query, part) == {"k": 1}
    # The slot that is two minutes old.
    sql("insert into queen_streams.receipts (slot, query_id, partition_id, at) select "
        "(floor(extract(epoch from clock_timestamp()) / 60)::bigint + 1) %% 3, %s, %s, clock_timestamp() - interval '2 minutes'",
        ZERO_UUID, part)
    sql("select queen.forget_receipts()")
    assert sql("select count(*) from queen_streams.receipts where query_id = %s", ZERO_UUID) == [(0,)]
