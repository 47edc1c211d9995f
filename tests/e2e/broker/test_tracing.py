"""Traces for OpenTelemetry, as a collector receives them (docs/operations/tracing.md)."""
import re
import socket
import subprocess
import threading

import pytest

import harness
from collector import Collector, attributes

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "00-%s-b7ad6b7169203331-01" % TRACE
UNSAMPLED = PARENT[:-2] + "00"


@pytest.fixture
def collector():
    with Collector() as c:
        yield c


@pytest.fixture
def traced(pg, collector):
    """Starts brokers that send their traces to the collector."""
    started = []

    def start(**env):
        b = harness.begin({**pg.env(), "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "QUEEN_TRACE_RATIO": "0", **env})
        started.append(b)
        return b
    yield start
    for b in started:
        harness.end(b, clean_exit=True)


def metric(broker, name):
    found = re.search("^%s (.*)$" % re.escape(name), broker.get("/metrics/prometheus").text, re.M)
    return float(found.group(1)) if found else None


def test_a_pop_links_to_the_span_that_pushed(traced, collector, queue):
    broker = traced()
    broker.push([{"queue": queue, "partition": "p", "payload": 1}], headers={"traceparent": PARENT}).expect(201)
    message, = broker.pop(queue, consumerGroup="g", headers=None).expect(200).json["messages"]
    consumer = "00-11111111111111111111111111111111-2222222222222222-01"
    broker.post("/api/v1/ack", {"transactionId": message["transactionId"], "partitionId": message["partitionId"],
                                "leaseId": message["leaseId"], "status": "completed", "consumerGroup": "g"},
                headers={"traceparent": consumer}).expect(200)

    push, = collector.wait_for("push " + queue)
    assert (push["traceId"], push["parentSpanId"], push["kind"]) == (TRACE, PARENT[36:52], 2)
    assert attributes(push) == {
        "messaging.system": "queen", "messaging.operation.name": "push", "messaging.operation.type": "send",
        "messaging.destination.name": queue, "messaging.destination.partition.id": "p", "messaging.batch.message_count": "1",
        "http.request.method": "POST", "http.route": "/api/v1/push", "http.response.status_code": "201"}
    assert 0 < int(push["startTimeUnixNano"]) <= int(push["endTimeUnixNano"])

    # The pop came without a traceparent. It is recorded because the message is of a sampled trace.
    pop, = collector.wait_for("pop " + queue)
    assert pop["links"] == [{"traceId": TRACE, "spanId": PARENT[36:52]}]
    assert pop["traceId"] != TRACE and "parentSpanId" not in pop
    assert attributes(pop)["messaging.consumer.group.name"] == "g"
    assert int(pop["startTimeUnixNano"]) >= int(push["startTimeUnixNano"])

    ack, = collector.wait_for("ack")
    assert (ack["traceId"], ack["parentSpanId"]) == (consumer[3:35], consumer[36:52])

    path, headers, body = collector.requests[0]
    assert path == "/v1/traces" and headers["Content-Type"] == "application/json"
    resource = {a["key"]: a["value"]["stringValue"] for a in body["resourceSpans"][0]["resource"]["attributes"]}
    assert resource["service.name"] == "queen" and resource["service.instance.id"] == "queen-1"


def test_messages_without_context_get_that_of_their_push(traced, collector, queue):
    broker = traced(QUEEN_TRACE_RATIO="1", OTEL_SERVICE_NAME="shop")
    broker.push([{"queue": queue, "payload": 1}, {"queue": queue, "payload": 2, "traceparent": PARENT}]).expect(201)
    first, second = broker.take(queue, batch=10, autoAck="true")
    push, = collector.wait_for("push " + queue)
    assert first["traceparent"] == "00-%s-%s-01" % (push["traceId"], push["spanId"])
    assert second["traceparent"] == PARENT
    pop, = collector.wait_for("pop " + queue)
    assert pop["links"] == [{"traceId": push["traceId"], "spanId": push["spanId"]},
                            {"traceId": TRACE, "spanId": PARENT[36:52]}]


def test_transactions_and_events_are_recorded(traced, collector, queue):
    broker = traced(QUEEN_TRACE_RATIO="1")
    broker.transaction([{"type": "push", "items": [{"queue": queue, "payload": 1}]}])
    broker.post("/api/v1/push/queue/" + queue, {"specversion": "1.0", "id": "e1", "source": "/s", "type": "t", "data": {},
                                                "traceparent": PARENT}, headers={"Content-Type": "application/cloudevents+json"}).expect(201)
    transaction, = collector.wait_for("transaction " + queue)
    collector.wait_for("push " + queue)
    message = broker.take(queue, batch=1, autoAck="true")[0]
    assert message["traceparent"][3:35] == transaction["traceId"]
    broker.get("/api/v1/pop/queue/%s?batch=9&autoAck=true" % queue, headers={"Accept": "application/cloudevents-batch+json"}).expect(200)
    assert collector.wait_for("pop " + queue, 2)[1]["links"] == [{"traceId": TRACE, "spanId": PARENT[36:52]}]


def test_requests_that_are_not_sampled_leave_no_trace(traced, collector, queue):
    broker = traced()
    broker.push([{"queue": queue, "payload": 1}]).expect(201)
    broker.push([{"queue": queue, "payload": 2}], headers={"traceparent": UNSAMPLED}).expect(201)
    first, second = broker.take(queue, batch=10, autoAck="true")
    assert "traceparent" not in first and second["traceparent"] == UNSAMPLED
    # A consumer's decision against a trace holds for sampled messages, too.
    broker.push([{"queue": queue, "payload": 3}], headers={"traceparent": PARENT}).expect(201)
    broker.get("/api/v1/pop/queue/%s?autoAck=true" % queue, headers={"traceparent": UNSAMPLED}).expect(200)
    broker.push([{"queue": queue + "-end", "payload": 4}], headers={"traceparent": PARENT}).expect(201)
    collector.wait_for("push %s-end" % queue)
    assert [s["name"] for s in collector.spans()] == ["push " + queue, "push %s-end" % queue]


def test_links_are_limited(traced, collector, queue):
    broker = traced()
    items = [{"queue": queue, "payload": i, "traceparent": "00-%032x-%016x-01" % (i + 1, i + 1)} for i in range(40)]
    broker.push(items).expect(201)
    assert len(broker.take(queue, batch=100)) == 40
    pop, = collector.wait_for("pop " + queue)
    assert len(pop["links"]) == 32 and pop["droppedLinksCount"] == 8


def test_refused_requests_are_recorded_with_their_status(traced, collector, queue):
    broker = traced()
    broker.post("/api/v1/push", "{", headers={"traceparent": PARENT}).expect(400)
    push, = collector.wait_for("push")
    assert attributes(push)["http.response.status_code"] == "400" and "status" not in push


def test_names_are_escaped(traced, collector, queue):
    broker = traced()
    name = queue + '-"\\ä' + "x" * 200
    broker.push([{"queue": name, "payload": 1}], headers={"traceparent": PARENT}).expect(201)
    push = harness.wait_until(lambda: collector.spans(), 20, "a span")[0]
    assert push["name"].startswith("push " + queue + '-"\\ä')


def test_headers_for_the_collector(traced, collector, queue):
    broker = traced(OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20abc, x-tenant = 7 ")
    broker.push([{"queue": queue, "payload": 1}], headers={"traceparent": PARENT}).expect(201)
    collector.wait_for("push " + queue)
    headers = {k.lower(): v for k, v in collector.requests[0][1].items()}
    assert headers["authorization"] == "Bearer abc" and headers["x-tenant"] == "7"


def test_a_collector_that_comes_late_gets_what_waited(pg, queue):
    port = harness.free_port()
    broker = harness.begin({**pg.env(), "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:%d/" % port})
    broker.push([{"queue": queue, "payload": 1}], headers={"traceparent": PARENT}).expect(201)
    # Three attempts fail, and the spans count as dropped.
    harness.wait_until(lambda: metric(broker, 'queen_trace_spans_total{result="dropped"}') == 1, 30, "dropped")
    assert broker.log_text().count("event=trace.export_failed") == 1
    with Collector(port) as late:
        broker.push([{"queue": queue + "2", "payload": 1}], headers={"traceparent": PARENT}).expect(201)
        late.wait_for("push %s2" % queue)
        harness.wait_until(lambda: metric(broker, 'queen_trace_spans_total{result="sent"}') == 1, 20, "sent")
    assert "event=trace.export_recovered" in broker.log_text()
    harness.end(broker, clean_exit=True)


def test_a_silent_collector_holds_up_nothing(pg, queue):
    """More spans than the queue takes, to a collector that reads and never answers."""
    with Collector(hold=threading.Event()) as silent:
        broker = harness.begin({**pg.env(), "OTEL_EXPORTER_OTLP_ENDPOINT": silent.url, "QUEEN_TRACE_RATIO": "1"})
        name = queue + "x" * 200
        links = [{"queue": name, "payload": i, "traceparent": "00-%032x-%016x-01" % (i + 1, i + 1)} for i in range(40)]

        def dropped():
            broker.push(links).expect(201)
            broker.take(name, batch=100)
            return metric(broker, 'queen_trace_spans_total{result="dropped"}') > 0
        harness.wait_until(dropped, 180, "spans are dropped", 0)
        assert metric(broker, "queen_trace_queued_bytes") <= 4 << 20
        harness.end(broker, clean_exit=True)  # it stops, although the collector holds its thread


def test_a_refusing_collector_gets_each_batch_once(pg, queue):
    with Collector(status=400) as refusing:
        broker = harness.begin({**pg.env(), "OTEL_EXPORTER_OTLP_ENDPOINT": refusing.url})
        broker.push([{"queue": queue, "payload": 1}], headers={"traceparent": PARENT}).expect(201)
        harness.wait_until(lambda: metric(broker, 'queen_trace_spans_total{result="dropped"}') == 1, 20, "dropped")
        assert len(refusing.requests) == 1
        harness.end(broker, clean_exit=True)


def test_the_last_spans_are_sent_at_the_stop(pg, collector, queue):
    broker = harness.begin({**pg.env(), "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
    broker.push([{"queue": queue, "payload": 1}], headers={"traceparent": PARENT}).expect(201)
    harness.end(broker, clean_exit=True)
    assert [s["name"] for s in collector.spans()] == ["push " + queue]


def test_a_client_that_leaves_during_a_pop_is_recorded(traced, collector, queue):
    broker = traced()
    with socket.create_connection((broker.host, broker.port)) as s:
        s.sendall(b"GET /api/v1/pop/queue/%s?wait=true&timeout=60000 HTTP/1.1\r\nHost: x\r\ntraceparent: %s\r\n\r\n"
                  % (queue.encode(), PARENT.encode()))
        harness.wait_until(lambda: metric(broker, "queen_parked_consumers") == 1, 20, "parked")
    pop, = collector.wait_for("pop " + queue)
    assert pop["traceId"] == TRACE and "links" not in pop


def test_it_is_off_by_default(broker, queue):
    broker.push([{"queue": queue, "payload": 1}]).expect(201)
    assert "traceparent" not in broker.take(queue)[0]
    assert metric(broker, "queen_trace_queued_bytes") is None


@pytest.mark.parametrize("env, text", [
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT: localhost:4318 is not an http or https address"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "grpc://localhost:4317"}, "is not an http or https address"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_HEADERS": "a=1,secret"},
     "OTEL_EXPORTER_OTLP_HEADERS: header 2 is not name=value"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_HEADERS": "a=x%0d%0ay"}, "header 1 is not name=value"),
    ({"QUEEN_TRACE_RATIO": "2"}, "QUEEN_TRACE_RATIO"),
])
def test_wrong_settings_end_the_start(pg, env, text):
    b = harness.Broker({**pg.env(), **env})
    done = subprocess.run([harness.BIN, "serve"], env=b.env, capture_output=True, text=True, timeout=harness.patience(60))
    b.dispose()
    assert done.returncode == 1 and text in done.stderr, done.stderr


def test_headers_are_secret(pg):
    b = harness.Broker({**pg.env(), "OTEL_EXPORTER_OTLP_HEADERS": "a=topsecret"})
    done = subprocess.run([harness.BIN, "serve", "--print-config"], env=b.env, capture_output=True, text=True, timeout=harness.patience(60))
    b.dispose()
    assert "topsecret" not in done.stdout and "OTEL_EXPORTER_OTLP_HEADERS" in done.stdout
