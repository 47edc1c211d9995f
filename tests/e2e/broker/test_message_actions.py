"""Actions on stored messages: delete, retry, move to the dead letters, clear (http-api 10.3, 10.4, 21; semantics 13, 20)."""
import uuid

import pytest

from harness import QUEUE_MODE, ZERO_UUID, Background, in_parallel, uuid7


def path(m, action=""):
    return "/api/v1/messages/%s/%s%s" % (m["partitionId"], m["transactionId"], action)


def delete(broker, m):
    return broker.request("DELETE", path(m)).expect(200).json


def stored(broker, sql, queue, partition="Default"):
    """(partitionId, [transaction ids]) as SQL sees them."""
    return [r[0] for r in sql("""select m.transaction_id from queen.messages m join queen.partitions p on p.id = m.partition_id
                                 join queen.queues q on q.id = p.queue_id
                                 where q.name = %s and p.name = %s order by m.id""", queue, partition)]


def put(broker, queue, n, partition="Default", uuids=False):
    ids = [uuid7() if uuids else "m%d" % i for i in range(n)]
    out = broker.put(queue, list(range(n)), partition=partition, ids=ids)
    return [{"transactionId": t, "partitionId": r["partition_id"] if "partition_id" in r else r["partitionId"]}
            for t, r in zip(ids, out)]


def pending(sql, queue, group=QUEUE_MODE):
    (n,) = sql("""select coalesce(sum(c.pending_estimate), 0) from queen.partition_consumers c
                  join queen.partitions p on p.id = c.partition_id join queen.queues q on q.id = p.queue_id
                  where q.name = %s and c.consumer_group = %s""", queue, group)[0]
    return int(n)


@pytest.mark.parametrize("uuids", [False, True])
def test_a_message_in_the_middle_of_a_segment_is_deleted(broker, broker2, sql, queue, uuids):
    ms = put(broker, queue, 5, uuids=uuids)
    assert delete(broker, ms[2]) == {"success": True, "partitionId": ms[2]["partitionId"],
                                     "transactionId": ms[2]["transactionId"], "message": "removed"}
    assert stored(broker, sql, queue) == [m["transactionId"] for i, m in enumerate(ms) if i != 2]
    for b, g in ((broker, None), (broker2, "other")):
        assert [m["data"] for m in b.drain(queue, consumerGroup=g)] == [0, 1, 3, 4]
    assert pending(sql, queue) == 0


def test_a_missing_message_is_reported(broker, queue):
    (m,) = put(broker, queue, 1)
    no = {"partitionId": m["partitionId"], "transactionId": "nobody"}
    assert delete(broker, no) == {"success": False, **no, "message": "Message not found"}
    for partition in (str(uuid.uuid4()), "no-uuid", ZERO_UUID):
        assert delete(broker, {"partitionId": partition, "transactionId": "m0"})["success"] is False
    assert delete(broker, m)["success"] is True
    assert delete(broker, m)["success"] is False


@pytest.mark.parametrize("uuids", [False, True])
def test_the_transaction_id_can_be_used_again(broker, queue, uuids):
    ms = put(broker, queue, 3, uuids=uuids)
    item = {"queue": queue, "payload": "new", "transactionId": ms[1]["transactionId"]}
    assert broker.push([item]).expect(201).json[0]["status"] == "duplicate"
    delete(broker, ms[1])
    assert broker.push([item]).expect(201).json[0]["status"] == "queued"
    assert broker.push([item]).expect(201).json[0]["status"] == "duplicate"
    assert [m["data"] for m in broker.drain(queue)] == [0, 2, "new"]


def test_under_a_live_lease_the_rest_of_the_batch_completes(broker, queue):
    ms = put(broker, queue, 4)
    got = broker.take(queue, batch=3)
    delete(broker, ms[1])
    r = broker.ack_batch(got)
    assert [x["success"] for x in r] == [True, False, True] and r[1]["error"] == "Message not found"
    assert [m["data"] for m in broker.take(queue, batch=10)] == [3], "the lease has ended"


def test_a_lease_whose_last_message_is_deleted_ends(broker, broker2, queue):
    ms = put(broker, queue, 4)
    got = broker.take(queue, batch=2)
    broker.ack(got[0])
    assert broker.take(queue) == []
    parked = Background(lambda: broker2.take(queue, wait=True, timeout=60000))
    delete(broker, ms[1])
    assert [m["data"] for m in parked.result(70)] == [2]
    assert parked.seconds < 40


def test_a_failed_batch_is_delivered_again_without_the_deleted_message(broker, queue):
    ms = put(broker, queue, 3)
    got = broker.take(queue, batch=3)
    delete(broker, ms[1])
    assert broker.ack(got[0], "failed")["success"] is True
    again = broker.take(queue, batch=3)
    assert [m["data"] for m in again] == [0]
    broker.ack(again[0])
    assert [m["data"] for m in broker.take(queue, batch=3)] == [2]


def test_an_ack_of_a_deleted_and_pushed_again_message_changes_nothing(broker, queue):
    ms = put(broker, queue, 3)
    got = broker.take(queue, batch=2)
    delete(broker, ms[1])
    broker.put(queue, ["new"], ids=["m1"])
    assert broker.ack(got[1])["error"] == "Message not found"
    assert broker.ack(got[0])["success"] is True
    assert [m["data"] for m in broker.drain(queue)] == [2, "new"]


def test_deleting_all_messages_keeps_the_numbering(broker, sql, queue):
    ms = put(broker, queue, 5)
    assert [m["data"] for m in broker.take(queue, consumerGroup="slow", autoAck=True)] == [0]
    for m in (ms[4], ms[0], ms[2], ms[1], ms[3]):
        assert delete(broker, m)["success"] is True
    assert stored(broker, sql, queue) == []
    assert broker.take(queue, consumerGroup="slow") == [] and broker.take(queue) == []
    assert sql("""select count(*) from queen.skips k join queen.lanes l on l.num = k.lane join queen.queues q on q.id = l.queue_id
                  where q.name = %s""", queue) == [(0,)]
    assert sql("""select l.careful, l.skipping from queen.lanes l join queen.queues q on q.id = l.queue_id
                  where q.name = %s""", queue) == [(False, False)]
    put(broker, queue, 2)
    assert [m["data"] for m in broker.drain(queue, consumerGroup="slow")] == [0, 1]
    assert [m["data"] for m in broker.drain(queue)] == [0, 1]


def test_the_last_message_deleted_does_not_look_pending(broker, sql, queue):
    ms = put(broker, queue, 2)
    assert [m["data"] for m in broker.take(queue, autoAck=True)] == [0]
    delete(broker, ms[1])
    assert pending(sql, queue) == 0
    assert sql("select queen.has_pending_messages(%s, null, null)", queue) == [(False,)]
    assert broker.take(queue) == []
    (row,) = sql("""select x.last_message_id, m.id from queen.partition_lookup x
                    join queen.messages m on m.partition_id = x.partition_id where x.queue_name = %s""", queue)
    assert row[0] == row[1]


def test_dead_letters_go_with_the_message(broker, sql, queue):
    broker.configure(queue, retryLimit=0)
    ms = put(broker, queue, 2)
    (m,) = broker.take(queue)
    assert broker.ack(m, "failed")["dlq"] is True
    assert sql("select count(*) from queen.dead_letter_queue where partition_id = %s", ms[0]["partitionId"]) == [(1,)]
    delete(broker, ms[0])
    assert sql("select count(*) from queen.dead_letter_queue where partition_id = %s", ms[0]["partitionId"]) == [(0,)]


def test_messages_are_deleted_through_sql(broker, sql, queue):
    ms = put(broker, queue, 4)
    sql("delete from queen.messages where partition_id = %s and transaction_id in ('m1', 'm2')", ms[0]["partitionId"])
    assert [m["data"] for m in broker.drain(queue)] == [0, 3]


def test_deleting_while_consumers_run(broker, broker2, queue):
    n = 120
    ms = put(broker, queue, n)
    gone, got = set(), []

    def remove():
        for i in range(0, n, 3):
            delete(broker2, ms[i])
            gone.add(i)

    def consume():
        while True:
            last = len(gone) == n // 3
            # Waiting, because a partition is locked for a moment while a message is deleted.
            batch = broker.take(queue, batch=7, wait=True, timeout=1000)
            if not batch:
                if last:
                    return
                continue
            got.extend(m["data"] for m in batch)
            broker.ack_batch(batch)
    in_parallel([remove, consume])
    kept = [i for i in got if i % 3]
    assert kept == [i for i in range(n) if i % 3], "in order, once each"
    assert len(set(got)) == len(got)


# ---- retry ----

def test_a_dead_letter_is_retried_with_its_transaction_id(broker, broker2, sql, queue):
    broker.configure(queue, retryLimit=0)
    trace = str(uuid.uuid4())
    broker.push([{"queue": queue, "payload": {"a": 1.10}, "transactionId": "t", "traceId": trace}]).expect(201)
    broker.put(queue, ["next"])
    for b, g in ((broker, "sad"), (broker2, "glad")):
        (m,) = b.take(queue, consumerGroup=g)
        b.ack(m, "failed" if g == "sad" else "completed", error="no")
    parked = Background(lambda: [broker2.take(queue, consumerGroup="sad", wait=True, timeout=8000, batch=1, autoAck=True)
                                 for _ in range(2)])
    r = broker.post(path(m, "/retry")).expect(200).json
    assert (r["success"], r["partitionId"], r["transactionId"], r["message"]) == (True, m["partitionId"], "t", "requeued")
    assert r["messageId"] > m["id"]
    first, second = parked.result()
    assert [first[0]["data"], second[0]["data"]] == ["next", {"a": 1.10}]
    assert (second[0]["id"], second[0]["transactionId"], second[0]["traceId"]) == (r["messageId"], "t", trace)
    assert [x["data"] for x in broker.drain(queue, consumerGroup="glad")] == ["next"], "it has had it"
    assert [x["data"] for x in broker.drain(queue, consumerGroup="later")] == ["next", {"a": 1.10}]
    assert sql("select count(*) from queen.dead_letter_queue where partition_id = %s", m["partitionId"]) == [(0,)]
    assert pending(sql, queue, "glad") == 0


@pytest.mark.parametrize("body", [None, {}, []])
def test_only_dead_letters_are_retried(broker, queue, body):
    (m,) = put(broker, queue, 1)
    for target in (m, {**m, "transactionId": "no"}, {**m, "partitionId": "no-uuid"}):
        r = broker.post(path(target, "/retry"), body).expect(404).json
        assert r == {"success": False, "error": "Message not found"}
    assert [x["data"] for x in broker.drain(queue)] == [0]


def test_a_retry_into_a_full_queue_is_refused_and_changes_nothing(broker, sql, queue):
    broker.configure(queue, retryLimit=0, maxSize=2)
    put(broker, queue, 2)
    (m,) = broker.take(queue)
    broker.ack(m, "failed")
    broker.put(queue, ["fill"])
    r = broker.post(path(m, "/retry")).expect(429)
    assert r.headers["retry-after"] == "1"
    assert r.json == {"success": False, "error": 'queue "%s" is full' % queue}
    assert stored(broker, sql, queue)[0] == "m0"
    assert sql("select count(*) from queen.dead_letter_queue where partition_id = %s", m["partitionId"]) == [(1,)]


# ---- to the dead letters ----

def dead(sql, m):
    return sql("select consumer_group, error_message from queen.dead_letter_queue where partition_id = %s order by 1",
               m["partitionId"])


def test_the_next_message_is_moved_by_advancing(broker, sql, queue):
    ms = put(broker, queue, 3)
    assert broker.take(queue, autoAck=True)[0]["data"] == 0
    r = broker.post(path(ms[1], "/dlq"), {"error": "manual"}).expect(200).json
    assert r == {"success": True, "partitionId": ms[1]["partitionId"], "transactionId": "m1", "message": "moved"}
    assert dead(sql, ms[1]) == [(QUEUE_MODE, "manual")]
    assert [m["data"] for m in broker.drain(queue)] == [2]
    assert sql("select count(*) from queen.skips k join queen.lanes l on l.num = k.lane where l.id = %s",
               ms[1]["partitionId"]) == [(0,)]


@pytest.mark.parametrize("body", [None, {}, [], {"consumerGroup": None, "error": ""}])
def test_another_message_is_passed_over_by_that_group_alone(broker, broker2, sql, queue, body):
    ms = put(broker, queue, 4)
    broker.post(path(ms[2], "/dlq"), body).expect(200)
    broker.post(path(ms[2], "/dlq"), body).expect(200)
    assert dead(sql, ms[2]) == [(QUEUE_MODE, "Moved by request")], "once"
    assert [m["data"] for m in broker2.drain(queue, consumerGroup="else")] == [0, 1, 2, 3]
    assert pending(sql, queue, "else") == 0
    assert [m["data"] for m in broker2.drain(queue)] == [0, 1, 3]


def test_a_leased_message_is_moved_and_the_batch_completes(broker, sql, queue):
    ms = put(broker, queue, 4)
    got = broker.take(queue, batch=3, consumerGroup="ledger")
    broker.post(path(ms[1], "/dlq"), {"consumerGroup": "ledger"}).expect(200)
    broker.ack(got[0])
    assert broker.ack(got[2])["leaseReleased"] is True
    assert [m["data"] for m in broker.drain(queue, consumerGroup="ledger")] == [3]
    assert dead(sql, ms[1]) == [("ledger", "Moved by request")]


def test_a_moved_message_can_be_retried(broker, queue):
    ms = put(broker, queue, 3)
    broker.post(path(ms[1], "/dlq")).expect(200)
    broker.post(path(ms[1], "/retry")).expect(200)
    assert [m["data"] for m in broker.drain(queue)] == [0, 2, 1]


def test_bad_moves(broker, queue):
    (m,) = put(broker, queue, 1)
    assert broker.post(path({**m, "transactionId": "x"}, "/dlq")).expect(404).json == {
        "success": False, "error": "Message not found"}
    broker.post(path({**m, "partitionId": "x"}, "/dlq")).expect(404)
    for body, word in (({"consumerGroup": 1}, "consumerGroup"), ({"error": []}, "error"),
                       ({"consumerGroup": "x" * 256}, "consumerGroup"), ("{", "JSON"), ([1], "object")):
        assert word in broker.post(path(m, "/dlq"), body).expect(400).json["error"]
    assert [x["data"] for x in broker.drain(queue)] == [0]


# ---- clear ----

def clear(broker, queue, partition=None):
    return broker.request("DELETE", "/api/v1/queues/%s/clear%s" % (queue, "?partition=" + partition if partition else ""))


def test_a_queue_is_cleared(broker, broker2, sql, queue):
    broker.configure(queue, retryLimit=0)
    ms = put(broker, queue, 5, "a") + put(broker, queue, 3, "b")
    delete(broker, ms[1])
    held = broker.take(queue, "b", batch=2)
    broker.ack(broker.take(queue, "a")[0], "failed")
    assert clear(broker2, queue, "a").expect(200).json == {"success": True, "queue": queue, "partition": "a", "deleted": 4}
    assert stored(broker, sql, queue, "a") == [] and len(stored(broker, sql, queue, "b")) == 3
    assert clear(broker2, queue).expect(200).json == {"success": True, "queue": queue, "partition": None, "deleted": 3}
    assert sql("select count(*) from queen.dead_letter_queue where partition_id = %s", ms[0]["partitionId"]) == [(0,)]
    assert broker.ack(held[0])["success"] is False
    assert broker.take(queue, partitions=9) == []
    put(broker, queue, 2, "a"), put(broker, queue, 2, "b")
    assert sorted(m["data"] for m in broker.drain(queue)) == [0, 0, 1, 1]
    assert [r[0] for r in sql("""select min(s.first_seq) from queen.segments s join queen.lanes l on l.num = s.lane
        join queen.queues q on q.id = l.queue_id where q.name = %s and s.count > 0 group by l.name order by l.name""",
                              queue)] == [6, 4]


def test_messages_pushed_after_a_clear_are_found_despite_a_lease(broker, broker2, queue):
    put(broker, queue, 2)
    broker.take(queue)
    parked = Background(lambda: broker.take(queue, wait=True, timeout=60000))
    clear(broker2, queue).expect(200)
    put(broker2, queue, 1)
    assert [m["data"] for m in parked.result(70)] == [0]
    assert parked.seconds < 40


def test_clearing_a_missing_queue_or_partition(broker, queue):
    assert clear(broker, queue).expect(404).json == {"success": False, "error": "Queue not found"}
    broker.configure(queue)
    assert clear(broker, queue).expect(200).json["deleted"] == 0
    assert clear(broker, queue, "no").expect(404).json == {"success": False, "error": "Partition not found"}
