"""How the server behaves as an HTTP/1.1 server, seen from raw sockets."""
import json
import re
import socket
import threading
import time

import pytest

from harness import patience

class Wire:
    """A connection that reads whole answers."""

    def __init__(self, broker, timeout=10):
        self.sock = socket.create_connection((broker.host, broker.port), timeout=timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def more(self):
        piece = self.sock.recv(65536)
        if not piece:
            raise EOFError(self.rest)
        self.rest += piece

    def head(self):
        while b"\r\n\r\n" not in self.rest:
            self.more()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, value = line.split(": ", 1)
            assert name.lower() not in headers, "header twice: " + name
            headers[name.lower()] = value
        return int(lines[0].split(" ")[1]), headers

    def answer(self, verb="GET"):
        status, headers = self.head()
        if status == 100:
            return status, headers, b""
        length = int(headers.get("content-length", 0))
        if verb == "HEAD":
            length = 0
        while len(self.rest) < length:
            self.more()
        body, self.rest = self.rest[:length], self.rest[length:]
        return status, headers, body

    def ends(self):
        """True once the server has closed; nothing may come before."""
        try:
            return self.rest == b"" and self.sock.recv(1) == b""
        except ConnectionResetError:
            return True


def request(verb, path, body=None, *lines):
    head = ["%s %s HTTP/1.1" % (verb, path), "Host: h", *lines]
    if body is not None:
        head.append("Content-Length: %d" % len(body))
    return "\r\n".join(head).encode() + b"\r\n\r\n" + (body or b"")


HEALTH = request("GET", "/health")


@pytest.fixture
def wire(broker):
    with Wire(broker) as w:
        yield w


def test_json_answers_carry_length_and_date(wire):
    wire.send(HEALTH)
    status, headers, body = wire.answer()
    assert status == 200
    assert headers["content-type"].startswith("application/json")
    assert int(headers["content-length"]) == len(body) > 0
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", headers["date"])
    assert "access-control-allow-origin" not in headers
    assert "connection" not in headers


def test_preflight_is_answered_for_any_path(wire):
    for path in ("/api/v1/push", "/no/such/path", "*"):
        wire.send(request("OPTIONS", path, None, "Access-Control-Request-Method: POST"))
        status, headers, body = wire.answer()
        assert (status, body) == (204, b"")
        assert headers["access-control-max-age"] == "86400"
        assert "content-length" not in headers and "content-type" not in headers


def test_unknown_path_is_404_and_the_connection_stays_open(wire):
    wire.send(request("GET", "/no/such/path"))
    assert wire.answer()[::2] == (404, b'{"error":"not found"}')
    wire.send(HEALTH)
    assert wire.answer()[0] == 200


def test_other_verb_is_405_with_allow(wire):
    for verb in ("DELETE", "PATCH"):
        wire.send(request(verb, "/api/v1/push", b"{}"))
        status, headers, body = wire.answer()
        assert status == 405
        assert "POST" in headers["allow"].split(", ")
        assert b'"error"' in body


def test_trailing_slash_is_another_path(wire):
    wire.send(request("GET", "/health/"))
    assert wire.answer()[0] == 404


def test_head_is_get_without_a_body(wire):
    wire.send(request("HEAD", "/health"))
    status, headers, _ = wire.answer("HEAD")
    assert status == 200
    assert int(headers["content-length"]) > 0
    wire.send(HEALTH)
    assert wire.answer()[0] == 200  # nothing was left over from the first


def test_pipelined_requests_are_answered_in_order(wire):
    paths = ["/health", "/no/such/%d", "/health"] * 30
    wire.send(b"".join(request("GET", p % i if "%d" in p else p) for i, p in enumerate(paths)))
    for p in paths:
        assert wire.answer()[0] == (200 if p == "/health" else 404)


def test_a_request_may_come_byte_by_byte(wire):
    for byte in HEALTH:
        wire.send(bytes([byte]))
    assert wire.answer()[0] == 200


def test_empty_lines_between_requests_are_ignored(wire):
    wire.send(b"\r\n\r\n" + HEALTH + b"\r\n" + HEALTH)
    assert wire.answer()[0] == 200
    assert wire.answer()[0] == 200


def test_header_names_are_case_blind_and_targets_may_be_absolute(wire):
    wire.send(b"GET http://localhost/health HTTP/1.1\r\nhOST: localhost\r\n\r\n")
    assert wire.answer()[0] == 200


def test_connection_close_is_honoured(wire):
    wire.send(request("GET", "/health", None, "Connection: close"))
    status, headers, _ = wire.answer()
    assert status == 200 and headers["connection"] == "close"
    assert wire.ends()


def test_http_1_0_is_served_and_closed(wire):
    wire.send(b"GET /health HTTP/1.0\r\n\r\n")
    assert wire.answer()[0] == 200
    assert wire.ends()


def test_http_1_0_may_keep_the_connection(wire):
    for _ in range(2):
        wire.send(b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        status, headers, _ = wire.answer()
        assert status == 200 and headers["connection"] == "keep-alive"


def test_an_offer_to_upgrade_is_ignored(wire):
    wire.send(request("GET", "/health", None, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c",
                      "HTTP2-Settings: AAMAAABkAAQAAP__"))
    assert wire.answer()[0] == 200


def test_continue_is_sent_before_the_body(wire):
    body = b'{"items": []}'
    wire.send(b"POST /api/v1/push HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
    started = time.monotonic()
    assert wire.answer()[0] == 100
    assert time.monotonic() - started < patience(0.9)  # curl would wait one second
    wire.send(body)
    assert wire.answer()[0] < 500


def test_length_and_chunks_mean_the_same(wire):
    body = b'{"items": [}'  # malformed, so the answer does not depend on what is stored
    wire.send(request("POST", "/api/v1/push", body))
    plain = wire.answer()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 5]), body[i:i + 5]) for i in range(0, len(body), 5))
    wire.send(b"POST /api/v1/push HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
    chunked = wire.answer()
    assert plain[0] == chunked[0]
    assert plain[2] == chunked[2]


def test_a_long_token_passes_and_a_huge_header_does_not(broker):
    with Wire(broker) as w:
        w.send(request("GET", "/health", None, "Authorization: Bearer " + "t" * 12000))
        assert w.answer()[0] == 200
    with Wire(broker) as w:
        try:
            w.send(request("GET", "/health", None, "X: " + "t" * 4000000))
        except OSError:
            pass
        assert w.answer()[0] == 431
    with Wire(broker) as w:
        try:
            w.send(request("GET", "/" + "t" * 4000000))
        except OSError:
            pass
        assert w.answer()[0] == 414


def test_an_announced_body_beyond_all_limits_is_refused_at_once(wire):
    wire.send(b"POST /api/v1/push HTTP/1.1\r\nHost: h\r\nContent-Length: 999999999999999\r\n\r\n")
    status, headers, body = wire.answer()
    assert status == 413 and headers["connection"] == "close" and b'"error"' in body


def test_a_body_of_many_megabytes_is_read(wire):
    body = b'{"items": [' + b" " * (20 << 20)  # read completely, then found to be no JSON
    wire.sock.settimeout(30)
    wire.send(request("POST", "/api/v1/push", body))
    assert wire.answer()[0] == 400
    wire.send(HEALTH)
    assert wire.answer()[0] == 200


def test_idle_connections_live_longer_than_the_clients_keep_them(wire):
    wire.send(HEALTH)
    wire.answer()
    time.sleep(3)
    wire.send(HEALTH)
    assert wire.answer()[0] == 200


def test_a_hundred_connections_at_once(broker):
    wires = [Wire(broker) for _ in range(100)]
    try:
        for w in wires:
            w.send(HEALTH)
        for w in wires:
            assert w.answer()[0] == 200
    finally:
        for w in wires:
            w.sock.close()


def test_clients_that_hang_up_halfway_do_no_harm(broker):
    def rude(i):
        with Wire(broker) as w:
            w.send(request("POST", "/api/v1/push", b"x" * 1000)[:10 + i * 7])

    threads = [threading.Thread(target=rude, args=(i,)) for i in range(30)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    with Wire(broker) as w:
        w.send(HEALTH)
        assert w.answer()[0] == 200


def test_a_client_that_closes_only_its_sending_half_is_answered(broker):
    body = json.dumps({"items": [{"queue": "manners-half", "payload": 1}]}).encode()
    with Wire(broker) as w:
        w.send(request("POST", "/api/v1/push", body))
        w.sock.shutdown(socket.SHUT_WR)
        assert w.answer()[0] == 201


def test_a_client_that_hangs_up_during_a_long_poll_does_no_harm(broker):
    for _ in range(5):
        with Wire(broker) as w:
            w.send(request("GET", "/api/v1/pop/queue/manners-hangup?wait=true&timeout=30000"))
            time.sleep(0.05)
    with Wire(broker) as w:
        w.send(HEALTH)
        assert w.answer()[0] == 200


def test_answers_of_one_turn_share_a_connection_with_a_long_poll(wire):
    """The health answer waits for its elder: order is kept even when the elder is slow."""
    wire.send(request("GET", "/api/v1/pop/queue/manners-order?wait=true&timeout=700") + HEALTH)
    started = time.monotonic()
    first = wire.answer()
    assert first[0] == 204
    assert time.monotonic() - started > 0.4
    assert wire.answer()[0] == 200


def test_a_request_id_is_echoed_with_timing(broker, queue):
    r = broker.push([{"queue": queue, "payload": 1}], headers={"X-Request-Id": "order-17/a.b:c"}).expect(201)
    assert r.headers["x-request-id"] == "order-17/a.b:c"
    timing = dict(re.fullmatch(r"(\w+);dur=([\d.]+)", part).groups() for part in r.headers["server-timing"].split(", "))
    assert 0 < float(timing["db"]) <= float(timing["total"]) < 10000


def test_a_request_without_id_has_one_only_when_it_fails(broker, queue):
    ok = broker.push([{"queue": queue, "payload": 1}]).expect(201)
    assert "x-request-id" not in ok.headers and "server-timing" not in ok.headers
    bad = broker.push("x").expect(400)
    assert re.fullmatch(r"[0-9a-f-]{36}", bad.headers["x-request-id"])


@pytest.mark.parametrize("odd", ["", "a b", "x" * 129, "a\"b", "ä".encode("utf-8").decode("latin-1")])
def test_odd_request_ids_are_replaced(broker, odd):
    r = broker.get("/health", headers={"X-Request-Id": odd}).expect(200)
    assert re.fullmatch(r"[0-9a-f-]{36}", r.headers["x-request-id"])


def test_failures_are_logged_with_their_request_id(make_broker, pg):
    name = pg.create_database("manners_log")
    b = make_broker(database=name)
    conn = pg.connect(database=name)
    conn.cursor().execute("drop function queen.delete_queue cascade")
    conn.close()
    r = b.request("DELETE", "/api/v1/resources/queues/x", headers={"X-Request-Id": "find-me"}).expect(500)
    assert r.headers["x-request-id"] == "find-me"
    line = next(x for x in b.log_text().splitlines() if "http.request_failed" in x)
    assert "find-me" in line and "/api/v1/resources/queues/x" in line and "500" in line


def test_head_of_a_pop_lists_the_allowed_methods(broker):
    r = broker.request("HEAD", "/api/v1/pop/queue/x").expect(405)
    assert r.headers["allow"] == "GET, OPTIONS"
