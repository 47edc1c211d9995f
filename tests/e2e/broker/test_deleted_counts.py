"""Deleted messages, and messages skipped for a group, are not counted (ADR 19)."""
import pytest
from harness import QUEUE_MODE, wait_for_figures, wait_until


def put(broker, queue, n, name="m%d", **kw):
    ids = [name % i for i in range(n)]
    out = broker.put(queue, list(range(n)), ids=ids, **kw)
    return [{"transactionId": t, "partitionId": r["partition_id"]} for t, r in zip(ids, out)]


def act(broker, m, method="DELETE", action="", body=None):
    return broker.request(method, "/api/v1/messages/%s/%s%s" % (m["partitionId"], m["transactionId"], action), body).expect(200)


def figures(broker, queue, group=QUEUE_MODE):
    """The counts of a queue and its only partition on every page."""
    def get(path):
        return broker.get("/api/v1/" + path).expect(200).json

    def of(path, key, name):
        return next(e for e in get(path)[key] if e["name"] == name)

    def six(x):
        return {k: x[k] for k in ("total", "pending", "processing")}
    one, status = get("resources/queues/" + queue), get("status/queues/" + queue)
    page = of("status/queues?limit=100000", "queues", queue)["messages"]
    seen = {
        "resources/queues": six(of("resources/queues", "queues", queue)["messages"]),
        "resources/queues/:queue": six(one["totals"]), "of its partition": six(one["partitions"][0]["stats"]),
        # pending includes what is being processed
        "status/queues": {**six(page), "pending": page["pending"] - page["processing"]},
        "status/queues/:queue": six(status["totals"]["messages"]),
        "of its partition there": six(status["partitions"][0]["messages"]),
        "resources/partitions": six(get("resources/partitions?queue=" + queue)["partitions"][0]["messages"]),
    }
    label = of("resources/namespaces", "namespaces", queue)["messages"]
    seen["resources/namespaces"] = {**label, "processing": label["total"] and seen["resources/queues"]["processing"]}
    lag = {
        "consumer-groups": [g["totalLag"] for g in get("consumer-groups") if (g["name"], g["queueName"]) == (group, queue)],
        "consumer-groups/:group": [p["offsetLag"] for p in get("consumer-groups/" + group).get(queue, {}).get("partitions", [])],
        "lagging": [e["offset_lag"] for e in get("consumer-groups/lagging?minLagSeconds=-1")
                    if (e["consumer_group"], e["queue_name"]) == (group, queue)],
    }
    return seen, lag


def expect(broker, queue, lag, group=QUEUE_MODE, **wanted):
    last = [None]

    def probe():
        seen, behind = last[0] = figures(broker, queue, group)
        return all(x == wanted for x in seen.values()) and all(x == lag for x in behind.values())
    try:
        wait_for_figures(broker, probe, "the counts")
    except AssertionError:
        raise AssertionError("%s %s wanted, seen: %s" % (wanted, lag, last[0]))


def overview(broker):
    return broker.get("/api/v1/resources/overview").expect(200).json["messages"]


@pytest.mark.parametrize("consumer", [False, True])
def test_three_of_ten_are_deleted_in_the_middle(metered, queue, consumer):
    broker = metered
    before = overview(broker)
    ms = put(broker, queue, 10)
    if consumer:  # that has got something and given it back
        got = broker.take(queue, batch=1)
        broker.ack(got[0], "retry")
    for i in (3, 4, 7):
        act(broker, ms[i])
    expect(broker, queue, [7] if consumer else [], total=7, pending=7, processing=0)
    after = overview(broker)
    assert after["pending"] - before["pending"] == 7
    assert after["total"] - before["total"] == 10, "counts what was ever pushed"
    got = broker.take(queue, batch=3)
    expect(broker, queue, [7], total=7, pending=4, processing=3)
    broker.ack_batch(got)
    expect(broker, queue, [4], total=7, pending=4, processing=0)
    assert len(broker.drain(queue)) == 4
    wait_for_figures(broker, lambda: figures(broker, queue)[0]["resources/queues"] == {"total": 7, "pending": 0, "processing": 0},
                     "all is consumed")
    (f,) = broker.sql("select total, pending, completed from queen.queue_stats(%s)", queue)
    assert f == (7, 0, 7)


def test_deleted_under_a_lease(broker, queue):
    ms = put(broker, queue, 10)
    broker.take(queue, batch=5)
    act(broker, ms[2])
    act(broker, ms[8])
    expect(broker, queue, [8], total=8, pending=4, processing=4)


def test_a_message_skipped_for_one_group_counts_for_the_others(broker, queue):
    ms = put(broker, queue, 6)
    for g in ("a", "b"):
        broker.ack(broker.take(queue, batch=1, consumerGroup=g + queue)[0], "retry", consumerGroup=g + queue)
    act(broker, ms[3], "POST", "/dlq", {"consumerGroup": "a" + queue})
    expect(broker, queue, [5], group="a" + queue, total=6, pending=6, processing=0)
    expect(broker, queue, [6], group="b" + queue, total=6, pending=6, processing=0)
    act(broker, ms[3], "POST", "/dlq", {"consumerGroup": "b" + queue})
    expect(broker, queue, [5], group="b" + queue, total=6, pending=5, processing=0)


def test_without_the_deleted_a_lane_counts_as_before(broker, queue, sql):
    ms = put(broker, queue, 4)
    act(broker, ms[1])
    expect(broker, queue, [], total=3, pending=3, processing=0)
    for i in (0, 2, 3):
        act(broker, ms[i])
    expect(broker, queue, [], total=0, pending=0, processing=0)
    put(broker, queue, 2)
    expect(broker, queue, [], total=2, pending=2, processing=0)


def test_a_page_of_messages_is_full_and_begins_with_the_newest(broker, queue):
    ms = put(broker, queue, 5, partition="a")
    put(broker, queue, 1, "b%d", partition="b")
    late = put(broker, queue, 6, "late%d", partition="a")
    for m in [ms[1], ms[4]] + late:
        act(broker, m)
    broker.post("/api/v1/stats/refresh").expect(200)

    def page(query):
        return [m["transactionId"] for m in broker.get("/api/v1/messages?queue=%s&%s" % (queue, query)).expect(200).json["messages"]]
    assert page("partition=a&limit=3") == ["m3", "m2", "m0"]
    assert page("limit=1") == ["b0"]
    assert page("limit=3") == ["b0", "m3", "m2"]


def test_acknowledgements_that_failed_are_counted_for_ever(metered, queue):
    before = overview(metered)["failed"]
    (m,) = put(metered, queue, 1)
    assert metered.ack({**m, "leaseId": None, "transactionId": "nobody"}, lease=False)["success"] is False
    wait_until(lambda: overview(metered)["failed"] == before + 1, 10, "one failed")
