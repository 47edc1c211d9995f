"""/api/v1/status/queues... and /status/analytics."""
import re
from datetime import datetime, timedelta, timezone

from harness import wait_for_figures

TS_MS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")


def status(broker, path, code=200):
    return broker.get("/api/v1/status/" + path).expect(code).json


def test_the_list_is_paged(broker, queue):
    for i in range(3):
        broker.configure(queue + str(i), namespace=queue, task="t%d" % i)
    r = status(broker, "queues?namespace=%s&limit=1&offset=1" % queue)
    assert [q["name"] for q in r["queues"]] == [queue + "1"] and r["pagination"] == {"limit": 1, "offset": 1}
    assert status(broker, "queues")["pagination"] == {"limit": 100, "offset": 0}
    assert [q["name"] for q in status(broker, "queues?namespace=%s&task=t2" % queue)["queues"]] == [queue + "2"]
    assert status(broker, "queues?limit=-4")["queues"] == []


def test_one_queue_with_options_and_partitions(broker, queue):
    broker.configure(queue, namespace="n", task="t", leaseTime=45, priority=3, maxSize=100)
    r = status(broker, "queues/%s?includePartitions=true" % queue)
    zeros = {"total": 0, "pending": 0, "processing": 0, "completed": 0, "failed": 0, "deadLetter": 0}
    assert TS_MS.match(r["queue"].pop("createdAt")) and r["queue"].pop("id")
    assert r == {"queue": {"name": queue, "namespace": "n", "task": "t", "priority": 3,
                           "config": {"leaseTime": 45, "retryLimit": 3, "retryDelay": 1000, "ttl": 3600,
                                      "maxQueueSize": 100, "deadLetterQueue": False}},
                 "partitions": [], "totals": {"messages": zeros, **zeros}}
    broker.put(queue, [1, 2, 3], partition="p")
    broker.ack(broker.take(queue)[0])

    def seen():
        now = status(broker, "queues/" + queue)
        return now if now["totals"]["completed"] == 1 else None
    r = wait_for_figures(broker, seen, "figures")
    (p,) = r["partitions"]
    six = {"total": 3, "pending": 2, "processing": 0, "completed": 1, "failed": 0, "deadLetter": 0}
    assert p["messages"] == p["stats"] == r["totals"]["messages"] == six
    assert p["cursor"] == {"totalConsumed": 1, "batchesConsumed": 1}
    assert all(TS_MS.match(p[k]) for k in ("createdAt", "lastActivity", "oldestMessage", "newestMessage"))
    assert (p["total"], p["pending"], p["dlq"]) == (3, 2, 0)


def test_messages_of_a_queue_newest_first(broker, queue):
    made = broker.put(queue, range(5), partition="p")
    r = status(broker, "queues/%s/messages?limit=2&offset=1" % queue)
    assert [m["id"] for m in r] == [made[3]["message_id"], made[2]["message_id"]]
    assert set(r[0]) == {"id", "transactionId", "partitionId", "queuePath", "queue", "partition", "status", "createdAt"}
    assert r[0]["queuePath"] == queue + "/p" and r[0]["status"] == "pending"
    assert len(status(broker, "queues/%s/messages" % queue)) == 5
    assert status(broker, "queues/nobody-%s/messages" % queue) == []


def test_analytics_has_every_bucket(broker, queue):
    broker.put(queue, range(7))

    def seen():
        r = status(broker, "analytics?queue=" + queue)
        return r if sum(p["messages"] for p in r["dataPoints"]) == 7 else None
    r = wait_for_figures(broker, seen, "history")
    assert r["interval"] == "hour" and len(r["dataPoints"]) in (24, 25)
    assert [p["timestamp"] for p in r["dataPoints"]] == sorted(p["timestamp"] for p in r["dataPoints"])
    assert all(p["timestamp"].endswith(":00:00.000Z") for p in r["dataPoints"])
    assert sum(p["messages"] for p in status(broker, "analytics?namespace=" + queue)["dataPoints"]) == 7
    assert sum(p["messages"] for p in status(broker, "analytics?task=nobody-" + queue)["dataPoints"]) == 0
    assert sum(p["messages"] for p in status(broker, "analytics?interval=day")["dataPoints"]) >= 7
    now = datetime.now(timezone.utc).replace(second=0, microsecond=0)
    r = status(broker, "analytics?interval=minute&from=%s&to=%s"
               % ((now - timedelta(minutes=2)).strftime("%Y-%m-%dT%H:%M:%SZ"), now.strftime("%Y-%m-%dT%H:%M:%SZ")))
    assert len(r["dataPoints"]) == 3 and TS_MS.match(r["from"]) and TS_MS.match(r["to"])


def test_bad_times_are_refused(broker):
    for query in ("from=rubbish", "to=rubbish", "interval=minute&from=1970-01-01", "from=infinity"):
        assert "error" in status(broker, "analytics?" + query, 400)
