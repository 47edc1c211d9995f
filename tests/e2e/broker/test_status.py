"""/api/v1/status/queues... and /status/analytics."""
import re
from datetime import datetime, timedelta, timezone
from urllib.parse import urlencode

import pytest

from harness import wait_for_figures, wait_until

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


def test_the_list_is_searched_and_sorted(broker, queue):
    names = ["%s-%s" % (queue, x) for x in ("b", "A", "c")]
    for name in names:
        broker.configure(name)
    broker.put(names[1], [1, 2])
    broker.put(names[2], [1])

    def listed(**params):
        return broker.get("/api/v1/status/queues?" + urlencode({"search": queue.upper() + "-", **params})).expect(200).json

    def order(**params):
        return [q["name"] for q in listed(**params)["queues"]]

    assert order() == list(reversed(names))
    assert order(sort="name") == sorted(names) and order(sort="name", order="desc") == sorted(names, reverse=True)
    wait_until(lambda: order(sort="pending") == [names[1], names[2], names[0]], 10, "the figures are counted")
    assert order(sort="pending", order="asc") == [names[0], names[2], names[1]]
    assert order(sort="created", order="asc") == names
    assert listed(sort="pending", limit=1, offset=2)["queues"][0]["name"] == names[0]
    assert listed(limit=1)["pagination"] == {"limit": 1, "offset": 0, "total": 3}
    assert listed(search="no such queue " + queue)["pagination"]["total"] == 0
    assert "total" not in broker.get("/api/v1/status/queues?limit=1").json["pagination"]


@pytest.mark.parametrize("params, words", [("sort=color", "sort must be name"), ("sort=name&order=up", "order must be asc or desc")])
def test_an_unknown_order_is_refused(broker, params, words):
    assert words in broker.get("/api/v1/status/queues?" + params).expect(400).json["error"]


def test_one_queue_with_options_and_partitions(broker, queue):
    broker.configure(queue, namespace="n", task="t", leaseTime=45, priority=3, maxSize=100)
    r = status(broker, "queues/%s?includePartitions=true" % queue)
    zeros = {"total": 0, "pending": 0, "processing": 0, "completed": 0, "failed": 0, "deadLetter": 0}
    assert TS_MS.match(r["queue"].pop("createdAt")) and r["queue"].pop("id")
    options = r["queue"].pop("options")
    assert options["leaseTime"] == 45 and options["maxSize"] == 100 and "ttl" not in options
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


def test_partitions_of_a_queue_are_paged_searched_and_sorted(broker, queue):
    broker.push([{"queue": queue, "partition": "P-%d" % i, "payload": n} for i in range(5) for n in range(i + 1)])
    path = "/api/v1/status/queues/" + queue
    names = lambda **params: [p["name"] for p in broker.get(path + "?" + urlencode(params)).expect(200).json["partitions"]]
    wait_for_figures(broker, lambda: names() == ["P-%d" % i for i in range(5)], "figures")
    whole = broker.get(path).expect(200).json
    assert "pagination" not in whole
    page = broker.get(path + "?limit=2&offset=1&sort=pending").expect(200).json
    assert page["pagination"] == {"limit": 2, "offset": 1, "total": 5}
    assert page["totals"] == whole["totals"]
    wait_for_figures(broker, lambda: names(sort="pending", limit=3) == ["P-4", "P-3", "P-2"], "figures")
    assert names(sort="oldest", limit=1) == ["P-0"]
    assert names(search="p-3") == ["P-3"] and names(search="%") == []
    assert names(limit=0) == []
    assert "sort must be" in broker.get(path + "?sort=size").expect(400).json["error"]
