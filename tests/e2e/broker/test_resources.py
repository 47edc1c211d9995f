"""/api/v1/resources/...: queues, partitions and labels with maintained statistics."""
import re
import uuid

import pytest
from harness import quote, wait_for_figures, wait_until

TS_MS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")


def resource(broker, path):
    return broker.get("/api/v1/resources/" + path).expect(200).json


def entry(broker, queue, path="resources/queues"):
    r = broker.get("/api/v1/" + path).expect(200).json
    return next((q for q in r["queues"] if q["name"] == queue), None)


def until(broker, queue, path="resources/queues", **wanted):
    """The queue's entry once its messages show these figures (another test's pass may be under way)."""
    def probe():
        e = entry(broker, queue, path)
        return e if e and {k: e["messages"][k] for k in wanted} == wanted else None
    return wait_for_figures(broker, probe, "%s: %s" % (queue, wanted))


def detail_until(broker, path, probe):
    def look():
        r = broker.get(path).expect(200).json
        return r if probe(r) else None
    return wait_for_figures(broker, look, path)


def test_a_queue_is_listed_at_once_with_zeros(broker, queue):
    made = broker.configure(queue, namespace="ns-" + queue, task="t-" + queue, leaseTime=45, priority=7, maxSize=9)
    e = entry(broker, queue)
    assert TS_MS.match(e.pop("createdAt"))
    assert e == {"id": made["queueId"], "name": queue, "namespace": "ns-" + queue, "task": "t-" + queue, "partitions": 0,
                 "messages": {"total": 0, "pending": 0, "processing": 0}, "partitionCount": 0, "priority": 7,
                 "leaseTime": 45, "retryLimit": 3, "maxSize": 9, "encryptionEnabled": False, "pending": 0,
                 "processing": 0, "completed": 0, "failed": 0, "dlq": 0, "lagSeconds": 0}


def test_the_figures_follow_push_pop_ack_and_dead_letters(broker, queue):
    broker.put(queue, range(12), partition="acct-7")
    until(broker, queue, total=12, pending=12, processing=0)
    got = broker.take(queue, batch=3)
    until(broker, queue, total=12, pending=9, processing=3)
    until(broker, queue, "status/queues?limit=1000", total=12, pending=12, processing=3)
    broker.ack(got[0])
    until(broker, queue, total=12, pending=9, processing=2)
    broker.ack(got[1])
    broker.ack(got[2], "dlq")
    e = until(broker, queue, total=12, pending=9, processing=0)
    assert (e["partitions"], e["partitionCount"], e["completed"], e["dlq"]) == (1, 1, 2, 1)


def test_pending_counts_messages_not_consumed_by_the_slowest_group(broker, queue):
    broker.put(queue, range(10))
    broker.take(queue, batch=4, autoAck=True, consumerGroup="fast-" + queue)
    assert len(broker.take(queue, batch=10, consumerGroup="slow-" + queue)) == 10
    until(broker, queue, total=10, pending=0, processing=10)


def test_messages_leased_by_two_groups_count_once(broker, queue):
    broker.put(queue, range(10))
    for g in ("a", "b"):
        broker.take(queue, batch=4, consumerGroup=g + queue)
    until(broker, queue, pending=6, processing=4)


def test_a_lease_that_ran_out_is_pending_again(broker, queue):
    broker.configure(queue, leaseTime=1)
    broker.put(queue, range(3))
    broker.take(queue, batch=2)
    until(broker, queue, pending=1, processing=2)
    until(broker, queue, pending=3, processing=0)


def test_queues_come_newest_first_and_can_be_filtered_and_paged(broker, queue):
    names = [queue + "-%d" % i for i in range(3)]
    for n in names:
        broker.configure(n, namespace="n" + queue, task="t" + n)
    listed = [q["name"] for q in resource(broker, "queues")["queues"]]
    assert [n for n in listed if n.startswith(queue)] == names[::-1]

    def names_of(query):
        return [q["name"] for q in resource(broker, "queues?" + query)["queues"]]
    assert names_of("namespace=n" + queue) == names[::-1]
    assert names_of("namespace=n%s&limit=1" % queue) == names[2:]
    assert names_of("namespace=n%s&limit=2&offset=1" % queue) == [names[1], names[0]]
    assert names_of("task=t" + names[1]) == [names[1]]
    assert names_of("namespace=nobody-" + queue) == []
    assert names_of("namespace=n%s&limit=rubbish" % queue) == names[::-1]


def test_one_queue_with_its_partitions_by_name(broker, queue):
    broker.put(queue, [1, 2], partition="b")
    broker.put(queue, [1], partition="a")
    got = broker.take(queue, partition="b")
    broker.ack(got[0])
    r = detail_until(broker, "/api/v1/resources/queues/" + queue, lambda r: r["totals"]["completed"] == 1)
    assert [p["name"] for p in r["partitions"]] == ["a", "b"]
    a, b = r["partitions"]
    assert b["stats"] == {"total": 2, "pending": 1, "processing": 0, "completed": 1, "failed": 0, "deadLetter": 0}
    assert b["id"] == got[0]["partitionId"]
    assert all(TS_MS.match(x) for x in (a["createdAt"], a["oldestMessage"], a["newestMessage"]))
    assert {k: a[k] for k in ("total", "pending", "processing", "completed", "failed", "dlq")} == \
        {"total": 1, "pending": 1, "processing": 0, "completed": 0, "failed": 0, "dlq": 0}
    assert r["totals"] == {"total": 3, "pending": 2, "processing": 0, "completed": 1, "failed": 0, "deadLetter": 0}
    assert r["name"] == queue and r["namespace"] == queue and r["task"] == ""


def test_a_queue_without_messages_has_no_partitions(broker, queue):
    broker.configure(queue)
    r = resource(broker, "queues/" + queue)
    assert r["partitions"] == [] and r["totals"]["total"] == 0


@pytest.mark.parametrize("path", ["resources/queues/", "status/queues/"])
def test_an_unknown_queue_is_404(broker, path):
    r = broker.get("/api/v1/" + path + "nobody-" + uuid.uuid4().hex).expect(404)
    assert r.json == {"error": "Queue not found"}


def test_names_in_the_path_are_percent_decoded(broker, queue):
    name = queue + " a/b ü"
    broker.put(name, [1], partition="x y")
    r = resource(broker, "queues/" + quote(name, safe=""))
    assert r["name"] == name and r["partitions"][0]["name"] == "x y"


def test_namespaces_and_tasks_sum_up_their_queues(broker, queue):
    ns, task = "ns" + queue, "task" + queue
    for i in range(2):
        broker.configure(queue + str(i), namespace=ns, task=task)
        broker.put(queue + str(i), [1, 2, 3], partition="p")
    broker.configure(queue + "x", namespace="", task="")

    def one(what, key, name):
        return next((e for e in resource(broker, what)[what] if e[key] == name), None)

    def summed():
        e = one("namespaces", "namespace", ns)
        return e if e["messages"]["total"] == 6 else None
    n = wait_for_figures(broker, summed, "sum")
    assert n == {"namespace": ns, "queues": 2, "partitions": 2, "messages": {"total": 6, "pending": 6}, "name": ns,
                 "queueCount": 2, "taskCount": 1}
    assert one("tasks", "task", task) == {"task": task, "queues": 2, "partitions": 2,
                                          "messages": {"total": 6, "pending": 6}, "name": task, "queueCount": 2,
                                          "namespaceCount": 1}
    names = [e["namespace"] for e in resource(broker, "namespaces")["namespaces"]]
    assert "" not in names and names == sorted(names)


def test_partitions_of_a_queue_and_of_all(broker, queue):
    broker.put(queue, [1, 2], partition="acct-7")
    r = detail_until(broker, "/api/v1/resources/partitions?queue=" + queue,
                     lambda r: r["partitions"] and r["partitions"][0]["messages"]["total"] == 2)
    (p,) = r["partitions"]
    assert TS_MS.match(p.pop("createdAt")) and uuid.UUID(p.pop("id"))
    assert p == {"name": "acct-7", "queue": queue, "messages": {"total": 2, "pending": 2, "processing": 0}}
    assert any(p["queue"] == queue for p in resource(broker, "partitions")["partitions"])
    assert resource(broker, "partitions?queue=nobody-" + queue) == {"partitions": []}


def test_the_overview_counts_for_ever(broker, queue):
    before = resource(broker, "overview")
    broker.put(queue, range(5))
    got = broker.take(queue, batch=2)
    broker.ack(got[0])
    broker.ack(got[1], "dlq")

    def grown():
        now = resource(broker, "overview")
        return now if now["messages"]["completed"] - before["messages"]["completed"] >= 2 else None
    now = wait_for_figures(broker, grown, "overview")
    assert now["messages"]["total"] - before["messages"]["total"] == 5
    assert now["messages"]["deadLetter"] - before["messages"]["deadLetter"] == 1
    assert now["queues"] == before["queues"] + 1 and now["partitions"] == before["partitions"] + 1
    assert now["messages"]["failed"] >= 0 and now["messages"]["pending"] >= 3 and now["messages"]["processing"] >= 0
    assert set(now["lag"]["time"]) == set(now["lag"]["offset"]) == {"avg", "median", "min", "max"}
    for lag in now["lag"].values():
        assert 0 <= lag["min"] <= lag["median"] <= lag["max"] and lag["min"] <= lag["avg"] <= lag["max"]
    assert now["throughput"]["ingestedPerSecond"] > 0 and now["throughput"]["processedPerSecond"] >= 0
    assert TS_MS.match(now["timestamp"]) and now["statsAge"] >= 0
    broker.request("DELETE", "/api/v1/resources/queues/" + queue).expect(200)
    after = resource(broker, "overview")
    assert after["messages"]["total"] >= now["messages"]["total"] and after["queues"] == before["queues"]


def test_deleting_a_queue_takes_its_figures_along(broker, queue, sql):
    broker.put(queue, range(3))
    broker.take(queue)
    e = until(broker, queue, total=3, processing=1)
    broker.request("DELETE", "/api/v1/resources/queues/" + queue).expect(200)
    assert entry(broker, queue) is None
    broker.post("/api/v1/stats/refresh").expect(200)
    left = sql("""select (select count(*) from queen.stats where queue_id = %s), (select count(*) from queen.lane_stats where queue_id = %s),
                         (select count(*) from queen.consumer_stats where queue_id = %s),
                         (select count(*) from queen.stats_history where stat_key = %s)""", *[e["id"]] * 4)
    assert left == [(0, 0, 0, 0)]


def test_deleted_by_sql_and_made_again_starts_from_zero(broker, queue, sql):
    broker.put(queue, range(3))
    until(broker, queue, total=3)
    sql("delete from queen.queues where name = %s", queue)
    broker.put(queue, range(2))
    until(broker, queue, total=2, pending=2)


def test_the_sums_agree_with_a_count_of_everything(broker, queue, sql):
    """Some history, then the maintained figures against a count of segments and states."""
    for i in range(6):
        broker.put(queue, range(i + 1), partition="p%d" % i)
    for g in ("", "x", "y"):
        for m in broker.take(queue, batch=9, partitions=4, **({"consumerGroup": g + queue} if g else {})):
            broker.ack(m, "completed" if int(m["data"]) % 2 else "dlq")
    r = broker.post("/api/v1/stats/refresh").expect(200).json
    assert set(r) == {"partition", "queue", "namespace", "task", "system", "cleanup"}
    kept = sql("select partitions, total, pending + processing, dead_letter from queen.queue_stats(%s)", queue)
    counted = sql("""select (select count(distinct s.lane) from queen.segments s join queen.lanes l on l.num = s.lane where l.queue_id = q.id),
                            (select sum(s.count) from queen.segments s join queen.lanes l on l.num = s.lane where l.queue_id = q.id),
                            queen.queue_pending(q.id),
                            (select count(*) from queen.dead_letter_queue d join queen.lanes l on l.num = d.lane where l.queue_id = q.id)
                       from queen.queues q where q.name = %s""", queue)
    assert kept == counted
    groups = sql("""select consumer_group, child_count, pending_messages, completed_messages from queen.stats
                     where stat_type = 'group' and queue_id = (select id from queen.queues where name = %s) order by 1""", queue)
    states = sql("""select consumer_group, count(*), sum(pending_estimate)::bigint, sum(total_messages_consumed)::bigint
                      from queen.partition_consumers c join queen.partitions p on p.id = c.partition_id
                     where p.queue_id = (select id from queen.queues where name = %s) group by 1 order by 1""", queue)
    assert groups == states


def test_refresh_ignores_the_body(broker):
    for body in (None, "{}", "[]", "rubbish"):
        broker.post("/api/v1/stats/refresh", body).expect(200)


def test_refresh_reports_a_pass_that_is_running(broker, pg):
    conn = pg.connect()
    try:
        conn.autocommit = False
        with conn.cursor() as cur:
            cur.execute("select pg_advisory_xact_lock(737010)")
            r = broker.post("/api/v1/stats/refresh").expect(200).json
            assert r["partition"]["skipped"] is True and r["partition"]["reason"]
        conn.rollback()
    finally:
        conn.close()


def test_the_background_pass_counts_by_itself(make_broker, queue, sql):
    b = make_broker(STATS_INTERVAL_MS=100, STATS_RECONCILE_INTERVAL_MS=1000)
    b.put(queue, range(4))
    wait_until(lambda: sql("select total from queen.queue_stats(%s)", queue) == [(4,)], 5, "the pass")


def test_rotation_keeps_uncounted_changes(broker, queue, sql):
    sql("select * from queen.refresh_stats(null, false, 2000)")
    broker.put(queue, range(4))
    broker.take(queue, batch=3, autoAck=True)
    assert sql("select queen.rotate(0, 0)") == [("switched",)]
    wait_until(lambda: sql("select queen.rotate(0, 0)") == [("emptied",)], 5, "rotation")
    until(broker, queue, total=4, pending=1)


def test_a_queue_with_more_partitions_than_one_step_takes(broker, broker2, sql, queue, group):
    broker.configure(queue)
    sql("""with made as (
               insert into queen.lanes (queue_id, name, lease_seconds, limited, careful)
               select q.id, 'p' || i, 300, false, false from queen.queues q, generate_series(1, 4500) i where q.name = %s
               returning num)
           insert into queen.segments (lane, first_seq, created_at, count, keys, body)
           select num, 1, now(), 1, uuid_send(gen_random_uuid()), '\\x01000000000131' from made""", queue)
    assert broker.take(queue, consumerGroup=group)[0]["data"] == 1
    seek = "/api/v1/consumer-groups/%s/queues/%s/seek" % (group, queue)
    assert broker.post(seek, {"toEnd": True}).expect(200).json["partitionsUpdated"] == 4501
    assert broker2.take(queue, consumerGroup=group) == []
    assert broker.post(seek, {"timestamp": "2000-01-01T00:00:00Z"}).expect(200).json["partitionsUpdated"] == 4501
    assert broker2.take(queue, consumerGroup=group)[0]["data"] == 1
    taken = []
    while len(taken) < 4500:  # every page is found
        some = broker2.take(queue, consumerGroup="all-" + group, batch=1000, partitions=1000, autoAck=True)
        assert some, "%d partitions are not delivered" % (4500 - len(taken))
        taken += [m["partition"] for m in some]
    assert len(set(taken)) == 4500 and broker2.take(queue, consumerGroup="all-" + group) == []
    assert broker.take(queue, consumerGroup="new-" + group, subscriptionMode="new") == []
    r = broker.request("DELETE", "/api/v1/consumer-groups/%s/queues/%s" % (group, queue)).expect(200).json
    assert (r["deletedPartitions"], r["queueName"]) == (4501, queue)
    r = broker.request("DELETE", "/api/v1/queues/%s/clear" % queue).expect(200).json
    assert (r["deleted"], r["partition"]) == (4500, None)
    broker.put(queue, ["old"], partition="p7")
    r = broker.request("DELETE", "/api/v1/resources/queues/" + queue).expect(200).json
    assert r == {"deleted": True, "queue": queue, "existed": True}
    broker2.put(queue, ["new"], partition="p7")
    assert [m["data"] for m in broker.drain(queue)] == ["new"]
