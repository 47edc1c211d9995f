"""The platform requires tokens as the broker does: JWT_ENABLED and related settings."""
import os
import socket
import subprocess

import pytest

import harness
from process import Platform
from tokens import SECRET, bearer, token

LEVELS = ["read-only", "read-write", "admin"]
# method, path, the least role that may
CALLS = [("GET", "/api/v1/tenants", "read-only"), ("GET", "/api/v1/pools", "read-only"), ("GET", "/api/v1/events/held", "read-only"),
         ("POST", "/api/v1/tenants/nobody/events", "read-write"), ("POST", "/api/v1/tenants/nobody/segments", "read-write"),
         ("POST", "/api/v1/tenants", "admin"), ("DELETE", "/api/v1/tenants/nobody", "admin")]


def platform(pg, **env):
    return Platform({"PLATFORM_PG_HOST": pg.host, "PLATFORM_PG_PORT": pg.port, "PLATFORM_PG_USER": pg.user, "PLATFORM_PG_PASSWORD": "x",
                     "PLATFORM_PG_DB": "platform_guarded", "QUEEN_URL": "http://127.0.0.1:9", "JWT_ENABLED": "true", "JWT_SECRET": SECRET, **env})


@pytest.fixture(scope="module")
def guarded(pg):
    p = platform(pg)
    harness.living.append(p)
    yield p.start()
    harness.end(p, clean_exit=True)


@pytest.mark.parametrize("method, path, least", CALLS)
def test_each_call_needs_its_role(guarded, method, path, least):
    body = {} if method == "POST" else None
    assert guarded.request(method, path, body).expect(401).json["error"]
    assert guarded.request(method, path, body, bearer(token(secret="another secret, as long as ours"))).status == 401
    for role in LEVELS:
        status = guarded.request(method, path, body, bearer(token(role=role))).status
        if LEVELS.index(role) < LEVELS.index(least):
            assert status == 403, role
        else:
            assert status not in (401, 403), role


@pytest.mark.parametrize("path", ["/health", "/live", "/ready", "/metrics", "/metrics/prometheus"])
def test_health_and_metrics_stay_public(guarded, path):
    guarded.get(path).expect(200)


def test_a_body_without_a_valid_token_is_not_kept(guarded):
    size = 15 << 20  # within the limit of a body
    before = memory(guarded, reset=True)
    with socket.create_connection(("127.0.0.1", guarded.port), timeout=60 * harness.TIME_FACTOR) as s:
        s.sendall(b"POST /api/v1/tenants/nobody/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size)
        s.sendall(b" " * size)
        assert s.recv(100).startswith(b"HTTP/1.1 401 ")
    assert memory(guarded) - before < 6 << 20


def memory(process, reset=False):
    """The largest resident size since the last reset, in bytes."""
    if reset:
        with open("/proc/%d/clear_refs" % process.process.pid, "w") as f:
            f.write("5")
    with open("/proc/%d/status" % process.process.pid) as f:
        return 1024 * next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))


def test_details_need_a_token(guarded):
    assert guarded.get("/openapi.json").status == 401
    guarded.request("GET", "/openapi.json", None, bearer(token(role="read-only"))).expect(200)
    assert set(guarded.get("/health").expect(200).json) == {"status", "database"}


def test_the_command_line_sends_its_token(guarded, tmp_path):
    def run(**env):
        return subprocess.run([harness.BIN, "tenant", "ls"], capture_output=True, text=True, timeout=20,
                              env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PLATFORM_URL": guarded.url, **env})
    assert run().returncode != 0
    assert run(QUEEN_TOKEN=token()).returncode == 0


def test_a_secret_that_is_missing_stops_the_start(pg):
    p = platform(pg, JWT_SECRET="")
    p.spawn()
    assert p.process.wait(20) == 1 and "JWT_SECRET" in p.log_text()
    p.dispose()


def test_a_limit_that_the_platform_cannot_keep_stops_the_start(pg):
    p = platform(pg, QUEEN_LIMITS="requests=100,stored=1000")
    p.spawn()
    assert p.process.wait(20) == 1 and "stored bytes at the broker" in p.log_text()
    p.dispose()
