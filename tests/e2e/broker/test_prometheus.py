"""GET /metrics/prometheus: the families of http-api section 19.3."""
import time

import pytest

from harness import Background, Postgres, wait_until
from test_observability import scrape

# The table of the section, line by line: family -> its labels; "name=a/b" are all the values that a label has.
WORKER = "hostname worker_id pid"
PROCESS = {
    **dict.fromkeys(("queen_uptime_seconds", "queen_cpu_user_microseconds_total", "queen_cpu_system_microseconds_total",
                     "queen_process_resident_memory_bytes", "queen_process_virtual_memory_bytes"), ""),
    **dict.fromkeys(("queen_db_pool_size", "queen_db_pool_idle", "queen_db_pool_active"), ""),
    **dict.fromkeys(("queen_threadpool_size", "queen_threadpool_queue_size"), "pool=db/system"),
    "queen_response_registry_size": "worker_id=0/1",
    **dict.fromkeys(("queen_file_buffer_pending", "queen_file_buffer_failed", "queen_file_buffer_db_healthy",
                     "queen_maintenance_mode_enabled"), ""),
    **dict.fromkeys(("queen_sidecar_op_count", "queen_sidecar_op_latency_microseconds", "queen_sidecar_op_items"), "op"),
    **dict.fromkeys(("queen_queue_backoff_groups", "queen_queue_backoff_queues",
                     "queen_queue_backoff_avg_interval_milliseconds"), ""),
    "queen_shared_state_enabled": "",
    "queen_transport_messages_total": "dir=sent/received/dropped",
}
DATABASE = {
    "queen_servers": "state=alive/dead",
    **{"queen_cluster_%s_total" % n: "scope=cluster" for n in (
        "push_requests", "pop_requests", "ack_requests", "transactions", "push_messages", "pop_messages", "ack_messages",
        "db_errors", "dlq")},
    "queen_cluster_ack_total": "scope=cluster result=success/failed",
    **{"queen_queue_" + n: "queue" for n in (
        "pop_messages_per_minute", "push_requests_per_minute", "push_messages_per_minute", "pop_empty_per_minute",
        "transactions_per_minute", "parked_consumers", "metrics_age_seconds")},
    **{"queen_queue_" + n: "queue group" for n in ("pending", "oldest_pending_seconds", "in_flight", "retrying", "dead_letters")},
    "queen_queue_delayed": "queue",
    **{"queen_" + n: "scope=cluster" for n in ("statistics_age_seconds", "waiting_age_seconds", "feed_bytes", "feed_rotated_seconds")},
    "queen_queue_pop_lag_milliseconds": "queue stat=avg/max",
    "queen_queue_ack_per_minute": "queue result=success/failed",
    **{"queen_worker_" + n: WORKER + " stat=avg/max" for n in (
        "event_loop_lag_milliseconds", "job_queue_size", "lag_milliseconds")},
    "queen_worker_free_slots": WORKER + " stat=avg/min",
    **{"queen_worker_" + n: WORKER for n in (
        "db_connections", "backoff_size", "jobs_done_per_minute", "db_errors_per_minute", "dlq_per_minute",
        "metrics_age_seconds")},
    "queen_worker_requests_per_minute": WORKER + " op=push/pop/ack/transaction",
    "queen_worker_messages_per_minute": WORKER + " op=push/pop/ack",
    "queen_worker_ack_per_minute": WORKER + " result=success/failed",
    "queen_dlq_depth": "scope=cluster",
    "queen_dlq_depth_by_queue": "queue",
}


def value(broker, family, **labels):
    """The one sample with these labels, or None."""
    found = [v for l, v in scrape(broker)[0].get(family, []) if all(l.get(k) == x for k, x in labels.items())]
    assert len(found) < 2
    return found[0] if found else None


@pytest.fixture(scope="module")
def used(metered):
    """A queue with all kinds of events, one dead letter and one delayed message among them."""
    queue = 'prom"q\\1'
    metered.put(queue, [1, 2, 3])
    metered.push([{"queue": queue, "payload": 4, "delaySeconds": 3600}]).expect(201)
    a, b = metered.take(queue, batch=2)
    metered.ack(a)
    metered.ack(b, status="dlq")
    label = queue.replace("\\", "\\\\").replace('"', '\\"')
    wait_until(lambda: value(metered, "queen_dlq_depth_by_queue", queue=label) == 1 and
               value(metered, "queen_queue_pop_messages_per_minute", queue=label) and value(metered, "queen_queue_delayed", queue=label) == 1,
               20, "the queue in a scrape", 0.1)
    return queue


@pytest.fixture(scope="module")
def exposed(metered, used):
    return scrape(metered)


@pytest.mark.parametrize("family,labels", {**PROCESS, **DATABASE}.items())
def test_a_family_of_the_contract_is_there_with_its_labels(exposed, family, labels):
    samples, types = exposed
    wanted = dict((l.split("=") + [""])[:2] for l in labels.split())
    assert samples.get(family), "missing"
    assert types[family] == ("counter" if family.endswith("_total") else "gauge")
    assert all(set(l) == set(wanted) and v >= 0 for l, v in samples[family])
    for label, values in wanted.items():
        if values:
            assert {l[label] for l, _ in samples[family]} == set(values.split("/")), label


def test_without_shared_state_cache_metrics_are_missing(exposed):
    samples, _ = exposed
    assert samples["queen_shared_state_enabled"] == [({}, 0)] and not [f for f in samples if f.startswith("queen_qc_cache")]


def test_the_backlog_of_each_group_is_shown(metered, queue, group):
    def backlog(name):
        return value(metered, "queen_queue_pending", queue=queue, group=name)

    metered.put(queue, list(range(5)), partition="p")
    wait_until(lambda: backlog("") == 5, 30, "the backlog of a queue without groups", 0.1)
    for m in metered.take(queue, "p", consumerGroup=group, batch=2):
        metered.ack(m, consumerGroup=group)
    wait_until(lambda: backlog(group) == 3 and backlog("") is None, 30, "the backlog of the group", 0.1)
    assert value(metered, "queen_queue_oldest_pending_seconds", queue=queue, group=group) > 0
    metered.take(queue, "p", consumerGroup=group, batch=1)
    wait_until(lambda: value(metered, "queen_queue_in_flight", queue=queue, group=group) == 1, 30, "a message in flight", 0.1)
    assert backlog(group) == 3
    metered.put(queue, ["more"], partition="p")
    metered.drain(queue, consumerGroup=group + '"2')
    wait_until(lambda: backlog(group + '\\"2') == 0, 30, "a group that has everything", 0.1)
    assert value(metered, "queen_queue_oldest_pending_seconds", queue=queue, group=group + '\\"2') == 0
    wait_until(lambda: backlog(group) == 4, 30, "the slow group has one more", 0.1)


@pytest.mark.parametrize("ordering", ["partition", "none"])
def test_messages_that_wait_elsewhere_are_shown_by_group(metered, queue, group, ordering):
    def shown():
        return tuple(value(metered, "queen_queue_" + n, queue=queue, group=group) for n in ("retrying", "dead_letters", "in_flight"))

    metered.configure(queue, ordering=ordering, retryPolicy={"mode": "scheduled", "strategy": "list", "delays": [1], "maxAttempts": 3})
    metered.put(queue, list(range(5)), partition="p")
    first, second, *_ = metered.take(queue, "p", consumerGroup=group, batch=4)
    metered.ack(first, "failed", consumerGroup=group)
    metered.ack(second, "dlq", consumerGroup=group)
    wait_until(lambda: shown() == (1, 1, 2), 30, "a retry that is scheduled, a dead letter, two in flight", 0.1)
    wait_until(lambda: metered.get("/api/v1/scheduled/count?queue=" + queue).expect(200).json["count"] == 0, 30, "the retry is due", 0.1)
    metered.post("/api/v1/push", {"items": [{"queue": queue, "partition": "late", "payload": 1, "delaySeconds": 3600}]}).expect(201)
    wait_until(lambda: value(metered, "queen_queue_delayed", queue=queue) == 1, 30, "a message for later", 0.1)
    assert shown()[:2] == (1, 1), "it waits in its retry lane, or was given back"


def test_only_queues_that_the_operator_names_have_series(make_broker, pg, queue):
    b = make_broker(database=pg.create_database("named" + queue.replace("-", "")), STATS_INTERVAL_MS=200, METRICS_AGGREGATE_INTERVAL_S=1,
                    QUEEN_METRICS_QUEUES="shop.*, b_l%s" % "l")
    for name in ("shop.orders", "b_ll", "bill", "mail"):
        b.put(name, [1])

    def queues():
        return {l["queue"] for samples in scrape(b)[0].values() for l, _ in samples if "queue" in l}
    wait_until(lambda: queues() == {"shop.orders", "b_ll"}, 30, "two of four", 0.1)


def test_this_server_is_alive(metered, exposed):
    samples, _ = exposed
    pid = str(metered.process.pid)  # other tests have brokers on this database
    assert {l["worker_id"] for l, _ in samples["queen_worker_db_connections"] if l["pid"] == pid} == {"0", "1"}
    ages = {}  # of the last report of each process
    for labels, age in samples["queen_worker_metrics_age_seconds"]:
        ages.setdefault((labels["hostname"], labels["pid"]), []).append(age)
    fresh = [p for p, age in ages.items() if min(age) < 7]  # two periods of one second and five seconds
    assert pid in [p for _, p in fresh]
    servers = {l["state"]: v for l, v in samples["queen_servers"]}
    assert set(servers) == {"alive", "dead"} and servers["alive"] >= len(fresh)
    assert servers["alive"] + servers["dead"] == len(ages)


def test_the_file_buffer_and_maintenance_are_shown(metered, queue):
    def gauges():
        return tuple(value(metered, "queen_" + n) for n in (
            "maintenance_mode_enabled", "pop_maintenance_mode_enabled", "file_buffer_pending", "file_buffer_failed",
            "file_buffer_db_healthy", "file_buffer_healthy"))

    def moved(event):
        return value(metered, "queen_file_buffer_messages_total", event=event)
    before = moved("buffered"), moved("replayed")
    assert gauges() == (0, 0, 0, 0, 1, 1)
    metered.post("/api/v1/system/maintenance", {"enabled": True}).expect(200)
    try:
        metered.push([{"queue": queue, "payload": i} for i in range(3)]).expect(201)
        assert gauges() == (1, 0, 3, 0, 1, 1)
        assert 0 < value(metered, "queen_file_buffer_bytes") < value(metered, "queen_file_buffer_limit_bytes")
        assert (moved("buffered"), moved("replayed")) == (before[0] + 3, before[1])
    finally:
        metered.post("/api/v1/system/maintenance", {"enabled": False}).expect(200)
    wait_until(lambda: gauges() == (0, 0, 0, 0, 1, 1), 10, "the buffer to be stored", 0.05)
    assert moved("replayed") == before[1] + 3
    metered.post("/api/v1/system/maintenance/pop", {"enabled": True}).expect(200)
    try:
        assert gauges()[:2] == (0, 1)
    finally:
        metered.post("/api/v1/system/maintenance/pop", {"enabled": False}).expect(200)


def test_cluster_sums_rise_with_activity(metered, queue):
    before = value(metered, "queen_cluster_push_messages_total") or 0
    metered.put(queue, list(range(7)))
    wait_until(lambda: value(metered, "queen_cluster_push_messages_total") >= before + 7, 12, "seven more", 0.1)


def test_parked_consumers_of_a_queue(metered, queue):
    polls = [Background(lambda: metered.pop(queue, wait=True, autoAck=True, timeout=20000)) for _ in range(3)]
    wait_until(lambda: value(metered, "queen_queue_parked_consumers", queue=queue) == 3, 9, "three parked", 0.1)
    metered.push([{"queue": queue, "partition": str(i), "payload": i} for i in range(3)]).expect(201)
    for p in polls:
        p.result()


def test_the_database_is_queried_rarely(metered):
    def asked():
        return value(metered, "queen_op_requests_total", op="custom")
    begun, before = time.monotonic(), asked()
    for _ in range(100):
        metered.get("/metrics/prometheus").expect(200)
    # Two workers, twice per period of a second each; pops do not come here.
    assert asked() - before <= 2 * (2 * (time.monotonic() - begun) + 1)


def test_rates_fall_to_zero(metered, used):
    """The fixture has seen one above it."""
    label = used.replace("\\", "\\\\").replace('"', '\\"')
    wait_until(lambda: value(metered, "queen_queue_pop_messages_per_minute", queue=label) == 0, 15, "quiet", 0.1)
    assert value(metered, "queen_queue_push_messages_per_minute", queue=label) == 0
    assert value(metered, "queen_queue_metrics_age_seconds", queue=label) > 0


def test_database_metrics_are_missing_while_it_is_unavailable(make_broker):
    own = Postgres().start()
    b = None
    try:
        b = make_broker(start=False)
        b.env.update({k: str(v) for k, v in own.env().items()})
        b.start()
        wait_until(lambda: "queen_dlq_depth" in scrape(b)[0], 10, "the families", 0.2)
        own.halt()
        wait_until(lambda: value(b, "queen_database_up") == 0, 10, "the outage", 0.1)
        assert b.get("/metrics/prometheus", timeout=2).status == 200
        samples, _ = scrape(b)
        assert set(PROCESS) <= set(samples) and not set(DATABASE) & set(samples)
        assert value(b, "queen_file_buffer_db_healthy") == 0
    finally:
        if b:
            b.dispose()
        own.stop()


def test_a_scrape_that_outlives_other_workers_reads_nothing_freed(make_broker, pg):
    """Its database call is still out when the other workers hang up; AddressSanitizer sees a read of what they freed."""
    database = pg.create_database("scrape_at_stop")
    b = make_broker(database=database, NUM_WORKERS=4, QUEEN_STOP_TIMEOUT_MS=200)
    holder = pg.connect(database=database)
    with holder.cursor() as cur:
        cur.execute("""create or replace function queen.prometheus_text(p_queues text) returns text language plpgsql as $$
                       begin perform pg_advisory_xact_lock_shared(7); return ''; end $$""")
        cur.execute("select pg_advisory_lock(7)")
    scrape_under_way = Background(lambda: b.get("/metrics/prometheus", timeout=60))
    with holder.cursor() as cur:
        def waits():
            cur.execute("select count(*) from pg_locks where locktype = 'advisory' and not granted")
            return cur.fetchone()[0] == 1
        wait_until(waits, 20, "the scrape waits in the database")
        stop = Background(b.terminate)
        wait_until(lambda: "phase=hanging" in b.log_text() or "stop.timeout" in b.log_text(), 30, "the grace to end")
        time.sleep(0.2)  # the workers without a request have hung up
        cur.execute("select pg_advisory_unlock(7)")
    assert stop.result(60) == 0
    try:
        scrape_under_way.result(60)
    except (OSError, AssertionError):
        pass  # it was hung up on
    holder.close()
