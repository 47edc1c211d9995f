"""Maintenance modes and system endpoints (http-api 3.4, 4.6, 14.6, 16; semantics 19.1)."""
import threading
import time

import pytest

from harness import Background, let_arrive, patience, wait_until

ON, OFF = {"enabled": True}, {"enabled": False}


@pytest.fixture
def server(make_broker, pg):
    """A broker on a database of its own: the modes are for all brokers of a database."""
    return make_broker(database=pg.create_database("maint_%d" % time.monotonic_ns()), QUEEN_CACHE_REFRESH_INTERVAL_MS="100")


def maintenance(b, body):
    return b.post("/api/v1/system/maintenance", body).expect(200).json


def buffered(b):
    return b.get("/api/v1/system/maintenance").expect(200).json["bufferedMessages"]


def drained(b, timeout=10):
    return wait_until(lambda: buffered(b) == 0, timeout, "the buffer is empty")


def test_pushes_are_buffered_and_stored_when_it_is_over(server, queue):
    b = server
    b.put(queue, ["before"])
    assert maintenance(b, ON) == {"maintenanceMode": True, "bufferedMessages": 0, "bufferHealthy": True,
                                  "message": "pushes are being buffered"}
    r = b.push([{"queue": queue, "payload": 1, "transactionId": "one"}, {"queue": queue, "partition": "p", "payload": 2}])
    assert r.expect(201).json == [
        {"status": "buffered", "queue": queue, "partition": "Default", "transactionId": "one"},
        {"status": "buffered", "queue": queue, "partition": "p"}]
    assert b.get("/api/v1/system/maintenance").expect(200).json == {
        "maintenanceMode": True, "popMaintenanceMode": False, "bufferedMessages": 2, "bufferHealthy": True,
        "bufferStats": {"pendingCount": 2, "failedCount": 0, "dbHealthy": True,
                        "failedFiles": {"count": 0, "totalBytes": 0, "totalMB": 0, "failoverCount": 0, "qos0Count": 0}}}
    buffers = b.get("/api/v1/status/buffers").expect(200).json
    assert {k: buffers[k] for k in ("pending", "failed", "dbHealthy")} == {"pending": 2, "failed": 0, "dbHealthy": True}
    assert isinstance(buffers["worker"], int)
    assert [m["data"] for m in b.drain(queue)] == ["before"], "the rest is not there yet, but pops work"
    assert b.transaction([{"type": "push", "items": [{"queue": queue, "payload": "tx"}]}])["success"] is True
    assert [m["data"] for m in b.drain(queue)] == ["tx"], "transactions are not diverted"
    waiting = Background(lambda: b.take(queue, batch=10, partitions=10, wait=True, timeout=20000, autoAck=True))
    assert maintenance(b, OFF)["maintenanceMode"] is False
    drained(b)
    got = waiting.result() + b.drain(queue)
    assert sorted(m["data"] for m in got) == [1, 2]
    assert [m["transactionId"] for m in got if m["data"] == 1] == ["one"]
    assert b.push([{"queue": queue, "payload": 1, "transactionId": "one"}]).json[0]["status"] == "duplicate"


@pytest.mark.parametrize("body", [{}, {"enabled": 1}, {"enabled": "true"}, {"enabled": None}, [], "x"])
@pytest.mark.parametrize("path", ["maintenance", "maintenance/pop"])
def test_the_switch_wants_a_boolean(broker, path, body):
    r = broker.post("/api/v1/system/" + path, body)
    assert r.status == 400 and isinstance(r.json["error"], str)


def test_bad_pushes_are_refused_before_they_are_buffered(server, queue):
    maintenance(server, ON)
    assert server.push([{"queue": queue, "payload": 1, "traceId": "no uuid"}]).status == 400
    assert server.push([]).expect(201).json == []
    assert buffered(server) == 0


def test_a_producer_and_a_consumer_do_not_notice(server, queue):
    """The test of semantics 19.1, shorter: what was produced is what is received, in order."""
    b, produced, received, stop = server, [], [], threading.Event()

    def produce():
        while not stop.is_set():
            r = b.push([{"queue": queue, "payload": len(produced)}])
            assert r.status == 201 and r.json[0]["status"] in ("queued", "buffered"), r
            produced.append(r.json[0]["status"])
            time.sleep(0.02)

    def consume():
        while not stop.is_set() or len(received) < len(produced):
            received.extend(m["data"] for m in b.take(queue, batch=10, wait=True, timeout=1000, autoAck=True))

    producer, consumer = Background(produce), Background(consume)
    time.sleep(0.5)
    maintenance(b, ON)
    wait_until(lambda: produced.count("buffered") > 20, 10, "pushes are buffered")
    maintenance(b, OFF)
    drained(b)
    wait_until(lambda: produced[-1] == "queued", 10, "pushes go to the database again")
    time.sleep(0.2)
    stop.set()
    producer.result(10)
    consumer.result(20)
    assert received == list(range(len(produced))), "each once and in order"


def test_pushes_keep_their_order_behind_buffered_ones(server, queue):
    b, lanes = server, ["a", "b", "c"]
    n = {lane: 0 for lane in lanes}

    def push(lane):
        assert b.push([{"queue": queue, "partition": lane, "payload": n[lane]}]).expect(201)
        n[lane] += 1

    def keep_pushing(lane, until):
        while not until.is_set():
            push(lane)

    for turn in range(3):
        maintenance(b, ON)
        for lane in lanes:
            for _ in range(30):
                push(lane)
        until = threading.Event()
        threads = [Background(lambda lane=lane: keep_pushing(lane, until)) for lane in lanes]
        maintenance(b, OFF)
        drained(b)
        until.set()
        for t in threads:
            t.result()
    drained(b)
    got = b.drain(queue)
    for lane in lanes:
        assert [m["data"] for m in got if m["partition"] == lane] == list(range(n[lane])), lane


def test_pop_maintenance_parks_pops_and_lets_the_rest_work(server, queue):
    b = server
    b.put(queue, [1, 2], partition="p")
    b.put(queue + "x", [1])
    (held,) = b.take(queue + "x")
    r = b.post("/api/v1/system/maintenance/pop", ON).expect(200).json
    assert r == {"popMaintenanceMode": True, "message": "pops deliver nothing"}
    assert b.get("/api/v1/system/maintenance/pop").expect(200).json["popMaintenanceMode"] is True
    assert b.get("/api/v1/system/maintenance").json["popMaintenanceMode"] is True
    assert b.take(queue) == [] and b.take(queue, "p") == [] and b.take(namespace=queue) == []
    begin = time.monotonic()
    assert b.take(queue, wait=True, timeout=500) == []
    assert 0.45 < time.monotonic() - begin < 0.5 + patience(2.5), "204 at the timeout, not before"
    parked = [Background(lambda: b.take(queue, wait=True, timeout=60000, autoAck=True)),
              Background(lambda: b.take(queue, "p", wait=True, timeout=60000, autoAck=True)),
              Background(lambda: b.take(namespace=queue, wait=True, timeout=60000, autoAck=True))]
    b.put(queue, [3], partition="q")
    assert b.extend(held["leaseId"], 60).status == 200
    assert b.ack(held)["success"] is True
    time.sleep(0.3)
    assert not any(p.done for p in parked), "a push does not wake them"
    begin = time.monotonic()
    assert b.post("/api/v1/system/maintenance/pop", OFF).expect(200).json == {
        "popMaintenanceMode": False, "message": "consumers may pop"}
    got = [m["data"] for p in parked for m in p.result(70)]
    assert time.monotonic() - begin < 40, "woken at once"
    assert sorted(got) == [1, 2, 3]


def test_modes_act_on_all_brokers_and_survive_restarts(make_broker, pg, queue):
    name = pg.create_database("maint_%d" % time.monotonic_ns())
    a = make_broker(database=name)
    b = make_broker(database=name, QUEEN_CACHE_REFRESH_INTERVAL_MS="50")
    parked = Background(lambda: a.take(queue, wait=True, timeout=30000))
    maintenance(a, ON)
    a.post("/api/v1/system/maintenance/pop", ON).expect(200)
    wait_until(lambda: b.push([{"queue": queue, "payload": 1}]).json[0]["status"] == "buffered", 5, "learnt by the refresh")
    c = make_broker(database=name)
    assert c.push([{"queue": queue, "payload": 2}]).json[0]["status"] == "buffered", "read before the first push"
    assert c.get("/api/v1/system/shared-state").json["pop_maintenance_mode"] is True
    # a sees it in the change feed, which it reads because a pop is parked there
    maintenance(b, OFF)
    b.post("/api/v1/system/maintenance/pop", OFF).expect(200)
    assert parked.result()[0]["data"] in (1, 2)
    wait_until(lambda: not a.get("/api/v1/system/shared-state").json["maintenance_mode"], 10, "a has heard")


def test_shared_state(broker, queue):
    broker.put(queue, [1])
    for path in ("/api/v1/system/shared-state", "/internal/api/shared-state/stats", "/internal/api/inter-instance/stats"):
        state = broker.get(path).expect(200).json
        cache = state.pop("queue_config_cache")
        assert cache["size"] >= 1 and cache["misses"] >= 1 and 0 <= cache["hit_rate"] <= 1
        server_id = state.pop("server_id")
        assert server_id.split(":")[-1] in [str(b.port) for b in (broker, broker.twin) if b]
        assert state == {"enabled": False, "running": False, "maintenance_mode": False, "pop_maintenance_mode": False,
                         "server_health": {"servers_tracked": 0, "servers_alive": 0, "servers_dead": 0,
                                           "heartbeats_received": 0, "restarts_detected": 0}}


def test_notify_makes_parked_pops_look(make_broker, broker2, queue):
    # The listener makes parked pops look once when it starts, which may be during the test.
    b = make_broker(SIDECAR_POP_WAIT_INITIAL_MS="60000", SIDECAR_POP_WAIT_MAX_MS="60000", QUEEN_SQL_NOTIFY="false")
    b.put(queue, [0])
    assert b.drain(queue)
    parked = Background(lambda: b.take(queue, wait=True, timeout=20000))
    let_arrive()
    broker2.put(queue, ["from the other"])
    time.sleep(0.3)
    assert not parked.done, "this broker does not look by itself"
    assert b.post("/internal/api/notify", {"queue": queue, "partition": "Default"}).expect(200).json == {"status": "ok"}
    assert parked.result(5)[0]["data"] == "from the other"
    for body in ({}, {"queue": 5}, {"queue": ""}, {"queue": queue, "partition": 5}):
        assert b.post("/internal/api/notify", body).status == 400
