"""GET /metrics/prometheus: the families of http-api section 19.3."""
import pytest

from harness import Background, Postgres, wait_until
from test_observability import scrape

PROCESS = {  # family -> labels
    "queen_uptime_seconds": "", "queen_cpu_user_microseconds_total": "", "queen_cpu_system_microseconds_total": "",
    "queen_process_resident_memory_bytes": "", "queen_process_virtual_memory_bytes": "", "queen_db_pool_size": "",
    "queen_db_pool_idle": "", "queen_db_pool_active": "", "queen_threadpool_size": "pool", "queen_threadpool_queue_size": "pool",
    "queen_response_registry_size": "worker_id", "queen_sidecar_op_count": "op", "queen_sidecar_op_latency_microseconds": "op",
    "queen_sidecar_op_items": "op", "queen_queue_backoff_groups": "", "queen_queue_backoff_queues": "",
    "queen_queue_backoff_avg_interval_milliseconds": "", "queen_shared_state_enabled": ""}
WORKER = "hostname worker_id pid"
DATABASE = {
    **{"queen_cluster_%s_total" % n: "scope" for n in (
        "push_requests", "pop_requests", "ack_requests", "transactions", "push_messages", "pop_messages", "ack_messages",
        "db_errors", "dlq")},
    "queen_cluster_ack_total": "scope result",
    **{"queen_queue_" + n: "queue" for n in (
        "pop_messages_per_minute", "push_requests_per_minute", "push_messages_per_minute", "pop_empty_per_minute",
        "transactions_per_minute", "parked_consumers", "metrics_age_seconds")},
    "queen_queue_pop_lag_milliseconds": "queue stat", "queen_queue_ack_per_minute": "queue result",
    **{"queen_worker_" + n: WORKER + " stat" for n in (
        "event_loop_lag_milliseconds", "free_slots", "job_queue_size", "lag_milliseconds")},
    **{"queen_worker_" + n: WORKER for n in (
        "db_connections", "backoff_size", "jobs_done_per_minute", "db_errors_per_minute", "dlq_per_minute",
        "metrics_age_seconds")},
    "queen_worker_requests_per_minute": WORKER + " op", "queen_worker_messages_per_minute": WORKER + " op",
    "queen_worker_ack_per_minute": WORKER + " result", "queen_servers": "state", "queen_dlq_depth": "scope",
    "queen_dlq_depth_by_queue": "queue"}


def value(broker, family, **labels):
    """The one sample with these labels, or None."""
    found = [v for l, v in scrape(broker)[0].get(family, []) if all(l.get(k) == x for k, x in labels.items())]
    assert len(found) < 2
    return found[0] if found else None


@pytest.fixture(scope="module")
def used(metered):
    """A queue with all kinds of events, one dead letter among them."""
    queue = 'prom"q\\1'
    metered.put(queue, [1, 2, 3])
    a, b = metered.take(queue, batch=2)
    metered.ack(a)
    metered.ack(b, status="dlq")
    wait_until(lambda: value(metered, "queen_dlq_depth_by_queue", queue=queue.replace("\\", "\\\\").replace('"', '\\"')) == 1,
               20, "the dead letter in a scrape", 0.5)
    return queue


def test_every_family_of_the_contract_is_there_with_its_labels(metered, used):
    samples, types = scrape(metered)
    for family, labels in {**PROCESS, **DATABASE}.items():
        assert family in samples, family
        assert types[family] == ("counter" if family.endswith("_total") else "gauge")
        for l, v in samples[family]:
            assert set(l) == set(labels.split()), family
            assert v >= 0


def test_label_values_are_those_of_the_contract(metered, used):
    samples, _ = scrape(metered)

    def values(family, label):
        return {l[label] for l, _ in samples[family]}
    assert values("queen_threadpool_size", "pool") == {"db", "system"}
    assert values("queen_cluster_ack_total", "result") == {"success", "failed"}
    assert values("queen_queue_pop_lag_milliseconds", "stat") == {"avg", "max"}
    assert values("queen_worker_free_slots", "stat") == {"avg", "min"}
    assert values("queen_worker_requests_per_minute", "op") == {"push", "pop", "ack", "transaction"}
    assert values("queen_worker_messages_per_minute", "op") == {"push", "pop", "ack"}
    assert values("queen_servers", "state") == {"alive", "dead"}
    assert values("queen_cluster_dlq_total", "scope") == {"cluster"}
    assert {"0", "1"} <= values("queen_worker_db_connections", "worker_id")


def test_cluster_sums_rise_with_what_is_done(metered, queue):
    before = value(metered, "queen_cluster_push_messages_total") or 0
    metered.put(queue, list(range(7)))
    wait_until(lambda: value(metered, "queen_cluster_push_messages_total") >= before + 7, 12, "seven more", 0.5)


def test_rates_are_per_minute_and_fall_to_zero(metered, queue):
    metered.put(queue, [1] * 5)
    wait_until(lambda: value(metered, "queen_queue_push_messages_per_minute", queue=queue) is not None, 12, "the queue", 0.3)
    wait_until(lambda: value(metered, "queen_queue_push_messages_per_minute", queue=queue) == 0, 15, "quiet", 0.5)
    assert value(metered, "queen_queue_metrics_age_seconds", queue=queue) > 0


def test_parked_consumers_of_a_queue(metered, queue):
    polls = [Background(lambda: metered.pop(queue, wait=True, timeout=9000)) for _ in range(3)]
    wait_until(lambda: value(metered, "queen_queue_parked_consumers", queue=queue) == 3, 9, "three parked", 0.3)
    for p in polls:
        p.result()


def test_the_database_is_asked_seldom(metered):
    metered.get("/metrics/prometheus").expect(200)
    before = value(metered, "queen_op_requests_total", op="custom")
    for _ in range(50):
        metered.get("/metrics/prometheus").expect(200)
    assert value(metered, "queen_op_requests_total", op="custom") - before <= 4


def test_families_of_the_database_are_missing_when_it_is_away(make_broker):
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
        assert "queen_uptime_seconds" in samples and not set(DATABASE) & set(samples)
    finally:
        if b:
            b.dispose()
        own.stop()
