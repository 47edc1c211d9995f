"""GET /api/v1/status and /api/v1/analytics: http-api sections 14.1 and 15."""
import re
import uuid

import pytest

from harness import Background, wait_until

TS_MS = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
TS_S = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:00Z$")
PATHS = ["status", "analytics/system-metrics", "analytics/worker-metrics", "analytics/queue-lag", "analytics/queue-ops",
         "analytics/queue-parked-replicas"]


def get(broker, path):
    return broker.get("/api/v1/" + path).expect(200).json


def keys(text):
    return set(text.split())


def use(broker, queue):
    """12 pushed by 12 requests, 3 delivered by one of two pops, 3 acked by two requests."""
    for i in range(12):
        broker.put(queue, [i], partition="p")
    a, b, c = broker.take(queue, batch=3)
    broker.ack(a)
    broker.ack_batch([b, c])
    assert broker.pop(queue, partition="none").status == 204


def ops(broker, queue, **sums):
    """The series of queue-ops, once its sums are these: periods are a second long and may be cut by a minute's end."""
    def probe():
        answer = get(broker, "analytics/queue-ops?queue=" + queue)
        return all(sum(p[k] for p in answer["series"]) == v for k, v in sums.items()) and answer
    return wait_until(probe, 8, "queue-ops of %s" % sums, 0.1)


@pytest.fixture(scope="module")
def used(metered):
    """A queue that was used, once all of it is written."""
    queue = "used-" + uuid.uuid4().hex[:12]
    use(metered, queue)
    ops(metered, queue, pushMessages=12, popMessages=3, ackSuccess=3, popEmpty=1)
    return queue


def test_queue_ops(metered, used):
    queue = used
    answer = get(metered, "analytics/queue-ops?queue=" + queue)
    assert set(answer) == keys("timeRange bucketMinutes series queues")
    assert answer["bucketMinutes"] == 1 and answer["queues"] == [queue]
    point = answer["series"][-1]
    assert set(point) == keys("bucket queueName pushRequests pushMessages popMessages popEmpty ackRequests ackSuccess ackFailed "
                              "transactions partitionsCreated partitionsDeleted partitionCount avgLagMs maxLagMs pushPerSecond "
                              "popPerSecond ackPerSecond emptyPerSecond parkedCount")
    total = {k: sum(p[k] for p in answer["series"]) for k in ("pushRequests", "popMessages", "ackRequests", "ackFailed",
                                                              "partitionsCreated", "partitionsDeleted")}
    assert total == {"pushRequests": 12, "popMessages": 3, "ackRequests": 2, "ackFailed": 0, "partitionsCreated": 1,
                     "partitionsDeleted": 0}
    assert TS_S.match(point["bucket"]) and all(p["queueName"] == queue for p in answer["series"])
    assert answer["series"] == sorted(answer["series"], key=lambda p: p["bucket"]), "oldest first"
    assert abs(sum(p["pushPerSecond"] for p in answer["series"]) - 0.2) < 0.02
    wait_until(lambda: get(metered, "analytics/queue-ops?queue=" + queue)["series"][-1]["partitionCount"] == 1, 15,
               "the count of partitions", 0.2)
    assert 0 < max(p["maxLagMs"] for p in answer["series"]) < 10000


def test_deleted_partitions_of_a_deleted_queue_are_orphaned(metered, queue):
    metered.push([{"queue": queue, "partition": str(i), "payload": i} for i in range(2)]).expect(201)
    metered.request("DELETE", "/api/v1/resources/queues/" + queue).expect(200)
    series = get(metered, "analytics/queue-ops?queue=__orphaned__")["series"]
    assert sum(p["partitionsDeleted"] for p in series) >= 2 and series[-1]["partitionCount"] is None


def test_queue_lag(metered, used):
    queue = used
    answer = get(metered, "analytics/queue-lag?queue=" + queue)
    assert sum(p["popCount"] for p in answer) == 3
    assert set(answer[0]) == keys("queueName popCount avgLagMs maxLagMs bucketTime") and TS_S.match(answer[0]["bucketTime"])
    assert all(p["queueName"] == queue and 0 <= p["avgLagMs"] <= p["maxLagMs"] for p in answer)


def test_status_of_one_queue(metered, used):
    queue = used
    wait_until(lambda: (lambda m: m["pending"] == 9 and m["processing"] == 0)(get(metered, "status?queue=" + queue)["messages"]),
               15, "nine pending", 0.1)
    answer = get(metered, "status?queue=" + queue)
    assert set(answer) == keys("timeRange bucketMinutes pointCount throughput queues messages leases deadLetterQueue workers "
                               "errors statsAge")
    m = answer["messages"]
    assert (m["total"], m["completed"], m["failed"], m["deadLetter"], m["processing"]) == (12, 3, 0, 0, 0)
    assert m["requests"] == {"push": 12, "pop": 2, "ack": 2} and m["batchEfficiency"] == {"push": 1, "pop": 1.5, "ack": 1.5}
    q, = answer["queues"]
    assert set(q) == keys("id name namespace task partitions totalConsumed")
    assert (q["name"], q["namespace"], q["partitions"], q["totalConsumed"]) == (queue, queue, 1, 3)
    point = answer["throughput"][0]
    assert set(point) == keys("timestamp ingested processed popMessages ingestedPerSecond processedPerSecond popPerSecond avgLagMs "
                              "maxLagMs avgEventLoopLagMs maxEventLoopLagMs minFreeSlots dbErrors ackFailed dlqCount "
                              "queenCpuUserPct queenCpuSysPct queenRssMb dbPoolActive dbPoolIdle dbPoolSize")
    assert answer["pointCount"] == len(answer["throughput"]) and TS_S.match(point["timestamp"])
    assert sum(p["ingested"] for p in answer["throughput"]) == 12
    assert point["queenRssMb"] > 1 and point["dbPoolSize"] > 0  # an average: workers may still have been connecting
    w = answer["workers"]
    assert [x["workerId"] for x in w if x["hostname"] == w[-1]["hostname"]] == [0, 1]
    assert keys("hostname workerId avgEventLoopLagMs maxEventLoopLagMs freeSlots dbConnections jobQueueSize "
                "messagesProcessed") <= set(w[0])
    assert type(answer["statsAge"]) is int and 0 <= answer["statsAge"] < 10
    assert all(TS_MS.match(answer["timeRange"][k]) for k in ("from", "to"))


def test_status_by_namespace_and_task(metered, queue):
    metered.configure(queue, namespace="ns-" + queue, task="t-" + queue)
    metered.put(queue, [1, 2])
    ops(metered, queue, pushMessages=2)
    for query in ("namespace=ns-" + queue, "task=t-" + queue, "namespace=ns-%s&task=t-%s" % (queue, queue)):
        assert get(metered, "status?" + query)["messages"]["total"] == 2
    assert get(metered, "status?namespace=ns-%s&task=other" % queue)["messages"]["total"] == 0


def test_status_shows_leases_and_dead_letters(metered, queue):
    metered.put(queue, [1, 2, 3])
    a, b, c = metered.take(queue, batch=3)
    metered.ack(a)

    def leased():
        lease = get(metered, "status?queue=" + queue)["leases"]
        return lease == {"active": 1, "partitionsWithLeases": 1, "totalBatchSize": 3, "totalAcked": 1}
    wait_until(leased, 15, "the lease", 0.2)
    metered.ack_batch([metered.ack_entry(b, "dlq", error="boom"), metered.ack_entry(c, "completed")])

    def buried():
        return get(metered, "status?queue=" + queue)["deadLetterQueue"] == {
            "totalMessages": 1, "affectedPartitions": 1, "topErrors": [{"error": "boom", "count": 1}]}
    wait_until(buried, 15, "the dead letter", 0.2)
    assert get(metered, "status?queue=" + queue)["leases"]["active"] == 0


def test_worker_metrics(metered, used):
    answer = get(metered, "analytics/worker-metrics")
    assert set(answer) == keys("timeRange bucketMinutes pointCount timeSeries workers queues summary")
    point = answer["timeSeries"][0]
    assert set(point) == keys("timestamp pushMessages popMessages ackMessages pushRequests popRequests ackRequests jobsDone "
                              "pushPerSecond popPerSecond ackPerSecond avgEventLoopLagMs maxEventLoopLagMs avgFreeSlots "
                              "minFreeSlots dbConnections avgJobQueueSize maxJobQueueSize backoffSize avgLagMs maxLagMs lagCount "
                              "dbErrors ackSuccess ackFailed dlqCount")
    assert set(answer["workers"][0]) == keys("hostname workerId avgEventLoopLagMs maxEventLoopLagMs freeSlots dbConnections "
                                             "jobQueueSize backoffSize messagesProcessed lastSeen")
    assert set(answer["summary"]) == keys("totalPushMessages totalPopMessages totalAckMessages totalPushRequests totalPopRequests "
                                          "totalAckRequests totalDbErrors totalAckFailed totalDlq pendingMessages")
    assert answer["summary"]["totalPushMessages"] >= 12
    assert {q["queueName"]: q["popCount"] for q in answer["queues"]}[used] == 3
    assert point["jobsDone"] >= point["pushRequests"] and point["dbConnections"] >= 2


def test_system_metrics(metered):
    def replica():
        found = get(metered, "analytics/system-metrics?workerId=metered-1")["replicas"]
        return found and found[0]
    r = wait_until(replica, 5, "the replica", 0.1)
    assert r["port"] == metered.port and r["workerId"] == "metered-1"
    point = r["timeSeries"][-1]
    assert TS_S.match(point["timestamp"]) and point["sampleCount"] > 0
    for leaf in (point["metrics"]["cpu"]["user_us"], point["metrics"]["memory"]["virtual_bytes"],
                 point["metrics"]["database"]["pool_active"], point["metrics"]["registries"]["response"]):
        assert set(leaf) == {"avg", "min", "max", "last"}
    answer = get(metered, "analytics/system-metrics?hostname=nobody")
    assert answer["replicas"] == [] and answer["replicaCount"] == 0 and answer["pointCount"] == 0


def test_gauges_of_several_rows_are_merged(metered):
    row = '{"cpu":{"user_us":{"avg":%d,"min":%d,"max":%d,"last":%d}}}'
    merged, = metered.sql("select queen.merge_gauges(array[%s::jsonb, %s::jsonb], array[1, 3])", row % (10, 5, 20, 7),
                          row % (30, 25, 90, 60))[0]
    assert merged == {"cpu": {"user_us": {"avg": 25, "min": 5, "max": 90, "last": 60}}}


def test_parked_replicas(metered, queue):
    metered.put(queue, [1])
    metered.take(queue, autoAck=True)
    poll = Background(lambda: metered.pop(queue, wait=True, autoAck=True, timeout=20000))
    answer = wait_until(lambda: (lambda a: a["series"] and a)(get(metered, "analytics/queue-parked-replicas?queue=" + queue)),
                        8, "a parked consumer", 0.1)
    assert set(answer) == keys("timeRange bucketMinutes series replicas")
    assert set(answer["series"][0]) == keys("bucket queueName hostname workerId parkedCount")
    assert answer["replicas"] == [{k: answer["series"][0][k] for k in ("hostname", "workerId")}]

    def share():
        series = get(metered, "analytics/queue-parked-replicas?queue=" + queue)["series"]
        return sum(p["parkedCount"] for p in series)
    wait_until(lambda: 0 < share() <= 15 / 60, 8, "its share of a minute", 0.1)
    metered.put(queue, [2])
    poll.result()
    assert abs(sum(p["parkedCount"] for p in ops(metered, queue)["series"]) - share()) < 0.05


def test_a_dead_process_has_no_parked_consumers(metered):
    metered.sql("insert into queen.worker_metrics select gen_random_uuid(), now() - interval '20 minutes', 60000, 'dead', 0, 1, "
                "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0")
    metered.sql("insert into queen.queue_parked_replica values (now() - interval '21 minutes', 'left', 'dead', 0, 1, 4)")
    series = get(metered, "analytics/queue-parked-replicas?queue=left")["series"]
    assert 1 <= len(series) <= 4 and max(p["parkedCount"] for p in series) == 4


def test_postgres_stats(metered):
    answer = get(metered, "analytics/postgres-stats")
    assert set(answer) == keys("timestamp database databaseCache tableCache indexCache cacheSummary deadTuples hotUpdates "
                               "activeQueries oldTransactions autovacuumStatus bufferConfig bufferUsage tableSizes")
    assert answer["database"] == "metered" == answer["databaseCache"]["database"] and TS_MS.match(answer["timestamp"])
    assert set(answer["databaseCache"]) == keys("database diskReads cacheHits cacheHitRatio")
    assert set(answer["tableCache"][0]) == keys("schema table diskReads cacheHits cacheHitRatio")
    assert set(answer["indexCache"][0]) == keys("schema table index diskReads cacheHits cacheHitRatio")
    assert all(set(answer["cacheSummary"][k]) == keys("diskReads cacheHits hitRatio") for k in ("tables", "indexes"))
    assert set(answer["tableSizes"][0]) == keys("table totalSize totalSizeBytes tableSize tableSizeBytes indexSize indexSizeBytes")
    assert set(answer["autovacuumStatus"][0]) == keys("table lastAutovacuum deadTuples autovacuumCount autoanalyzeCount")
    assert set(answer["bufferConfig"]) == {"sharedBuffers", "sharedBuffersSize"} and answer["bufferUsage"] == []
    for name, names in (("deadTuples", "schema table deadTuples liveTuples deadPercentage lastVacuum lastAutovacuum"),
                        ("hotUpdates", "schema table totalUpdates hotUpdates hotUpdatePercentage"),
                        ("activeQueries", "pid duration state query waitEventType waitEvent")):
        assert all(set(x) == keys(names) for x in answer[name])


# --- time -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("span,minutes", [("60 min", 1), ("61 min", 5), ("6 h", 5), ("361 min", 15), ("24 h", 15), ("25 h", 60),
                                          ("7 days", 60), ("8 days", 360)])
def test_the_width_of_buckets_follows_the_range(metered, span, minutes):
    f, = metered.sql("select queen.iso_ms('2026-02-10T00:00:00Z'::timestamptz - %s::interval)", span)[0]
    answer = get(metered, "status?from=%s&to=2026-02-10T00:00:00Z" % f)
    assert answer["bucketMinutes"] == minutes
    assert answer["timeRange"] == {"from": f, "to": "2026-02-10T00:00:00.000Z"}


def test_wide_buckets_take_rows_together(metered):
    metered.sql("insert into queen.queue_lag_metrics select '2026-01-05T10:00:30Z'::timestamptz + i * interval '1 minute', 60000, "
                "'past', 1, 10, 1, 5, 0, 0, 1, 5, 0, 0, 50000, 20000 from generate_series(0, 9) i")
    series = get(metered, "analytics/queue-ops?queue=past&from=2026-01-05T08:00:00Z&to=2026-01-05T11:00:00Z")["series"]
    assert [(p["bucket"], p["pushMessages"], p["avgLagMs"], p["maxLagMs"], p["pushPerSecond"]) for p in series] == [
        ("2026-01-05T10:00:00Z", 50, 10, 20, 0.17), ("2026-01-05T10:05:00Z", 50, 10, 20, 0.17)]
    lag = get(metered, "analytics/queue-lag?queue=past&from=2026-01-05T08:00:00Z&to=2026-01-05T11:00:00Z")
    assert len(lag) == 10 and lag[0]["bucketTime"] == "2026-01-05T10:09:00Z" and lag[0]["popCount"] == 5


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("query,error", [("from=yesterdayish", "from must be a timestamp"), ("to=x", "to must be a timestamp"),
                                         ("from=2026-02-02&to=2026-02-01", "from must not be later than to"),
                                         ("from=infinity", "from")])
def test_bad_times_are_400(metered, path, query, error):
    r = metered.get("/api/v1/%s?%s" % (path, query)).expect(400)
    assert error in r.json["error"]


@pytest.mark.parametrize("path", PATHS)
def test_an_unknown_queue_or_an_empty_time_is_an_empty_series(metered, path):
    answer = get(metered, path + "?queue=no-such-queue&from=2020-01-01&to=2020-01-02")
    series = answer if isinstance(answer, list) else next(
        answer[k] for k in ("throughput", "replicas", "timeSeries", "series") if k in answer)
    assert series == []
