"""GET /api/v1/dlq."""
import re
from datetime import datetime, timedelta, timezone

import harness
from harness import urlencode

TS_MS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")


def dlq(broker, **params):
    return broker.get("/api/v1/dlq?" + urlencode(params)).expect(200).json


def bury(broker, queue, n, group=None, partition="p", error="no such account"):
    broker.put(queue, [{"no": i} for i in range(n)], partition=partition,
               ids=["%s-%s-%d" % (queue, partition, i) for i in range(n)])
    for m in broker.take(queue, partition=partition, batch=n, consumerGroup=group):
        broker.ack(m, "dlq", error=error)


def test_every_key_of_an_entry(broker, queue, group):
    made = broker.post("/api/v1/push", '{"items":[{"queue":"%s","partition":"acct-7","transactionId":"inv-44",'
                                       '"payload":{"no":  44}}]}' % queue).expect(201).json
    (m,) = broker.take(queue, consumerGroup=group)
    broker.ack(m, "dlq", error="no such account")
    r = broker.get("/api/v1/dlq?queue=%s&consumerGroup=%s&limit=10" % (queue, group)).expect(200)
    assert '"data":{"no":  44}' in r.text
    (d,) = r.json["messages"]
    assert TS_MS.match(d.pop("createdAt")) and TS_MS.match(d.pop("failedAt"))
    assert harness.is_uuid(d.pop("dlqId")) and d.pop("status") == "FAILED"
    (attempt,) = d.pop("attempts")
    assert (attempt["attempt"], attempt["outcome"], attempt["error"]) == (1, "dlq", "no such account")
    assert d == {"id": made[0]["message_id"], "transactionId": "inv-44", "partitionId": m["partitionId"], "queue": queue,
                 "queueName": queue, "partition": "acct-7", "consumerGroup": group, "errorMessage": "no such account",
                 "retryCount": 0, "data": {"no": 44}, "producerSub": None}
    assert r.json["pagination"] == {"limit": 10, "offset": 0} and r.json["total"] == 1


def test_newest_failure_first_in_pages_with_a_total(broker, queue):
    bury(broker, queue, 5)
    everything = dlq(broker, queue=queue)
    assert everything["pagination"] == {"limit": 100, "offset": 0} and everything["total"] == 5
    assert [m["data"]["no"] for m in everything["messages"]] == [4, 3, 2, 1, 0]
    page = dlq(broker, queue=queue, limit=2, offset=1)
    assert [m["data"]["no"] for m in page["messages"]] == [3, 2]
    assert page["pagination"] == {"limit": 2, "offset": 1} and page["total"] == 5
    assert dlq(broker, queue=queue, offset=9)["messages"] == [] and dlq(broker, queue=queue, limit=0)["total"] == 5


def test_filters(broker, queue):
    bury(broker, queue, 2, partition="a", group="g1" + queue)
    bury(broker, queue, 1, partition="b", group="g2" + queue)
    assert dlq(broker, queue=queue)["total"] == 3
    assert dlq(broker, queue=queue, partition="a")["total"] == 2
    assert dlq(broker, consumerGroup="g2" + queue)["total"] == 1
    assert dlq(broker, queue=queue, consumerGroup="")["total"] == 3
    later = (datetime.now(timezone.utc) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert dlq(broker, queue=queue, **{"from": later})["total"] == 0
    assert dlq(broker, queue=queue, to=later)["total"] == 3
    assert dlq(broker, queue=queue, to="2001-01-01") == {"messages": [], "pagination": {"limit": 100, "offset": 0}, "total": 0}
    assert dlq(broker, queue="nobody-" + queue) == {"messages": [], "pagination": {"limit": 100, "offset": 0}, "total": 0}
    assert "error" in broker.get("/api/v1/dlq?from=rubbish").expect(400).json


def test_two_groups_make_two_entries(broker, queue):
    broker.put(queue, [1])
    for g in ("x", "y"):
        (m,) = broker.take(queue, consumerGroup=g + queue)
        broker.ack(m, "dlq")
    assert sorted(m["consumerGroup"] for m in dlq(broker, queue=queue)["messages"]) == ["x" + queue, "y" + queue]
