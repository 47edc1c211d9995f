"""Clients that pipeline without reading, or send slowly: memory stays bounded and other clients are served."""
import socket
import time

import pytest

from harness import patience, wait_until
from tokens import SECRET, bearer, token

MB = 1 << 20


def peak_memory(broker):
    """Peak resident memory in bytes since reset_peak()."""
    with open("/proc/%d/status" % broker.process.pid) as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


def reset_peak(broker):
    with open("/proc/%d/clear_refs" % broker.process.pid, "w") as f:
        f.write("5")
    return peak_memory(broker)


def connect(broker):
    s = socket.create_connection((broker.host, broker.port), timeout=patience(10))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def send_what_fits(sock, data, seconds):
    """Sends until everything is sent or the server stops reading; the number of bytes."""
    sock.settimeout(0.2)
    sent, end = 0, time.monotonic() + seconds
    while sent < len(data) and time.monotonic() < end:
        try:
            sent += sock.send(data[sent:])
        except (socket.timeout, BlockingIOError):
            pass
    return sent


def test_pipelined_requests_that_are_not_read_cost_little_memory(broker, queue):
    one = b"GET /openapi.json HTTP/1.1\r\nHost: h\r\n\r\n"
    before = reset_peak(broker)
    with connect(broker) as s:
        send_what_fits(s, one * (MB // len(one)), 2)
        broker.put(queue, [1])
        assert len(broker.take(queue)) == 1, "another client is served"
        grown = peak_memory(broker) - before
    assert grown < 100 * MB, "1 MB of requests cost %d MB" % (grown // MB)


def test_all_pipelined_requests_are_answered_in_order(broker):
    n = 2000
    paths = ["/live" if i % 3 else "/no/such/%d" % i for i in range(n)]
    data = b"".join(b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % p.encode() for p in paths)
    with connect(broker) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)  # the requests that are not parsed yet count all the same
        got = b""
        while True:
            piece = s.recv(1 << 16)
            if not piece:
                break
            got += piece
    statuses = [int(part[:3]) for part in got.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [200 if i % 3 else 404 for i in range(n)]


def test_unread_answers_are_limited_in_total(make_broker, queue):
    """Each reader holds less than its own limit, all together hold more than the worker's."""
    b = make_broker(NUM_WORKERS=1, QUEEN_MAX_UNSENT_BYTES=8 * MB)
    b.put(queue, ["x" * MB] * 8, partition="p")
    sockets = [connect(b) for _ in range(10)]
    before = reset_peak(b)
    try:
        for i, s in enumerate(sockets):  # a group each, so that each is delivered the same messages
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(b"GET /api/v1/pop/queue/%s?batch=8&consumerGroup=g%d&autoAck=true&wait=true&timeout=60000 HTTP/1.1\r\nHost: h\r\n\r\n"
                      b"GET /openapi.json HTTP/1.1\r\nHost: h\r\n\r\n" % (queue.encode(), i))
        wait_until(lambda: "event=http.slow_readers_closed" in b.log_text(), 10, "slow readers are closed")
        assert b.get("/live").status == 200
        grown = peak_memory(b) - before
    finally:
        for s in sockets:
            s.close()
    assert grown < 150 * MB, "%d MB" % (grown // MB)


def chunked(*pieces):
    return b"POST /api/v1/push HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(pieces)


def first_status(sock):
    got = b""
    while b"\r\n" not in got:
        piece = sock.recv(4096)
        assert piece, "closed without an answer"
        got += piece
    return int(got.split(b" ", 2)[1])


@pytest.mark.parametrize("piece, status", [
    (b"2;" + b"x" * 20 + b"\r\n[]\r\n0\r\n\r\n", 400),  # an extension is ignored: the body is not a push
    (b"1;" + b"x" * 100000, 400),
    (b"0" * 100000, 400),
    (b"1;x\r\n \r\n" * 20000 + b"0\r\n\r\n", 400),
], ids=["short-extension", "long-extension", "leading-zeros", "many-chunks"])
def test_chunk_extensions_and_leading_zeros_are_limited(broker, piece, status):
    with connect(broker) as s:
        s.sendall(chunked(piece))
        assert first_status(s) == status


def test_a_chunked_body_of_many_small_chunks_is_accepted(broker, queue):
    body = b'{"items":[{"queue":"%s","payload":"%s"}]}' % (queue.encode(), b"y" * 20000)
    with connect(broker) as s:
        s.sendall(chunked(*(b"001;a=b\r\n%c\r\n" % c for c in body), b"0\r\n\r\n"))
        assert first_status(s) == 201
    assert len(broker.take(queue)) == 1


def push_head(length, *lines):
    return ("\r\n".join(["POST /api/v1/push HTTP/1.1", "Host: h", "Content-Length: %d" % length, *lines]) + "\r\n\r\n").encode()


def test_bodies_that_are_announced_but_not_sent_block_nobody(make_broker, queue):
    b = make_broker(NUM_WORKERS=1, QUEEN_MAX_INFLIGHT_BYTES=8 * MB)
    sockets = [connect(b) for _ in range(8)]
    try:
        for s in sockets:
            s.sendall(push_head(MB) + b"{")
        for i in range(20):
            assert b.push([{"queue": queue, "payload": "x" * 1000}]).status == 201
    finally:
        for s in sockets:
            s.close()


@pytest.mark.parametrize("before", [b"", b"GET /api/v1/pop/queue/none?wait=true&timeout=60000 HTTP/1.1\r\nHost: h\r\n\r\n"],
                         ids=["alone", "behind-a-parked-pop"])
def test_a_body_that_arrives_too_slowly_is_given_up(make_broker, before):
    b = make_broker(NUM_WORKERS=1, QUEEN_HEADER_TIMEOUT_MS=400)
    with connect(b) as s:
        s.sendall(before + push_head(MB))
        def trickle():
            try:
                s.send(b" ")
            except OSError:
                return True
            return False
        wait_until(lambda: trickle() or "1" == refused(b), 10, "the slow body is refused", 0.1)


def refused(broker):
    text = broker.get("/metrics/prometheus").text
    return next((line.split()[-1] for line in text.splitlines() if line.startswith("queen_http_refused_total")), "0")


def test_a_body_without_a_valid_token_is_not_kept(make_broker):
    b = make_broker(NUM_WORKERS=1, JWT_ENABLED="true", JWT_SECRET="s" * 32)
    before = reset_peak(b)
    with connect(b) as s:
        s.sendall(push_head(60 * MB) + b" " * (60 * MB))
        assert first_status(s) == 401
    assert peak_memory(b) - before < 20 * MB


def is_open(sock):
    sock.settimeout(patience(10))
    try:
        sock.sendall(b"GET /live HTTP/1.1\r\nHost: h\r\n\r\n")
        return sock.recv(100) != b""
    except OSError:
        return False


def test_one_address_cannot_take_all_connections(make_broker):
    b = make_broker(QUEEN_MAX_CONNECTIONS_PER_ADDRESS=10)
    crowd = [connect(b) for _ in range(30)]
    try:
        assert sum(is_open(s) for s in crowd) <= 10
        other = socket.create_connection((b.host, b.port), patience(10), ("127.0.0.2", 0))
        assert is_open(other), "another address is served"
        other.close()
    finally:
        for s in crowd:
            s.close()

    def again():
        with connect(b) as s:
            return is_open(s)
    wait_until(again, 10, "closed connections make room")
    wait_until(lambda: "queen_http_connections_crowded_total" in b.get("/metrics/prometheus").text, 10, "counted")


def test_refused_tokens_are_limited_per_address(make_broker):
    b = make_broker(JWT_ENABLED="true", JWT_SECRET=SECRET, QUEEN_MAX_AUTH_FAILURES=20)
    statuses = [b.get("/api/v1/resources/queues", headers=bearer("a.b.c")).status for _ in range(200)]
    assert statuses.count(401) >= 20 and statuses.count(429) > 0 and set(statuses) == {401, 429}
    assert b.get("/live").status == 200, "public routes are served"
    with socket.create_connection((b.host, b.port), patience(10), ("127.0.0.2", 0)) as other:
        other.sendall(b"GET /api/v1/resources/queues HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n\r\n" % token(role="admin").encode())
        assert b" 200 " in other.recv(200)
    wait_until(lambda: b.get("/api/v1/resources/queues", headers=bearer(token(role="admin"))).status == 200, 30, "the ten seconds are over")


def test_a_body_has_a_deadline(make_broker):
    b = make_broker(QUEEN_BODY_TIMEOUT_MS=1500)
    with connect(b) as s:
        s.sendall(b"POST /api/v1/push HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n")
        s.settimeout(0.05)
        answer = b""
        deadline = time.monotonic() + patience(30)
        while not answer and time.monotonic() < deadline:  # fast enough for the minimum rate
            try:
                s.sendall(b" " * 2000)
                answer = s.recv(200)
            except socket.timeout:
                pass
        assert b" 408 " in answer
