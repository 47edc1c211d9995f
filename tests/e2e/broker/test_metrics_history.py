"""Brokers write their counts into tables once per period: http-api sections 14 and 15, environment section 5."""
import uuid

import pytest

from harness import Background, wait_until

COUNTS = ("push_requests", "push_messages", "pop_requests", "pop_messages", "pop_empty", "auto_acked", "ack_requests",
          "ack_success", "ack_failed", "transactions")


def counted(metered, queue):
    row = metered.sql("select %s from queen.queue_lag_metrics where queue_name = %%s"
                      % ", ".join("coalesce(sum(%s), 0)::int" % c for c in COUNTS), queue)[0]
    return dict(zip(COUNTS, row))


def wait_counted(metered, queue, **expected):
    def probe():
        got = counted(metered, queue)
        return all(got[k] == v for k, v in expected.items()) and got
    try:
        return wait_until(probe, 8, "counts", 0.1)
    except AssertionError:
        assert counted(metered, queue) == {**counted(metered, queue), **expected}
        raise


def test_every_operation_is_counted_for_its_queue(metered, queue):
    metered.put(queue, [1, 2, 3], partition="p")
    metered.put(queue, [4], partition="p")
    a, b = metered.take(queue, batch=2)
    metered.ack(a)
    metered.ack(b, status="failed")
    metered.take(queue, batch=10, autoAck=True)
    assert metered.pop(queue).status == 204
    wait_counted(metered, queue, push_requests=2, push_messages=4, pop_requests=3, pop_messages=5, pop_empty=1,
                 auto_acked=3, ack_requests=2, ack_success=2, ack_failed=0, transactions=0)


def test_a_duplicate_is_a_request_but_no_message(metered, queue):
    metered.put(queue, [1], ids=["same"])
    metered.push([{"queue": queue, "payload": 2, "transactionId": "same"}]).expect(201)
    wait_counted(metered, queue, push_requests=2, push_messages=1)


def test_refused_acks_count_as_failed(metered, queue):
    metered.put(queue, [1])
    m, = metered.take(queue)
    assert not metered.ack(m, lease=str(uuid.uuid4()))["success"]
    wait_counted(metered, queue, ack_requests=1, ack_success=0, ack_failed=1)


def test_a_transaction_counts_once_and_its_parts_by_kind(metered, queue):
    metered.put(queue, [1])
    m, = metered.take(queue)
    assert metered.transaction([{"type": "push", "items": [{"queue": queue, "payload": 2}, {"queue": queue, "payload": 3}]},
                                {"type": "ack", "transactionId": m["transactionId"], "partitionId": m["partitionId"]}])["success"]
    wait_counted(metered, queue, transactions=1, push_messages=3, push_requests=1, ack_success=1, ack_requests=0)


def test_lag_is_the_time_from_stored_to_delivered(metered, queue):
    metered.put(queue, [1, 2])
    metered.sql("update queen.segments s set created_at = s.created_at - interval '90 s' from queen.lanes l, queen.queues q "
                "where s.lane = l.num and l.queue_id = q.id and q.name = %s", queue)
    assert len(metered.take(queue, batch=2)) == 2
    wait_counted(metered, queue, pop_messages=2)
    total, most = metered.sql("select sum(lag_us), max(lag_max_us) from queen.queue_lag_metrics where queue_name = %s", queue)[0]
    assert 89e6 < most < 100e6 and abs(total - 2 * most) < 1000


def rows(metered, queue):
    return metered.sql("select count(*) from queen.queue_lag_metrics where queue_name = %s", queue)[0][0]


def told(metered, queue):
    return [n for n, in metered.sql("select parked from queen.queue_parked_replica where queue_name = %s order by at", queue)]


@pytest.fixture(scope="module")
def quiet(metered):
    """Three queues two periods after the last that happened to them, and what was written before: `idle` has a message,
    of `polled` a long poll ended empty, at `parked` two are waiting."""
    names = {k: "%s-%s" % (k, uuid.uuid4().hex[:12]) for k in ("idle", "polled", "parked")}
    metered.put(names["idle"], [1])
    for k in ("polled", "parked"):
        metered.put(names[k], [1])
        metered.take(names[k], autoAck=True)
        wait_counted(metered, names[k], pop_messages=1)
    wait_counted(metered, names["idle"], push_messages=1)
    polls = [Background(lambda: metered.pop(names["parked"], wait=True, autoAck=True, timeout=30000)) for _ in range(2)]
    wait_until(lambda: told(metered, names["parked"])[-1:] == [2], 4, "two parked", 0.1)
    assert metered.pop(names["polled"], wait=True, timeout=200).status == 204
    before = {"idle": rows(metered, names["idle"]), "parked": len(told(metered, names["parked"]))}
    n = metered.sql("select count(*) from queen.worker_metrics")[0][0]
    wait_until(lambda: metered.sql("select count(*) from queen.worker_metrics")[0][0] >= n + 4, 8, "two periods", 0.1)
    yield names, before, polls


def test_an_idle_queue_gets_no_row(metered, quiet):
    names, before, _ = quiet
    assert before["idle"] == 1 == rows(metered, names["idle"])


def test_polls_that_end_empty_wait_for_something_worth_a_row(metered, quiet):
    queue = quiet[0]["polled"]
    assert counted(metered, queue)["pop_empty"] == 0
    metered.put(queue, [2])
    wait_counted(metered, queue, push_messages=2, pop_empty=1, pop_requests=2)


def test_parked_consumers_are_recorded_when_their_number_changes(metered, quiet):
    names, before, polls = quiet
    assert len(told(metered, names["parked"])) == before["parked"], "written again without a change"
    metered.push([{"queue": names["parked"], "partition": str(i), "payload": i} for i in range(2)]).expect(201)
    for p in polls:
        p.result()
    wait_until(lambda: told(metered, names["parked"])[-1:] == [0], 4, "none parked", 0.1)


def test_partitions_made_and_removed_are_noted(metered, queue):
    metered.push([{"queue": queue, "partition": "p%d" % i, "payload": i} for i in range(3)]).expect(201)
    assert metered.sql("select sum(created)::int from queen.partition_changes where queue_name = %s", queue) == [(3,)]
    before = metered.sql("select coalesce(sum(deleted), 0)::int from queen.partition_changes where queue_name = '__orphaned__'")[0][0]
    metered.request("DELETE", "/api/v1/resources/queues/" + queue).expect(200)
    after = metered.sql("select sum(deleted)::int from queen.partition_changes where queue_name = '__orphaned__'")[0][0]
    assert after - before == 3


def test_workers_and_the_process_write_a_row_per_period(metered):
    row = wait_until(lambda: metered.sql(
        "select count(distinct worker_id), count(distinct pid), min(period_ms), bool_and(free_slots_min <= 8) "
        "from queen.worker_metrics where at > now() - interval '10 s'"), 5, "rows")[0]
    assert row[0] == 2 and row[1] == 1 and row[3]
    host, port, name, samples, metrics = wait_until(lambda: metered.sql(
        "select hostname, port, worker_id, sample_count, metrics from queen.system_metrics order by timestamp desc limit 1"),
        5, "a row of the process")[0]
    assert port == metered.port and name == "metered-1" and samples >= 5
    assert metrics["memory"]["rss_bytes"]["min"] > 1e6
    for leaf in (metrics["cpu"]["user_us"], metrics["database"]["pool_size"], metrics["shared_state"]["sidecar_ops"]["push"]["count"]):
        assert set(leaf) == {"avg", "min", "max", "last"} and leaf["min"] <= leaf["avg"] <= leaf["max"]


def test_a_batch_that_is_sent_twice_counts_once(metered):
    one = str(uuid.uuid4())
    name = "twice-" + one
    for _ in range(2):
        metered.sql("select queen.record_metrics(%s, 'h', 9, 1, 1000, array_fill(1::bigint, array[21]), 1, 'p', 0, null, array[%s], "
                    "array[5::bigint], array[5::bigint], array[0::bigint], array[0::bigint], array[0::bigint], array[0::bigint], "
                    "array[0::bigint], array[0::bigint], array[0::bigint], array[0::bigint], array[0::bigint], array[0::bigint], "
                    "array[%s], array[3])", one, name, name)
    assert counted(metered, name)["push_messages"] == 5
    assert metered.sql("select push_requests from queen.worker_metrics_summary where hostname = 'h'") == [(1,)]
    assert metered.sql("select count(*) from queen.queue_parked_replica where queue_name = %s", name) == [(1,)]


def test_old_rows_are_removed_in_batches(metered):
    metered.sql("select queen.trim_metrics(90, 1000000)")
    metered.sql("insert into queen.partition_changes select now() - interval '91 days', 'old', 1, 0 from generate_series(1, 5)")
    metered.sql("insert into queen.partition_changes values (now() - interval '89 days', 'old', 1, 0)")
    left = lambda: metered.sql("select count(*) from queen.partition_changes where queue_name = 'old'")[0][0]
    assert metered.sql("select queen.trim_metrics(90, 3)") == [(3,)] and left() == 3
    assert metered.sql("select queen.trim_metrics(90, 3)") == [(2,)] and left() == 1
    assert metered.sql("select queen.trim_metrics(90, 3)") == [(0,)] and left() == 1
    metered.sql("delete from queen.partition_changes where queue_name = 'old'")


def test_counts_are_written_when_the_broker_stops(make_broker, sql, queue):
    b = make_broker(METRICS_AGGREGATE_INTERVAL_S="3600")
    b.put(queue, [1, 2])
    assert b.terminate() == 0
    assert sql("select sum(push_messages)::int from queen.queue_lag_metrics where queue_name = %s", queue) == [(2,)]


@pytest.mark.parametrize("name,value", [("METRICS_AGGREGATE_INTERVAL_S", "0"), ("METRICS_SAMPLE_INTERVAL_MS", "x"),
                                        ("METRICS_RETENTION_DAYS", "-1")])
def test_a_bad_setting_stops_the_start(make_broker, name, value):
    b = make_broker(start=False, **{name: value})
    b.spawn()
    wait_until(lambda: not b.alive, 5, "the end")
    assert name in b.log_text()
