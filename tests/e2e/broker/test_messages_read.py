"""GET /api/v1/messages and /messages/:partitionId/:transactionId."""
import random
import re
import uuid

import pytest
from harness import quote, urlencode, wait_for_figures

TS_MS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")


def listed(broker, **params):
    return broker.get("/api/v1/messages?" + urlencode(params)).expect(200).json


def until(broker, n, **params):
    def probe():
        r = listed(broker, **params)
        return r if len(r["messages"]) == n else None
    return wait_for_figures(broker, probe, "%d messages for %s" % (n, params))


def ids(r):
    return [m["transactionId"] for m in r["messages"]]


def detail(broker, partition, transaction, status=200):
    return broker.get("/api/v1/messages/%s/%s" % (partition, quote(transaction, safe=""))).expect(status)


def test_the_list_has_every_key_and_no_payload(broker, queue):
    broker.configure(queue, namespace="n" + queue, task="t", priority=4)
    made = broker.put(queue, [{"no": 41}], partition="acct-7", ids=["inv-41"])
    (m,) = until(broker, 1, queue=queue)["messages"]
    assert TS_MS.match(m.pop("createdAt")) and uuid.UUID(m.pop("partitionId"))
    assert m == {"id": made[0]["message_id"], "transactionId": "inv-41", "queuePath": queue + "/acct-7", "queue": queue,
                 "partition": "acct-7", "namespace": "n" + queue, "task": "t", "status": "pending",
                 "queueStatus": "pending", "busStatus": {"consumedBy": 0, "totalGroups": 0}, "traceId": None,
                 "producerSub": None, "queuePriority": 4, "leaseExpiresAt": None, "retryCount": 0}


def test_newest_first_over_many_partitions_and_pages(broker, queue):
    sent = []
    for i in range(60):  # one after the other: many segments in each of 7 partitions
        name = "%s-%d" % (queue, i)
        broker.put(queue, [i], partition="p%d" % (i % 7), ids=[name])
        sent.append(name)
    broker.put(queue, range(300), partition="p3", ids=["%s-b%d" % (queue, i) for i in range(300)])
    sent += ["%s-b%d" % (queue, i) for i in range(300)]
    sent.reverse()
    assert ids(until(broker, 200, queue=queue)) == sent[:200]
    for limit, offset in ((1, 0), (10, 295), (25, 310), (50, 340), (1000, 0), (5, 400)):
        assert ids(listed(broker, queue=queue, limit=limit, offset=offset)) == sent[offset:offset + limit]


def test_filters(broker, queue):
    broker.configure(queue, namespace="n" + queue, task="t" + queue)
    for part in ("a", "b"):
        broker.put(queue, [1], partition=part, ids=[part + queue])
    for params in ({"queue": queue}, {"ns": "n" + queue}, {"namespace": "n" + queue}, {"task": "t" + queue}):
        assert ids(until(broker, 2, **params)) == ["b" + queue, "a" + queue]
    assert ids(listed(broker, queue=queue, partition="a")) == ["a" + queue]
    assert ids(listed(broker, queue="nobody-" + queue)) == []
    assert listed(broker, queue="nobody-" + queue)["mode"] == {"hasQueueMode": False, "busGroupsCount": 0, "type": "none"}


def test_the_time_range(broker, queue, sql):
    for i in range(30):
        broker.put(queue, [i], ids=["%s-%d" % (queue, i)])
    # A message every ten minutes, up to now.
    sql("""update queen.segments s set created_at = now() - (30 - s.first_seq) * interval '10 minutes'
            where lane = (select l.num from queen.lanes l join queen.queues q on q.id = l.queue_id
                           where q.name = %s and l.name = 'Default')""", queue)
    broker.post("/api/v1/stats/refresh").expect(200)
    hour = ids(listed(broker, queue=queue))
    assert hour == ["%s-%d" % (queue, i) for i in (29, 28, 27, 26, 25, 24)]  # the default: an hour
    assert len(ids(listed(broker, queue=queue, **{"from": "1970-01-01"}))) == 30
    at = sql("select to_char(now() at time zone 'UTC' - interval '175 minutes', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")[0][0]
    older = ids(listed(broker, queue=queue, **{"from": "1970-01-01", "to": at}))
    assert older[0] == "%s-%d" % (queue, 11) and len(older) == 12
    assert len(ids(listed(broker, queue=queue, **{"from": at}))) == 18
    assert ids(listed(broker, queue=queue, **{"from": "1970-01-01", "to": "1971-01-01"})) == []
    for bad in ({"from": "rubbish"}, {"to": "rubbish"}):
        assert "error" in broker.get("/api/v1/messages?" + urlencode(bad)).expect(400).json


def test_status_in_queue_mode(broker, queue):
    broker.put(queue, range(6), ids=["%s-%d" % (queue, i) for i in range(6)])
    broker.ack(broker.take(queue)[0])
    broker.ack(broker.take(queue)[0], "dlq", error="no")
    broker.take(queue, batch=2)
    r = until(broker, 6, queue=queue)
    assert [m["status"] for m in r["messages"]][::-1] == ["completed", "dead_letter", "processing", "processing", "pending", "pending"]
    assert r["mode"] == {"hasQueueMode": True, "busGroupsCount": 0, "type": "queue"}
    assert TS_MS.match(r["messages"][0]["leaseExpiresAt"])
    broker.post("/api/v1/stats/refresh").expect(200)
    for status, numbers in (("completed", [0]), ("dead_letter", [1]), ("processing", [3, 2]), ("pending", [5, 4]), ("odd", [])):
        assert ids(listed(broker, queue=queue, status=status)) == ["%s-%d" % (queue, i) for i in numbers], status


def test_status_with_named_groups_only(broker, queue):
    broker.put(queue, range(3), ids=["%s-%d" % (queue, i) for i in range(3)])
    broker.take(queue, batch=3, autoAck=True, consumerGroup="x" + queue)
    broker.take(queue, batch=1, autoAck=True, consumerGroup="y" + queue)
    r = until(broker, 3, queue=queue)
    assert [(m["status"], m["busStatus"]["consumedBy"]) for m in r["messages"]] == [("pending", 1), ("pending", 1), ("completed", 2)]
    assert all(m["busStatus"]["totalGroups"] == 2 and m["queueStatus"] == "pending" for m in r["messages"])
    bus = {"hasQueueMode": False, "busGroupsCount": 2, "type": "bus"}
    wait_for_figures(broker, lambda: listed(broker, queue=queue)["mode"] == bus, "mode")
    broker.take(queue)
    wait_for_figures(broker, lambda: listed(broker, queue=queue)["mode"]["type"] == "hybrid", "mode")


def test_one_message_with_its_payload_as_it_was_sent(broker, queue):
    broker.configure(queue, leaseTime=45)
    trace = str(uuid.uuid4())
    broker.post("/api/v1/push", '{"items":[{"queue":"%s","partition":"acct-7","transactionId":"inv/41 ü","traceId":"%s",'
                                '"payload":{"b": 1.10,  "a":[1,2]}}]}' % (queue, trace)).expect(201)
    (m,) = broker.take(queue, consumerGroup="ledger" + queue)
    r = detail(broker, m["partitionId"], "inv/41 ü")
    assert '"payload":{"b": 1.10,  "a":[1,2]}' in r.text
    d = r.json
    assert TS_MS.match(d.pop("createdAt")) and TS_MS.match(d["consumerGroups"][0].pop("leaseExpiresAt"))
    assert d == {"id": m["id"], "transactionId": "inv/41 ü", "partitionId": m["partitionId"], "queuePath": queue + "/acct-7",
                 "queue": queue, "partition": "acct-7", "namespace": "", "task": "", "status": "pending",
                 "payload": {"b": 1.1, "a": [1, 2]}, "isEncrypted": False, "traceId": trace, "producerSub": None,
                 "errorMessage": None, "retryCount": None, "leaseExpiresAt": None,
                 "queueConfig": {"leaseTime": 45, "retryLimit": 3, "retryDelay": 1000, "ttl": 3600, "priority": 0},
                 "mode": {"hasQueueMode": False, "busGroupsCount": 1, "consumedByGroups": 0, "type": "bus"},
                 "consumerGroups": [{"name": "ledger" + queue, "consumed": False}], "attempts": []}
    broker.ack(m)
    d = detail(broker, m["partitionId"], "inv/41 ü").json
    assert d["status"] == "completed" and d["consumerGroups"] == [{"name": "ledger" + queue, "consumed": True, "leaseExpiresAt": None}]


def test_one_dead_letter(broker, queue):
    broker.put(queue, [None], ids=["x"])
    (m,) = broker.take(queue)
    broker.ack(m, "dlq", error="no such account")
    d = detail(broker, m["partitionId"], "x").json
    assert (d["status"], d["errorMessage"], d["retryCount"], d["payload"]) == ("dead_letter", "no such account", 0, None)


def test_a_message_deep_in_a_segment_and_one_with_a_uuid(broker, queue):
    made = broker.put(queue, range(200))
    (m,) = broker.take(queue, batch=1)
    for i in (0, 199):
        d = detail(broker, m["partitionId"], made[i]["transaction_id"]).json
        assert d["payload"] == i and d["id"] == made[i]["message_id"]


@pytest.mark.parametrize("partition", ["rubbish", str(uuid.uuid4()), "00000000-0000-0000-0000-00000000000g"])
def test_an_unknown_message_is_404(broker, partition):
    assert detail(broker, partition, "x", 404).json == {"error": "Message not found"}


def test_an_unknown_transaction_id_is_404(broker, queue):
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    for t in ("nobody", str(uuid.uuid4()), "01a0c2f0-5b7e-7000-8a11-2b3c4d5e6f70"):
        detail(broker, m["partitionId"], t, 404)


def test_consumed_messages_do_not_hide_pending_ones(broker, queue):
    broker.put(queue, ["waits"], partition="old", ids=["waits"])
    for i in range(4):
        broker.put(queue, [i], partition="p%d" % i)
        broker.take(queue, partition="p%d" % i, autoAck=True)
    broker.post("/api/v1/stats/refresh").expect(200)
    r = broker.get("/api/v1/messages?queue=%s&status=pending&limit=2" % queue).expect(200).json
    assert [m["transactionId"] for m in r["messages"]] == ["waits"]


@pytest.fixture(scope="module")
def mixed(broker):
    """A queue with messages of every status in many partitions, as it is listed without a filter."""
    rng, queue = random.Random(7), "mixed-" + uuid.uuid4().hex[:8]
    partitions = ["p%02d" % i for i in range(14)]
    for _ in range(5):  # segments of different sizes
        for p in rng.sample(partitions, 11):
            broker.put(queue, range(rng.randint(1, 4)), partition=p)
    for p in partitions[2:]:
        got = broker.take(queue, p, batch=rng.randint(1, 9)) if rng.random() < 0.9 else []
        if got:
            broker.ack_batch([broker.ack_entry(m, "dlq" if rng.random() < 0.4 else "completed") for m in got])
    for p in partitions[5:10]:
        broker.take(queue, p, batch=2)
    broker.post("/api/v1/stats/refresh").expect(200)
    messages = listed(broker, queue=queue, limit=1000)["messages"]
    assert {m["status"] for m in messages} == {"pending", "processing", "completed", "dead_letter"}
    return queue, messages


@pytest.mark.parametrize("to", [None, "2100-01-01"])
@pytest.mark.parametrize("status", [None, "pending", "processing", "completed", "dead_letter"])
def test_a_page_is_a_piece_of_the_whole_list(broker, mixed, status, to):
    queue, messages = mixed
    wanted = [m["id"] for m in messages if status in (None, m["status"])]
    for limit, offset in ((1, 0), (3, 0), (3, 2), (7, len(wanted) - 4), (1000, 0)):
        params = {k: v for k, v in dict(queue=queue, status=status, to=to, limit=limit, offset=offset).items() if v is not None}
        assert [m["id"] for m in listed(broker, **params)["messages"]] == wanted[offset:offset + limit], params
