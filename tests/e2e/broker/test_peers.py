"""Several servers on one database: notifications by UDP, and that everything works without them.

The long-poll interval is set to a minute where a wake-up is to be shown: then only a datagram can have been the reason.
"""
import hashlib
import hmac
import os
import socket
import struct
import time

import pytest

from harness import Background, let_arrive, wait_until

SLOW = {"SIDECAR_POP_WAIT_INITIAL_MS": "60000", "SIDECAR_POP_WAIT_MAX_MS": "60000"}


def udp_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def state(broker):
    return broker.get("/api/v1/system/shared-state").expect(200).json


def pair(make_broker, pg, **env):
    """Two brokers that are given the same list, themselves included."""
    name = pg.create_database("peers_%d" % time.monotonic_ns())
    ports = [udp_port(), udp_port()]
    peers = ",".join("localhost:%d" % p for p in ports)
    brokers = [make_broker(database=name, QUEEN_UDP_PEERS=peers, QUEEN_UDP_NOTIFY_PORT=str(p), QUEEN_SYNC_HEARTBEAT_MS="50",
                           QUEEN_SYNC_DEAD_THRESHOLD_MS="500", **{**SLOW, **env}) for p in ports]
    for b in brokers:
        wait_until(lambda: state(b)["server_health"]["servers_alive"] == 1, 10, "they hear each other")
    return brokers


def parked(broker, queue, **more):
    waiter = Background(lambda: broker.take(queue, wait=True, timeout=20000, **more))
    let_arrive()  # it has looked once, found nothing, and sits
    assert not waiter.done
    return waiter


def test_a_push_at_one_server_wakes_a_consumer_at_another(make_broker, pg, queue):
    a, b = pair(make_broker, pg, QUEEN_SYNC_SECRET="hush")
    for round_ in range(3):
        for here, there in ((a, b), (b, a)):
            waiter = parked(there, queue, autoAck=True)
            begin = time.monotonic()
            here.put(queue, [round_])
            assert waiter.result()[0]["data"] == round_
            assert time.monotonic() - begin < 15, "woken, not found by the poll of a minute"


def test_a_lease_that_ends_at_one_server_wakes_a_consumer_at_another(make_broker, pg, queue):
    a, b = pair(make_broker, pg)
    a.put(queue, [1, 2])
    held = a.take(queue, batch=1)[0]
    waiter = parked(b, queue)
    assert a.ack(held)["success"] is True
    assert waiter.result()[0]["data"] == 2


def test_peers_are_notified_of_transactions_and_selectors(make_broker, pg, queue):
    a, b = pair(make_broker, pg)
    b.configure(queue, namespace=queue)
    waiter = Background(lambda: b.take(namespace=queue, wait=True, timeout=20000, autoAck=True))
    let_arrive()
    a.transaction([{"type": "push", "items": [{"queue": queue, "payload": 5}]}])
    assert waiter.result()[0]["data"] == 5


def test_notify_reaches_the_peers(make_broker, pg, queue):
    a, b = pair(make_broker, pg, QUEEN_SQL_NOTIFY="false")
    waiter = parked(b, queue, autoAck=True)
    with pg.connect(database=b.env["PG_DB"]) as db:  # a SQL session notifies no server
        db.cursor().execute("select queen.push_messages_v2(%s::jsonb)", ('[{"queue":"%s","payload":7}]' % queue,))
    let_arrive()
    assert not waiter.done
    a.post("/internal/api/notify", {"queue": queue}).expect(200)
    assert waiter.result()[0]["data"] == 7


def test_maintenance_is_heard_at_once(make_broker, pg, queue):
    a, b = pair(make_broker, pg)
    a.post("/api/v1/system/maintenance", {"enabled": True}).expect(200)
    wait_until(lambda: state(b)["maintenance_mode"], 5, "heard")
    b.post("/api/v1/system/maintenance", {"enabled": False}).expect(200)
    wait_until(lambda: not state(a)["maintenance_mode"], 5, "heard")


def test_servers_report_their_peers(make_broker, pg):
    a, b = pair(make_broker, pg)
    s = state(a)
    t = s["transport"]
    assert s["enabled"] is True and s["running"] is True and s["server_id"] == t["server_id"]
    assert t["peer_count"] == 2 and [p["resolved"] for p in t["peers"]] == [True, True]
    assert len(t["session_id"]) == 15
    wait_until(lambda: [p["is_self"] for p in state(a)["transport"]["peers"]] == [True, False], 5, "itself is recognised")
    other = state(b)["transport"]["server_id"]
    assert state(a)["transport"]["peers"][1]["learned_server_id"] == other
    assert list(state(a)["transport"]["learned_identities"]) == [other]
    health = a.get("/health").json["shared_state"]
    assert health["enabled"] is True and health["server_health"]["servers_tracked"] == 1
    text = a.get("/metrics/prometheus").text
    assert "queen_shared_state_enabled 1" in text and "queen_qc_cache_size" in text and "queen_peers_alive 1" in text
    assert 'queen_transport_messages_total{dir="sent"} 0' not in text


def test_a_dead_server_is_noticed_and_its_restart_too(make_broker, pg):
    a, b = pair(make_broker, pg)
    b.kill()
    wait_until(lambda: state(a)["server_health"]["servers_dead"] == 1, 5, "silent for too long")
    b.start()
    wait_until(lambda: state(a)["server_health"] == {**state(a)["server_health"], "servers_alive": 1, "servers_dead": 0,
                                                     "restarts_detected": 1}, 10, "back in a new session")


def forged(port, secret, sequence=1, session=b"fedcba987654321", queue=b"q", sender=b"stranger:1", age_s=0):
    body = b"\x82\xa5queue" + bytes([0xa0 | len(queue)]) + queue + b"\xa2ts\xcf" + struct.pack(">Q", int((time.time() - age_s) * 1000))
    head = struct.pack(">BBH", 1, 1, len(body))
    rest = sender.ljust(32, b"\0") + session.ljust(16, b"\0") + struct.pack(">Q", sequence) + body
    mac = hmac.new(secret, head + rest, hashlib.sha256).digest() if secret else bytes(32)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(head + mac + rest, ("127.0.0.1", port))


def test_strangers_and_replays_are_refused(make_broker, pg):
    a, _ = pair(make_broker, pg, QUEEN_SYNC_SECRET="hush")
    port = state(a)["transport"]["port"]
    forged(port, b"guess")
    forged(port, None)
    wait_until(lambda: state(a)["transport"]["signature_failures"] == 2, 5, "refused")
    forged(port, b"hush", sequence=5)
    forged(port, b"hush", sequence=5)
    wait_until(lambda: state(a)["transport"]["sequence_rejections"] == 1, 5, "the second is a replay")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for size in (0, 1, 91, 92, 93, 1400, 1401, 5000):
            s.sendto(os.urandom(size), ("127.0.0.1", port))
    wait_until(lambda: state(a)["transport"]["messages_dropped"] >= 5, 5, "noise")
    assert a.get("/live").status == 200


def test_recordings_of_an_earlier_session_do_not_silence_a_peer(make_broker, pg, queue):
    a, b = pair(make_broker, pg, QUEEN_SYNC_SECRET="hush")
    port, name = state(a)["transport"]["port"], state(b)["transport"]["server_id"].encode()
    before = state(a)["transport"]["sequence_rejections"]
    forged(port, b"hush", sequence=10**6, session=b"00000000000abcd", sender=name)
    forged(port, b"hush", sequence=10**6, session=b"fffffffffffffff", sender=name, age_s=3600)
    wait_until(lambda: state(a)["transport"]["sequence_rejections"] > before, 10, "the recording is refused")
    wait_until(lambda: "peers.clock_differs" in a.log_text(), 10, "the old one is refused")
    waiter = parked(a, queue, autoAck=True)
    b.put(queue, [1])
    assert waiter.result()[0]["data"] == 1
    assert state(a)["server_health"]["restarts_detected"] == 0


def test_a_datagram_that_is_sent_back_does_not_stop_the_notifications(make_broker, pg, queue):
    """A relay stands in for the peer and returns everything that it receives."""
    name = pg.create_database("peers_%d" % time.monotonic_ns())
    relay = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    relay.bind(("127.0.0.1", 0))
    relay.settimeout(20)
    a = make_broker(database=name, QUEEN_UDP_PEERS="127.0.0.1:%d" % relay.getsockname()[1], QUEEN_SYNC_HEARTBEAT_MS="50",
                    QUEEN_UDP_NOTIFY_PORT=str(udp_port()), QUEEN_SYNC_SECRET="hush", **SLOW)
    for _ in range(20):
        datagram, origin = relay.recvfrom(2000)
        relay.sendto(datagram, origin)
    assert [p["is_self"] for p in state(a)["transport"]["peers"]] == [False]
    relay.close()


def test_the_socket_is_bound_to_the_configured_address(make_broker, pg):
    port = udp_port()
    a = make_broker(HOST="127.0.0.1", QUEEN_UDP_PEERS="127.0.0.1:9", QUEEN_UDP_NOTIFY_PORT=str(port))
    with open("/proc/%d/net/udp" % a.process.pid) as f:
        bound = [line.split()[1] for line in f if line.split()[1].endswith(":%04X" % port)]
    assert bound == ["0100007F:%04X" % port]
    with open("/proc/%d/net/udp6" % a.process.pid) as f:
        assert not [line for line in f if (":%04X" % port) in line.split()[1]]


def test_without_udp_everything_is_found_by_looking(make_broker, pg, queue):
    name = pg.create_database("peers_%d" % time.monotonic_ns())
    # Unreachable peers: a closed port, and a name that cannot be resolved.
    a = make_broker(database=name, QUEEN_UDP_PEERS="localhost:1,nobody.invalid", QUEEN_UDP_NOTIFY_PORT=str(udp_port()))
    b = make_broker(database=name, QUEEN_UDP_PEERS="localhost", QUEEN_SYNC_ENABLED="false")
    assert state(b)["enabled"] is False
    waiter = Background(lambda: b.take(queue, wait=True, timeout=20000, autoAck=True))
    let_arrive()
    a.put(queue, [1])
    assert waiter.result()[0]["data"] == 1
    assert [p["resolved"] for p in state(a)["transport"]["peers"]] == [True, False]


@pytest.mark.parametrize("settle", ["ack", "transaction"])
def test_a_lease_that_another_server_ended_holds_nothing_back(make_broker, pg, queue, settle):
    """The server that granted the lease relies on it until it expires, unless a peer notifies it.  No message was left when it ended."""
    name = pg.create_database("peers_%d" % time.monotonic_ns())
    a, b = make_broker(database=name), make_broker(database=name)
    a.put(queue, [1])
    (m,) = a.take(queue)
    if settle == "ack":
        assert b.ack(m)["success"] is True
    else:
        b.transaction([{"type": "ack", **b.ack_entry(m)}])
    waiter = Background(lambda: a.take(queue, wait=True, timeout=20000))
    let_arrive()
    a.put(queue, [2])
    assert waiter.result()[0]["data"] == 2


@pytest.mark.parametrize("env, says", [
    ({"QUEEN_UDP_PEERS": "a:0"}, "QUEEN_UDP_PEERS"),
    ({"QUEEN_UDP_PEERS": "a", "QUEEN_UDP_NOTIFY_PORT": "x"}, "QUEEN_UDP_NOTIFY_PORT"),
    ({"QUEEN_UDP_PEERS": "a", "QUEEN_SYNC_HEARTBEAT_MS": "0"}, "QUEEN_SYNC_HEARTBEAT_MS"),
])
def test_bad_settings_stop_the_start(pg, make_broker, env, says):
    with pytest.raises(Exception) as why:
        make_broker(database=pg.create_database("peers_%d" % time.monotonic_ns()), **env)
    assert says in str(why.value)


def test_a_port_that_is_taken_stops_the_start(pg, make_broker):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.bind(("::", 0))
        with pytest.raises(Exception) as why:
            make_broker(database=pg.create_database("peers_%d" % time.monotonic_ns()), QUEEN_UDP_PEERS="a",
                        QUEEN_UDP_NOTIFY_PORT=str(s.getsockname()[1]))
    assert "QUEEN_UDP_NOTIFY_PORT: cannot use UDP port" in str(why.value)
