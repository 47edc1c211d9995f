"""Reading about consumer groups."""
import re

from harness import QUEUE_MODE, wait_for_figures

TS_MS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")


def groups(broker, path=""):
    return broker.get("/api/v1/consumer-groups" + path).expect(200).json


def entry(broker, group, queue, **wanted):
    def probe():
        for g in groups(broker):
            if (g["name"], g["queueName"]) == (group, queue) and all(g[k] == v for k, v in wanted.items()):
                return g
    return wait_for_figures(broker, probe, "%s on %s: %s" % (group, queue, wanted))


def test_one_entry_per_group_and_queue(broker, queue, group):
    broker.put(queue, range(4), partition="p")
    broker.put(queue, range(3), partition="q")
    broker.take(queue, partition="p", consumerGroup=group, subscriptionMode="new", batch=1)
    broker.put(queue, [9, 9], partition="p")
    got = broker.take(queue, partition="p", consumerGroup=group, batch=1)
    broker.ack(got[0])
    e = entry(broker, group, queue, partitionsWithLag=1, totalLag=1)
    assert e["topics"] == [queue] and e["queue"] == queue and e["lagMessages"] == 1
    assert e["maxTimeLag"] == e["lagSeconds"] >= 0 and e["state"] == "Stable" and e["members"] == e["partitions"] >= 1
    assert e["subscriptionMode"] == "new"
    assert TS_MS.match(e["subscriptionTimestamp"]) and TS_MS.match(e["subscriptionCreatedAt"])


def test_groups_of_one_queue_furthest_behind_first(broker, queue, group):
    broker.put(queue, range(5))
    for name, n in ((group + "-a", 4), (group + "-b", 1)):
        for m in broker.take(queue, consumerGroup=name, batch=n):
            broker.ack(m)
    entry(broker, group + "-a", queue, totalLag=1)
    entry(broker, group + "-b", queue, totalLag=4)
    path = "/api/v1/consumer-groups?queue=" + queue
    assert [g["name"] for g in broker.get(path).expect(200).json] == [group + "-a", group + "-b"]
    assert {g["queueName"] for g in broker.get(path + "&sort=lag").expect(200).json} == {queue}
    assert len(broker.get(path + "&sort=lag&limit=1").expect(200).json) == 1
    assert "sort must be lag" in broker.get(path + "&sort=age").expect(400).json["error"]


def test_queue_mode_is_a_group_and_leases_are_lag(broker, queue):
    broker.put(queue, range(4))
    broker.take(queue, batch=2)
    e = entry(broker, QUEUE_MODE, queue, totalLag=4)
    assert e["state"] == "Dead" and e["subscriptionMode"] is None and e["subscriptionTimestamp"] is None


def test_details_are_keyed_by_queue(broker, queue, group):
    broker.put(queue, range(5), partition="acct-7")
    got = broker.take(queue, batch=2, consumerGroup=group)
    entry(broker, group, queue, totalLag=5)
    (p,) = groups(broker, "/" + group)[queue]["partitions"]
    assert p["workerId"] == got[0]["leaseId"] and p["leaseActive"] is True and TS_MS.match(p["lastConsumedAt"])
    assert (p["partition"], p["totalConsumed"], p["offsetLag"]) == ("acct-7", 0, 5) and p["timeLagSeconds"] >= 0
    broker.ack_batch(got, group)
    entry(broker, group, queue, totalLag=3)
    (p,) = groups(broker, "/" + group)[queue]["partitions"]
    assert (p["workerId"], p["leaseActive"], p["totalConsumed"], p["offsetLag"]) == (None, False, 2, 3)


def test_an_unknown_group_is_an_empty_object(broker, group):
    assert groups(broker, "/" + group) == {}


def test_lagging_partitions_worst_first(broker, queue, group, sql):
    for part in ("old", "new"):
        broker.put(queue, [1, 2], partition=part)
        broker.take(queue, partition=part, consumerGroup=group)
    # Time has passed for one of them.
    sql("""update queen.segments set created_at = created_at - interval '2 hours'
            where lane = (select num from queen.lanes l join queen.queues q on q.id = l.queue_id
                           where q.name = %s and l.name = 'old')""", queue)
    broker.take(queue, partition="old", consumerGroup="other-" + group)
    broker.post("/api/v1/stats/refresh").expect(200)
    mine = [e for e in groups(broker, "/lagging?minLagSeconds=-1") if e["consumer_group"] == group]
    assert [e["partition_name"] for e in mine] == ["old", "new"]
    (e,) = [e for e in groups(broker, "/lagging") if e["consumer_group"] == group]
    assert (e["queue_name"], e["partition_name"], e["offset_lag"], e["lag_hours"]) == (queue, "old", 2, 2.0)
    assert e["time_lag_seconds"] >= 7200 and TS_MS.match(e["oldest_unconsumed_at"]) and TS_MS.match(e["last_consumed_at"])
    assert e["worker_id"] and e["partition_id"]
    assert (e["name"], e["queue"], e["lagMessages"], e["partitions"]) == (group, queue, 2, 1)
    assert entry(broker, group, queue)["state"] == "Lagging"
    assert groups(broker, "/lagging?minLagSeconds=999999999") == []


def test_a_deleted_consumer_leaves_the_sums(broker, queue, group, sql):
    broker.put(queue, range(3))
    broker.take(queue, consumerGroup=group, autoAck=True)
    entry(broker, group, queue, totalLag=2)
    sql("delete from queen.consumers where grp = %s", group)
    wait_for_figures(broker, lambda: not [g for g in groups(broker) if g["name"] == group], "gone")
    assert groups(broker, "/" + group) == {}


def test_groups_are_searched_and_paged(broker, queue, group):
    broker.put(queue, range(3))
    names = [group + suffix for suffix in ("-Alpha", "-beta", "-gamma")]
    for name in names:
        broker.take(queue, consumerGroup=name, batch=1)
    path = "/api/v1/consumer-groups?queue=" + queue

    def listed(more=""):
        return [g["name"] for g in broker.get(path + more).expect(200).json]
    wait_for_figures(broker, lambda: listed() == names, "all groups are listed")
    assert listed("&search=" + group + "-alpha") == names[:1] and listed("&search=%25") == []
    assert listed("&search=" + queue.upper()) == names, "the name of the queue counts as well"
    assert listed("&consumerGroup=" + names[1]) == names[1:2]
    assert listed("&limit=2") == names[:2] and listed("&limit=2&offset=2") == names[2:]
    assert len(listed("&sort=lag&offset=1")) == 2


def test_partitions_of_a_group_are_searched_sorted_and_paged(broker, queue, group):
    for name, n in (("Acct-1", 2), ("acct-2", 5), ("other", 3)):
        broker.put(queue, range(n), partition=name)
    for name in ("Acct-1", "acct-2", "other"):
        got = broker.take(queue, partition=name, consumerGroup=group, batch=1)
        if name != "other":
            broker.ack(got[0], consumerGroup=group)
    path = "/api/v1/consumer-groups/%s/queues/%s/partitions" % (group, queue)

    def page(more=""):
        return broker.get(path + more).expect(200).json

    def names(more=""):
        return [p["partition"] for p in page(more)["partitions"]]
    wait_for_figures(broker, lambda: [p["lag"] for p in page()["partitions"]] == [4, 3, 1], "all is counted")
    assert names() == ["acct-2", "other", "Acct-1"] and names("?sort=name") == ["Acct-1", "acct-2", "other"]
    assert names("?sort=age&limit=1") and names("?sort=name&limit=1&offset=1") == ["acct-2"]
    assert names("?search=ACCT&sort=name") == ["Acct-1", "acct-2"]
    answer = page("?search=acct&limit=1")
    assert answer["pagination"] == {"limit": 1, "offset": 0, "total": 2} and answer["leases"] == 0
    (leased,) = page("?search=oth")["partitions"]
    assert leased["leaseId"] == got[0]["leaseId"] and TS_MS.match(leased["leaseExpiresAt"]) and leased["cursor"] == 0
    (free,) = page("?search=acct-1")["partitions"]
    assert free["leaseId"] is None and free["leaseExpiresAt"] is None and free["cursor"] == free["totalConsumed"] == 1
    assert page()["leases"] == 1 and page("?limit=0")["partitions"] == []
    assert broker.get(path.replace(group, "nobody-of-these")).expect(200).json["partitions"] == []
    assert "sort must be" in broker.get(path + "?sort=size").expect(400).json["error"]
    broker.get("/api/v1/consumer-groups/%s/queues/none-%s/partitions" % (group, queue)).expect(404)
