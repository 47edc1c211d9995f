"""Health, metrics and the shape of errors: http-api sections 1.9, 2 and 19."""
import os
import re

import pytest

import harness
from harness import Client, wait_until

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(.*)\})? (-?[0-9.eE+-]+|\+Inf|-Inf|NaN)( \d+)?$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\.)*)"(?:,|$)')


def scrape(broker):
    """name -> [(labels, value)], and name -> type; fails on a line that Prometheus would not read."""
    r = broker.get("/metrics/prometheus").expect(200)
    samples, types = {}, {}
    for line in r.text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ", 3)
            assert name not in types, "two TYPE lines for %s" % name
            types[name] = kind
        elif line and not line.startswith("#"):
            found = SAMPLE.match(line)
            assert found, "not a sample: %r" % line
            labels = dict(LABEL.findall(found.group(3) or ""))
            samples.setdefault(found.group(1), []).append((labels, float(found.group(4))))
    return samples, types


def histograms(broker):
    """family -> {labels without le -> [(le, cumulative)]}"""
    samples, types = scrape(broker)
    out = {}
    for name, kind in types.items():
        if kind != "histogram":
            continue
        series = {}
        for labels, value in samples.get(name + "_bucket", []):
            key = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
            series.setdefault(key, []).append((float(labels["le"].replace("+Inf", "inf")), value))
        out[name] = (series, {tuple(sorted(lv.items())): v for lv, v in samples.get(name + "_count", [])},
                     {tuple(sorted(lv.items())): v for lv, v in samples.get(name + "_sum", [])})
    return out


def test_health_of_a_healthy_broker(broker):
    answer = broker.get("/health").expect(200).json
    assert answer["status"] == "healthy" and answer["database"] == "connected"
    assert isinstance(answer["server"], str) and isinstance(answer["version"], str) and answer["version"]
    assert type(answer["worker_id"]) is int
    assert answer["shared_state"]["enabled"] is False
    assert answer["queen"]["status"] == "active" and type(answer["queen"]["worker_id"]) is int


@pytest.mark.parametrize("path", ["/live", "/ready"])
def test_probes_answer_200(broker, path):
    assert broker.get(path).status == 200


def test_metrics_as_json_have_the_shape_of_the_contract(broker):
    answer = broker.get("/metrics").expect(200).json
    shape = {"requests": {"total", "rate"}, "messages": {"total", "rate"},
             "database": {"poolSize", "idleConnections", "waitingRequests"},
             "memory": {"rss", "heapTotal", "heapUsed", "external", "arrayBuffers"}, "cpu": {"user", "system"}}
    assert set(answer) == {"uptime", *shape} and type(answer["uptime"]) is int
    for part, keys in shape.items():
        assert set(answer[part]) == keys
        assert all(type(answer[part][k]) in (int, float) and answer[part][k] >= 0 for k in keys)


@pytest.mark.one_broker
def test_metrics_as_json_count_requests_and_messages(make_broker, queue):
    b = make_broker()
    before = b.get("/metrics").expect(200).json
    b.put(queue, [1, 2, 3])
    b.put(queue, [4])
    assert len(b.take(queue, batch=10)) == 4
    after = b.get("/metrics").expect(200).json
    assert after["requests"]["total"] - before["requests"]["total"] == 4
    assert after["messages"]["total"] - before["messages"]["total"] == 8, "four pushed and four popped"
    for part in ("requests", "messages"):  # the average since the start; uptime is cut to whole seconds
        most = after[part]["total"] / max(after["uptime"], 0.001)
        assert after[part]["total"] / (after["uptime"] + 1) <= after[part]["rate"] + 0.01 and after[part]["rate"] <= most + 0.01


@pytest.mark.one_broker
def test_json_metrics_match_the_kernel_and_postgresql(make_broker, pg, queue):
    database = pg.create_database("observed_" + queue.replace("-", "_"))
    b = make_broker(database=database)
    b.put(queue, [1])
    conn = pg.connect(database=database)

    def kernel():
        with open("/proc/%d/stat" % b.process.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        tick = os.sysconf("SC_CLK_TCK")
        return int(fields[11]) / tick, int(fields[12]) / tick, int(fields[21]) * os.sysconf("SC_PAGESIZE")

    def open_connections():
        with conn.cursor() as cur:
            cur.execute("select count(*) from pg_stat_activity where datname = %s and pid <> pg_backend_pid() "
                        "and backend_type = 'client backend'", (database,))
            return cur.fetchone()[0]

    def agree():
        got, seen = b.get("/metrics").expect(200).json, open_connections()
        d = got["database"]
        return 0 < d["poolSize"] <= seen and d["idleConnections"] == d["poolSize"] and d["waitingRequests"] == 0 and got
    got = wait_until(agree, 5, "the pool to be quiet", 0.1)
    conn.close()
    user, system, rss = kernel()
    assert abs(got["cpu"]["user"] - user) < 0.3 and abs(got["cpu"]["system"] - system) < 0.3
    assert got["cpu"]["user"] + got["cpu"]["system"] > 0
    assert abs(got["memory"]["rss"] - rss) < 0.3 * rss
    if "asan" not in harness.BIN:  # its allocator has no statistics
        assert 0 < got["memory"]["heapUsed"] <= got["memory"]["heapTotal"] < 2 * rss


def test_prometheus_text_is_well_formed(broker):
    r = broker.get("/metrics/prometheus").expect(200)
    assert r.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert r.headers["cache-control"] == "no-cache"
    assert r.text.endswith("\n")
    samples, types = scrape(broker)
    for name in samples:
        family = re.sub(r"_(bucket|count|sum)$", "", name)
        assert name in types or family in types, "%s has no TYPE" % name


@pytest.mark.parametrize("family", ["queen_uptime_seconds", "queen_cpu_user_microseconds_total",
                                    "queen_cpu_system_microseconds_total", "queen_process_resident_memory_bytes",
                                    "queen_db_pool_size", "queen_db_pool_idle", "queen_db_pool_active"])
def test_a_family_of_the_contract_is_there(broker, family):
    samples, types = scrape(broker)
    assert len(samples[family]) == 1 and samples[family][0][1] >= 0
    assert types[family] == ("counter" if family.endswith("_total") else "gauge")


def use_everything(broker, queue):
    broker.configure(queue)
    broker.put(queue, list(range(4)), partition="p")
    a, b, c = broker.take(queue, batch=3)
    broker.extend(a["leaseId"], 60).expect(200)
    broker.ack(a)
    broker.ack_batch([b])
    assert broker.transaction([{"type": "ack", "transactionId": c["transactionId"], "partitionId": c["partitionId"]}])["success"]


def test_histograms_are_cumulative_and_consistent(broker, queue):
    use_everything(broker, queue)
    found = histograms(broker)
    assert found, "no histogram at all"
    for name, (series, counts, sums) in found.items():
        assert series, "%s has no buckets" % name
        for key, buckets in series.items():
            buckets.sort()
            values = [v for _, v in buckets]
            assert values == sorted(values), "%s is not cumulative" % name
            assert buckets[-1][0] == float("inf") and counts[key] == values[-1]
            assert key in sums


@pytest.mark.one_broker  # a process counts what it did itself
@pytest.mark.parametrize("op", ["push", "pop", "ack", "transaction", "configure", "lease|renew|extend"])
def test_there_is_a_latency_histogram_for_each_operation(broker, queue, op):
    """The names are ours to choose: an operation is found by a label value or in the family's name."""
    def count():
        total = 0
        for name, (_, counts, _) in histograms(broker).items():
            if re.search(r"batch|items|messages|size", name):
                continue
            for key, value in counts.items():
                if re.search(op, name) or any(re.search(op, v) for _, v in key):
                    total += value
        return total
    before = count()
    use_everything(broker, queue)
    wait_until(lambda: count() > before, 3, "the histogram of %s to count" % op)


@pytest.mark.one_broker  # the same
@pytest.mark.parametrize("op", ["push", "pop", "ack"])
def test_there_is_a_histogram_of_batch_sizes(broker, queue, op):
    def count():
        return sum(value for name, (_, counts, _) in histograms(broker).items() if re.search(r"batch|items", name)
                   for key, value in counts.items() if re.search(op, name) or any(re.search(op, v) for _, v in key))
    before = count()
    use_everything(broker, queue)
    wait_until(lambda: count() > before, 3, "the batch sizes of %s to count" % op)



# --- errors ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("method,path", [
    ("GET", "/api/v1/nothing"), ("POST", "/api/v1/nothing"), ("DELETE", "/api/v2/push"), ("GET", "/api/v1/pop/queue"),
    ("POST", "/api/v1/push/"), ("POST", "/API/v1/push"), ("GET", "/api/v1/pop/queue/a/partition"),
    ("GET", "/api/v1/pop/queue/a/partition/b/c"), ("PUT", "/nothing")])
def test_an_unknown_path_is_404_with_an_error(broker, method, path):
    r = broker.request(method, path, body=b"{}" if method != "GET" else None).expect(404)
    assert r.json["error"] == "not found"
    assert r.headers["content-type"].startswith("application/json")


@pytest.mark.parametrize("method,path", [("GET", "/api/v1/push"), ("PUT", "/api/v1/push"), ("DELETE", "/api/v1/ack"),
                                         ("POST", "/api/v1/pop/queue/x"), ("POST", "/health"), ("GET", "/api/v1/transaction")])
def test_a_wrong_method_is_refused_with_an_error(broker, method, path):
    """404 by http-api section 2, 405 by HTTP itself: both are 4xx, which no client retries."""
    r = broker.request(method, path, body=b"{}" if method in ("PUT", "POST") else None)
    assert r.status in (404, 405) and isinstance(r.json["error"], str)


def test_json_answers_have_an_exact_length_and_plain_utf8(broker, queue):
    r = broker.push([{"queue": queue, "payload": 1, "transactionId": "tür"}])  # sent escaped
    assert int(r.headers["content-length"]) == len(r.body) and "transfer-encoding" not in r.headers
    assert "tür".encode() in r.body, "names are not escaped"
    r = broker.pop(queue)
    assert int(r.headers["content-length"]) == len(r.body)
    assert "tür".encode() in r.body


def test_a_connection_is_kept_for_many_requests(broker, queue):
    client = Client(broker.host, broker.port)
    client.get("/live")
    first = client._local.conn.sock.getsockname()
    for i in range(20):
        client.put(queue, [i])
        client.take(queue, autoAck=True)
        client.take(queue)
        client.post("/api/v1/push", b"{").expect(400)
        client.get("/nothing").expect(404)
    assert client._local.conn.sock.getsockname() == first
    client.forget()
