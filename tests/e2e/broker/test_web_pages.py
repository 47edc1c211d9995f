"""Access to a server without authentication: addresses, web pages of other origins, DNS rebinding, public details."""
import json
import socket
import subprocess

import pytest

import harness
from test_auth import SECRET, token

CORS = {"access-control-allow-methods": "GET, POST, PUT, DELETE, OPTIONS",
        "access-control-allow-headers": "Content-Type, Authorization"}


def accepts(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as s:
        s.settimeout(5)
        return s.connect_ex((host, port)) == 0


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


def test_without_authentication_only_loopback_is_served(broker):
    assert accepts("127.0.0.1", broker.port)
    assert not accepts("127.0.0.2", broker.port), "an address of this machine that is not 127.0.0.1"
    assert "listens on http://127.0.0.1:%d" % broker.port in broker.log_text()
    if has_ipv6():
        assert accepts("::1", broker.port)
        assert "http://[::1]:%d" % broker.port in broker.log_text()
    assert "warnings" not in broker.get("/health").json


def test_an_open_network_address_is_reported(make_broker, tmp_path):
    b = make_broker(HOST="0.0.0.0")
    assert accepts("127.0.0.2", b.port)
    warning = b.get("/health").expect(200).json["warnings"][0]
    assert "no authentication" in warning
    log = b.log_text()
    assert "listen.unprotected" in log and "Warning: no authentication" in log
    assert "listens on http://0.0.0.0:%d" % b.port in log
    run = subprocess.run([harness.BIN, "doctor", "--json", "--url", b.url], capture_output=True, text=True, timeout=60,
                         env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert [(f["verdict"], "no authentication" in f["found"]) for f in found if f["check"] == "access"] == [("warn", True)]


def test_pages_of_other_origins_are_refused(broker, queue):
    for origin in ("http://evil.example", "null", "http://localhost:3000", "http://127.0.0.1:%d.evil.example" % broker.port):
        for method in ("GET", "OPTIONS"):
            r = broker.request(method, "/health", headers={"Origin": origin}).expect(403)
            assert "access-control-allow-origin" not in r.headers
    r = broker.request("POST", "/api/v1/push", json.dumps({"items": [{"queue": queue, "payload": 1}]}),
                       {"Origin": "http://evil.example", "Content-Type": "text/plain"}).expect(403)
    assert "QUEEN_CORS_ORIGINS" in r.json["error"]
    assert broker.take(queue, autoAck=True) == [], "the refused push changed nothing"
    broker.request("GET", "/health", headers={"Origin": "http://127.0.0.1:%d" % broker.port}).expect(200)  # our own page


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_images_and_links_of_other_pages_are_refused(broker, queue, site):
    """A browser sends no Origin with <img src=...>, and a pop is a GET."""
    broker.put(queue, [1])
    sent = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
    pop = "/api/v1/pop/queue/%s?autoAck=true" % queue
    for more in (sent, {**sent, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}):
        assert "QUEEN_CORS_ORIGINS" in broker.get(pop, headers=more).expect(403).json["error"]
    assert broker.request("HEAD", "/api/v1/resources/queues", headers=sent).status == 403
    broker.get("/", headers={**sent, "Sec-Fetch-Mode": "navigate"}).expect(200)  # a link to the dashboard
    broker.get("/live", headers=sent).expect(200)
    for own in ("none", "same-origin"):
        broker.get("/api/v1/resources/queues", headers={"Sec-Fetch-Site": own}).expect(200)
    assert len(broker.take(queue, autoAck=True)) == 1, "nothing was consumed"


@pytest.mark.parametrize("host, status", [
    ("localhost", 200), ("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("10.1.2.3:9", 200), ("app.localhost", 200),
    ("queen", 200), ("evil.example", 403), ("evil.example:6632", 403), ("127.0.0.1.evil.example", 403), ("localhost.", 403)])
def test_a_foreign_host_name_is_refused(broker, host, status):
    r = broker.request("GET", "/health", headers={"Host": host}).expect(status)
    if status == 403:
        assert "QUEEN_ALLOWED_HOSTS" in r.json["error"]


def test_origins_and_hosts_are_settings(make_broker):
    b = make_broker(QUEEN_CORS_ORIGINS="https://a.example, https://b.example", QUEEN_ALLOWED_HOSTS="queen.example")
    for origin in ("https://a.example", "https://b.example"):
        for method, status in (("GET", 200), ("OPTIONS", 204)):
            r = b.request(method, "/health", headers={"Origin": origin}).expect(status)
            assert r.headers["access-control-allow-origin"] == origin and r.headers["vary"] == "Origin"
            assert {k: r.headers.get(k) for k in CORS} == CORS
    b.request("GET", "/health", headers={"Origin": "https://c.example"}).expect(403)
    page = {"Origin": "https://a.example", "Sec-Fetch-Site": "cross-site"}
    b.get("/api/v1/resources/queues", headers=page).expect(200)
    del page["Origin"]
    b.get("/api/v1/resources/queues", headers=page).expect(403)
    b.request("GET", "/health", headers={"Host": "queen.example:1"}).expect(200)


def test_with_authentication_the_contract_applies(make_broker):
    b = make_broker(JWT_ENABLED="true", JWT_SECRET=SECRET)
    assert accepts("127.0.0.2", b.port)
    bearer = {"Authorization": "Bearer " + token(), "Origin": "http://x.example", "Host": "y.example"}
    for method, path, status in (("GET", "/api/v1/resources/queues", 200), ("OPTIONS", "/api/v1/push", 204), ("OPTIONS", "/no", 204)):
        r = b.request(method, path, headers=bearer).expect(status)
        assert r.headers["access-control-allow-origin"] == "*"
        assert {k: r.headers.get(k) for k in CORS} == CORS
        if method == "OPTIONS":
            assert r.headers["access-control-max-age"] == "86400" and r.body == b""
    b.get("/api/v1/resources/queues", headers={**bearer, "Sec-Fetch-Site": "cross-site"}).expect(200)
    assert set(b.get("/health").expect(200).json) == {"status", "database"}, "no details for strangers"
    assert b.get("/openapi.json").status == 401
    b.get("/metrics").expect(200)  # JWT_SKIP_PATHS lists it
