"""/api/v1/migration towards targets that are not allowed, or that are hostile."""
import gzip
import json
import re
import socket
import struct
import threading

import pytest

import harness
from harness import Background, wait_until
from tokens import SECRET, bearer, token

M = "/api/v1/migration/"
CALLS = [("POST", "test-connection"), ("POST", "start"), ("GET", "status"), ("POST", "validate"), ("POST", "reset")]


def message(kind, body):
    return kind + struct.pack("!i", len(body) + 4) + body


def columns(*types):
    fields = b"".join(b"c\0" + struct.pack("!ihihih", 0, 0, t, -1, -1, 0) for t in types)
    return message(b"T", struct.pack("!h", len(types)) + fields)


def row(*values):
    parts = b"".join(struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values)
    return message(b"D", struct.pack("!h", len(values)) + parts)


READY = message(b"Z", b"I")
DONE = message(b"C", b"SELECT 1\0") + READY
LOGIN = message(b"R", struct.pack("!i", 0)) + message(b"S", b"server_version\0" + b"16.2\0") + READY


class Target:
    """Speaks as much of PostgreSQL's protocol as a client needs to log in; then it answers queries with `answer`."""

    def __init__(self, answer=b"", login=LOGIN, greet=True):
        self.answer, self.login, self.greet = answer, login, greet
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.conns, self.n_queries = [], 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            self.conns.append(conn)
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        try:
            while self.greet:
                head = conn.recv(8, socket.MSG_WAITALL)
                if len(head) < 8:
                    return
                length, code = struct.unpack("!ii", head)
                if code in (80877103, 80877104):  # TLS, GSS
                    conn.sendall(b"N")
                    continue
                conn.recv(length - 8, socket.MSG_WAITALL)
                conn.sendall(self.login)
                break
            while self.greet:
                head = conn.recv(5, socket.MSG_WAITALL)
                if len(head) < 5 or head[:1] == b"X":
                    return
                conn.recv(struct.unpack("!i", head[1:])[0] - 4, socket.MSG_WAITALL)
                self.n_queries += 1
                conn.sendall(self.answer)
        except OSError:
            pass

    def close(self):
        self.listener.close()
        for c in self.conns:
            c.close()


@pytest.fixture
def hostile():
    made = []

    def make(**options):
        made.append(Target(**options))
        return made[-1]
    yield make
    for t in made:
        t.close()


@pytest.fixture(scope="module")
def pair(pg):
    """A target whose answers the test sets, and a broker that may use it."""
    target = Target()
    b = harness.begin({**pg.env(), "SIDECAR_POOL_SIZE": "4", "QUEEN_MIGRATION_TARGETS": "127.0.0.1:%d" % target.port})
    yield b, target
    harness.end(b, clean_exit=True)
    target.close()


def body(target, **more):
    return {"host": "127.0.0.1", "port": target.port, "database": "d", "user": "u", **more}


def wait_log(broker, pattern):
    return wait_until(lambda: re.search(pattern, broker.log_text()), 15, "the log shows " + pattern)


def rss_mb(broker):
    with open("/proc/%d/status" % broker.process.pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) // 1024


def test_the_endpoints_are_off_by_default(broker, hostile):
    target = hostile()
    for verb, path in CALLS:
        r = broker.request(verb, M + path, body(target) if verb == "POST" else None).expect(404)
        assert "QUEEN_MIGRATION_TARGETS" in r.json["error"]
    assert not target.conns


@pytest.mark.parametrize("targets, allowed", [
    ("127.0.0.1:PORT", True), ("127.0.0.1:PORT/d", True), ("db9 , 127.0.0.1:PORT", True), ("127.0.0.1:PORT/other", False),
    ("127.0.0.1", False), ("localhost:PORT", False), ("10.0.0.1:PORT", False)])
def test_only_listed_targets_are_contacted(make_broker, hostile, targets, allowed):
    target = hostile()
    b = make_broker(QUEEN_MIGRATION_TARGETS=targets.replace("PORT", str(target.port)))
    for path in ("test-connection", "validate", "start") if not allowed else ("test-connection",):
        r = b.post(M + path, body(target))
        assert r.status == (200 if allowed else 403), r
        event = "migration.requested" if allowed else "migration.refused"
        wait_log(b, event + r".*action=%s .*target=\"127.0.0.1:%d/d\"" % (path, target.port))
    for host in ("127.0.0.1,10.0.0.1", "/tmp", "127.0.0.1 ", "127.1"):
        b.post(M + "test-connection", {**body(target), "host": host}).expect(403)
    assert bool(target.conns) == allowed


@pytest.mark.parametrize("targets", ["h:0", "h:x", "[::1", "h/", ":5432", "h:70000"])
def test_a_malformed_list_prevents_the_start(make_broker, targets):
    b = make_broker(start=False, QUEEN_MIGRATION_TARGETS=targets).spawn()
    assert b.process.wait(harness.patience(20)) != 0
    assert "QUEEN_MIGRATION_TARGETS" in b.log_text()


def test_the_log_names_the_sender_and_keeps_its_lines_whole(make_broker, hostile):
    target = hostile()
    b = make_broker(QUEEN_MIGRATION_TARGETS="127.0.0.1:%d" % target.port, JWT_ENABLED="true", JWT_SECRET=SECRET)
    admin = bearer(token(role="admin", sub="ops@example"))
    writer = bearer(token(role="read-write", sub="app"))
    for verb, path in CALLS:
        b.request(verb, M + path, body(target) if verb == "POST" else None, headers=writer).expect(403)
    assert not target.conns
    b.request("POST", M + "test-connection", body(target), headers=admin).expect(200)
    wait_log(b, r'migration.requested.*subject=\"ops@example\"')
    b.request("POST", M + "test-connection", {**body(target), "database": 'x" subject="root\nlevel=error event=forged'},
              headers=admin).expect(200)
    assert "\nlevel=error event=forged" not in b.log_text() and 'subject="root' not in b.log_text()


@pytest.mark.parametrize("answer", [
    columns(25) + row(b"queues") + DONE, columns(25, 20, 20) + row(b"queues", b"1", b"2") + DONE,
    columns(25, 20) + row(None, b"1") + DONE, columns(25, 20) + row(b"queues", None) + DONE,
    columns(25, 17) + row(b"queues", b"\xff\x00") + DONE, columns(25, 20) + row(b"queues", b"many") + DONE,
    columns(25, 20) + row(b"n" * 200, b"1") + DONE, columns(25, 20) + row(b"a", b"1") * 5000 + DONE,
    columns(25, 20) + row(b"queues", b"9" * 40) + DONE, columns(25, 20) + row(b"\xff\xfe", b"1") + DONE,
    message(b"I", b"") + READY, READY, message(b"E", b"SERROR\0C42601\0M\xff\xfebad\0\0") + READY,
    message(b"G", b"\0\0\0"), b"\0" * 100, message(b"C", b"INSERT 0 1\0") + READY,
], ids=["one_column", "three_columns", "null_name", "null_count", "bytes", "text", "long_name", "many_rows", "overflow",
        "not_utf8", "empty_query", "nothing", "error", "copy", "garbage", "no_rows"])
def test_unexpected_answers_of_a_target_are_an_error_of_that_call(pair, answer):
    b, target = pair
    target.answer, target.login = answer, LOGIN
    r = b.post(M + "validate", body(target))
    if r.status == 200:  # an answer without rows: every table is missing there
        assert r.json["allMatch"] is False and {t["targetCount"] for t in r.json["tables"]} == {-1}
    else:
        r.expect(500)
        assert r.json["success"] is False and r.json["error"]
    assert b.post(M + "test-connection", body(target)).expect(200).json["success"] is True


@pytest.mark.parametrize("login", [
    message(b"R", struct.pack("!i", 0)) + message(b"S", b"server_version\0\xff\xfe\0") + READY,
    message(b"R", struct.pack("!i", 0)) + READY, message(b"R", b"\0"), b"\0" * 64,
    message(b"E", b"SFATAL\0M\xff\xfe\0\0")], ids=["version_not_utf8", "no_version", "short", "zeros", "error_not_utf8"])
def test_a_login_that_makes_no_sense_is_reported(pair, login):
    b, target = pair
    target.login = login
    answer = b.post(M + "test-connection", body(target)).expect(200).json
    assert answer["success"] in (True, False) and answer["message"]


def test_a_huge_row_is_refused_before_it_fills_the_memory(make_broker, hostile):
    huge = 900 << 20
    start = columns(25, 20) + b"D" + struct.pack("!ihi", 4 + 2 + 4 + huge, 2, huge)
    target = hostile(answer=start + b"x" * (64 << 20))
    b = make_broker(QUEEN_MIGRATION_TARGETS="127.0.0.1:%d" % target.port)
    before = rss_mb(b)
    r = b.post(M + "validate", body(target)).expect(500)
    assert "more data" in r.json["error"]
    assert rss_mb(b) < before + 30


def test_targets_that_never_answer_block_nobody(make_broker, hostile):
    silent = [hostile(greet=False) for _ in range(3)]
    b = make_broker(QUEEN_MIGRATION_TARGETS=",".join("127.0.0.1:%d" % t.port for t in silent))
    calls = [Background(lambda t=t: harness.Client(b.host, b.port).post(M + "test-connection", body(t), timeout=60)) for t in silent]
    refused = wait_until(lambda: next((c for c in calls if c.done), None), 30, "the third test is refused").result()
    assert refused.status == 429 and "being tested" in refused.json["error"]
    # A compressed body needs a thread of libuv, which the waiting tests must not hold.
    q = "silent-targets"
    for i in range(8):
        packed = gzip.compress(json.dumps({"items": [{"queue": q, "payload": "x" * 20000 + str(i)}]}).encode())
        b.post("/api/v1/push", packed, headers={"Content-Encoding": "gzip"}).expect(201)
    assert sum(not c.done for c in calls) == 2
    answers = [c.result(60) for c in calls]
    assert sorted(a.status for a in answers) == [200, 200, 429]
    assert all(a.json["success"] is False for a in answers if a.status == 200)


def test_a_server_that_stops_does_not_wait_for_a_silent_target(make_broker, hostile):
    target = hostile(answer=b"")
    b = make_broker(QUEEN_MIGRATION_TARGETS="127.0.0.1:%d" % target.port)
    Background(lambda: harness.Client(b.host, b.port).post(M + "validate", body(target), timeout=60))
    wait_until(lambda: target.n_queries, 30, "the query has arrived")
    assert b.terminate() == 0
    assert "stop.timeout" not in b.log_text()


def test_a_copy_to_a_target_that_accepts_nothing_ends(make_broker, hostile, pg):
    target = hostile(answer=b"")
    b = make_broker(QUEEN_MIGRATION_TARGETS="127.0.0.1:%d" % target.port, QUEEN_MIGRATION_STALL_SECONDS=1)
    for p in range(20):  # more than a pipe holds
        b.put("stalled-copy", ["x" * 20000], partition=str(p))
    b.post(M + "start", body(target)).expect(202)

    def probe():
        s = b.get(M + "status").expect(200).json
        return s if s["status"] == "error" else None
    assert "accepted nothing" in wait_until(probe, 60, "the copy fails")["error"]
    b.post(M + "reset").expect(200)
