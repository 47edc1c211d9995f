"""Content-Encoding: gzip, on the way in and out."""
import socket
import os
import gzip
import json
import zlib

import pytest

from harness import in_parallel
from test_http_manners import HEALTH, Wire, request


def big_push(queue, n=200):
    return {"items": [{"queue": queue, "payload": {"n": i, "text": "some text that repeats " * 4}} for i in range(n)]}


def pop(broker, queue, accept=None, batch=500, **headers):
    if accept is not None:
        headers["Accept-Encoding"] = accept
    else:
        headers["Accept-Encoding"] = "identity"
    return broker.get("/api/v1/pop/queue/%s?batch=%d&autoAck=true" % (queue, batch), headers=headers).expect(200)


def numbers(messages):
    return [m["data"]["n"] for m in messages]


@pytest.mark.parametrize("accept,packed", [
    ("gzip", True), ("gzip, deflate", True), ("br;q=1.0, gzip;q=0.5", True), ("x-gzip", True), ("*", True), ("GZIP", True),
    ("deflate", False), ("identity", False), ("gzip;q=0", False), ("gzip;q=0.000, *", False), ("*;q=0", False), ("", False)])
def test_large_answers_are_compressed_for_clients_that_accept_gzip(broker, queue, accept, packed):
    broker.post("/api/v1/push", big_push(queue)).expect(201)
    r = pop(broker, queue, accept)
    assert r.headers["vary"] == "Accept-Encoding"
    assert (r.headers.get("content-encoding") == "gzip") == packed
    text = gzip.decompress(r.body) if packed else r.body
    assert numbers(json.loads(text)["messages"]) == list(range(200))
    if packed:
        assert len(r.body) < len(text) / 4


def test_small_answers_and_uninterested_clients_get_plain_ones(broker, queue):
    broker.post("/api/v1/push", big_push(queue)).expect(201)
    r = pop(broker, queue, "gzip", batch=1)
    assert "content-encoding" not in r.headers and "vary" not in r.headers and r.json["messages"]
    with Wire(broker) as w:  # http.client always sends the header
        w.send(request("GET", "/api/v1/pop/queue/%s?batch=500&autoAck=true" % queue))
        status, headers, body = w.answer()
    assert status == 200 and "content-encoding" not in headers and len(json.loads(body)["messages"]) == 199


def test_very_large_answers_keep_their_place_among_others(broker, queue):
    """They are packed by another thread; the answers behind them wait."""
    broker.post("/api/v1/push", big_push(queue, 3000)).expect(201)
    with Wire(broker) as w:
        w.send(request("GET", "/api/v1/pop/queue/%s?batch=3000&autoAck=true" % queue, None, "Accept-Encoding: gzip") + HEALTH)
        status, headers, body = w.answer()
        assert status == 200 and headers["content-encoding"] == "gzip"
        assert numbers(json.loads(gzip.decompress(body))["messages"]) == list(range(3000))
        assert json.loads(w.answer()[2])["status"] == "healthy"


def test_incompressible_answers_are_not_compressed(broker, queue):
    import secrets
    broker.put(queue, [secrets.token_urlsafe(30000)])
    r = pop(broker, queue, "gzip")
    assert r.json["messages"] if "content-encoding" not in r.headers else len(r.body) < 41000


def test_packing_can_be_switched_off(make_broker, queue):
    b = make_broker(QUEEN_GZIP_MIN_BYTES="0")
    b.post("/api/v1/push", big_push(queue)).expect(201)
    assert "content-encoding" not in pop(b, queue, "gzip").headers


@pytest.mark.parametrize("n", [1, 3000])
@pytest.mark.parametrize("name", ["gzip", "GZIP", "x-gzip"])
def test_request_bodies_may_be_packed(broker, queue, n, name):
    body = gzip.compress(json.dumps(big_push(queue, n)).encode())
    r = broker.post("/api/v1/push", body, headers={"Content-Encoding": name}).expect(201)
    assert [x["status"] for x in r.json] == ["queued"] * n
    assert numbers(broker.drain(queue)) == list(range(n))


def test_members_may_follow_one_another_and_identity_is_nothing(broker, queue):
    text = json.dumps(big_push(queue, 2)).encode()
    broker.post("/api/v1/push", gzip.compress(text[:40]) + gzip.compress(text[40:]),
                headers={"Content-Encoding": "gzip"}).expect(201)
    broker.post("/api/v1/push", text, headers={"Content-Encoding": "identity"}).expect(201)
    assert len(broker.drain(queue)) == 4


def test_later_requests_do_not_overtake_a_compressed_body(broker, queue):
    def push(n, packed):
        body = json.dumps({"items": [{"queue": queue, "payload": {"n": n, "fill": "x" * (3000000 if packed else 1)}}]}).encode()
        return request("POST", "/api/v1/push", gzip.compress(body) if packed else body,
                       *(["Content-Encoding: gzip"] if packed else []))

    with Wire(broker) as w:
        w.send(b"".join(push(n, n % 3 == 0) for n in range(9)))
        assert [w.answer()[0] for _ in range(9)] == [201] * 9
    assert numbers(broker.drain(queue)) == list(range(9))


@pytest.mark.parametrize("bad", [b"no gzip at all", b"", gzip.compress(b"{}" * 100)[:-9], zlib.compress(b"{}"),
                                 gzip.compress(b'{"items": []}') + b"rest", gzip.compress(b"x" * 99999, 0)[:60000]])
def test_damaged_bodies_are_refused(broker, bad):
    r = broker.post("/api/v1/push", bad, headers={"Content-Encoding": "gzip"}).expect(400)
    assert r.json["error"] == "the body is not valid gzip"
    broker.get("/health").expect(200)


def test_other_codings_are_rejected_with_the_supported_ones(broker):
    for coding in ("br", "deflate", "gzip, gzip"):
        r = broker.post("/api/v1/push", b"{}", headers={"Content-Encoding": coding}).expect(415)
        assert r.headers["accept-encoding"] == "gzip" and r.json["error"] == "Content-Encoding must be gzip or identity"


def test_bombs_stop_at_the_limit_of_bodies(make_broker):
    b = make_broker(QUEEN_MAX_BODY_BYTES="1000000")
    small = gzip.compress(b" " * 1000001)          # a kilobyte: unpacked on the spot
    large = gzip.compress(b" " * 200000000)         # 200 KB: by another thread
    for bomb in (small, large):
        r = b.post("/api/v1/push", bomb, headers={"Content-Encoding": "gzip"}).expect(413)
        assert r.json["error"] == "the body is larger than this server accepts"
    r = b.post("/api/v1/push", gzip.compress(b'{"items": []' + b" " * 999987 + b"}"), headers={"Content-Encoding": "gzip"})
    assert r.status == 201
    with open("/proc/%d/status" % b.process.pid) as f:
        peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    assert peak < 200000


def test_clients_that_leave_while_their_bodies_are_unpacked_do_no_harm(broker, queue):
    body = gzip.compress(json.dumps({"items": [{"queue": queue, "payload": "x" * 20000000}]}).encode())

    def rude():
        with Wire(broker) as w:
            w.send(request("POST", "/api/v1/push", body, "Content-Encoding: gzip") + HEALTH * 3)

    in_parallel([rude] * 4)
    broker.get("/health").expect(200)


def cpu_s(b):
    with open("/proc/%d/stat" % b.process.pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.one_broker
def test_bodies_of_clients_that_have_gone_are_not_unpacked(make_broker):
    """Each of them takes a thread for a moment; the live client behind them waited for all."""
    b = make_broker(NUM_WORKERS=1)
    body = gzip.compress(b" " * (90 << 20), 6)
    head = ("POST /api/v1/push HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
            "Content-Length: %d\r\n\r\n" % len(body)).encode()
    sent = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    before = cpu_s(b)
    b.post("/api/v1/push", body, headers=sent, timeout=60).expect(400)
    one = max(cpu_s(b) - before, 0.05)
    before, gone = cpu_s(b), 40
    for _ in range(gone):
        with socket.create_connection((b.host, b.port), timeout=10) as s:
            s.sendall(head + body)
    b.post("/api/v1/push", body, headers=sent, timeout=60).expect(400)
    assert cpu_s(b) - before < one * gone / 10
