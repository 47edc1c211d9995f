"""HTTPS: versions, ALPN, tickets, reload of the certificate, plain HTTP on the TLS port, broken and slow handshakes."""
import hashlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time

import pytest

import harness
from cli import Cli
from harness import free_port, wait_until
from test_prometheus import value


def certificate(folder, name, days=2):
    cert, key = os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", str(days),
                    "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    return cert, key


class Tls:
    """A broker with a plain and a TLS port, and its certificate."""

    def __init__(self, make, folder, **env):
        self.cert, self.key = certificate(folder, "first")
        self.port = free_port()
        self.broker = make(QUEEN_TLS_CERT=self.cert, QUEEN_TLS_KEY=self.key, QUEEN_TLS_PORT=self.port, **env)

    def context(self, ca=None):
        return ssl.create_default_context(cafile=ca or self.cert)

    def connect(self, context=None, **kw):
        raw = socket.create_connection(("127.0.0.1", self.port), 30)
        return (context or self.context()).wrap_socket(raw, server_hostname="localhost", **kw)

    def request(self, method, path, body=None, context=None):
        c = http.client.HTTPSConnection("localhost", self.port, timeout=30, context=context or self.context())
        c.request(method, path, body)
        r = c.getresponse()
        got = r.status, r.read()
        c.close()
        return got


@pytest.fixture()
def tls(make_broker, tmp_path):
    return Tls(make_broker, str(tmp_path))


def names(connection):
    return dict(x[0] for x in connection.getpeercert()["subject"])["commonName"]


def test_versions_protocol_and_tickets(tls):
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = tls.context()
        context.minimum_version = context.maximum_version = version
        context.set_alpn_protocols(["h2", "http/1.1"])
        with tls.connect(context) as s:
            assert s.selected_alpn_protocol() == "http/1.1"
            s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in s.recv(65536)
            session = s.session
        with tls.connect(context, session=session) as s:
            assert s.session_reused
    old = tls.context()
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        tls.connect(old)
    only_h2 = tls.context()
    only_h2.set_alpn_protocols(["h2"])
    with pytest.raises((ssl.SSLError, ConnectionError)):
        tls.connect(only_h2)


def test_large_bodies_both_ways(tls, queue):
    big = os.urandom(4 << 20).hex()
    status, body = tls.request("POST", "/api/v1/push", json.dumps({"items": [{"queue": queue, "payload": big}]}))
    assert status == 201, body
    context = tls.context()
    with tls.connect(context) as s:
        s.sendall(b"GET /api/v1/pop/queue/%s?autoAck=true HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % queue.encode())
        time.sleep(0.3)  # the sockets fill, and the broker has to wait in the middle of a record
        got = bytearray()
        while True:
            piece = s.recv(1 << 16)
            if not piece:
                break
            got += piece
    assert json.loads(bytes(got).split(b"\r\n\r\n", 1)[1])["messages"][0]["data"] == big


def test_pipelined_requests_are_answered_in_order(tls):
    with tls.connect() as s:
        s.sendall(b"".join(b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % p for p in [b"live", b"no"] * 50))
        got = b""
        while got.count(b"HTTP/1.1 ") < 100:
            got += s.recv(1 << 16)
        assert re.findall(rb"HTTP/1.1 (\d+)", got) == [b"200", b"404"] * 50


def test_plain_http_on_the_tls_port_is_explained(tls):
    c = http.client.HTTPConnection("127.0.0.1", tls.port, timeout=30)
    c.request("GET", "/health")
    r = c.getresponse()
    assert r.status == 400 and "https" in json.loads(r.read())["error"]


def test_the_certificate_is_loaded_again(tls, tmp_path):
    with tls.connect() as old:
        cert, key = certificate(str(tmp_path), "second")
        with open(tls.cert, "w") as f:
            f.write("no certificate")
        tls.broker.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "tls.reload_failed" in tls.broker.log_text(), 20, "the failure in the log")
        shutil.copy(cert, tls.cert)
        shutil.copy(key, tls.key)

        def is_new():
            try:
                with tls.connect(tls.context(cert)) as s:
                    return names(s) == "second"
            except ssl.SSLError:
                return False
        wait_until(is_new, 20, "the new certificate, without a signal")
        old.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in old.recv(65536), "an existing connection goes on"


def test_metrics_show_when_the_first_certificate_of_the_chain_expires(tls, tmp_path):
    def expires_in_days():
        return round((value(tls.broker, "queen_tls_certificate_expires_timestamp_seconds") - time.time()) / 86400, 1)

    assert expires_in_days() == 2
    fresh, key = certificate(str(tmp_path), "fresh", days=90)
    shutil.copy(key, tls.key)
    shutil.copy(fresh, tls.cert)
    wait_until(lambda: expires_in_days() == 90, 20, "the new certificate")
    authority, _ = certificate(str(tmp_path), "authority", days=30)
    with open(tls.cert, "a") as f, open(authority) as a:
        f.write(a.read())
    wait_until(lambda: expires_in_days() == 30, 20, "the chain")


def test_broken_handshakes_harm_nobody(tls):
    rng = random.Random(7)
    hello = bytearray()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = tls.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello += outgoing.read()
    for i in range(150):
        data = bytearray(hello)
        kind = i % 3
        if kind == 0:
            data = data[:rng.randrange(1, len(data))]
        elif kind == 1:
            for _ in range(rng.randrange(1, 8)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        else:
            data = bytearray([22, 3, rng.randrange(4)]) + bytearray(rng.randbytes(rng.randrange(1, 300)))
        with socket.create_connection(("127.0.0.1", tls.port), 30) as s:
            s.sendall(data)
            if rng.random() < 0.5:
                s.shutdown(socket.SHUT_WR)
    with tls.connect() as s:  # garbage after the handshake
        raw = socket.socket(fileno=os.dup(s.fileno()))
        raw.sendall(rng.randbytes(500))
        raw.close()
    assert tls.request("GET", "/live")[0] == 200 and tls.broker.alive


def test_a_slow_handshake_has_a_deadline(make_broker, tmp_path):
    tls = Tls(make_broker, str(tmp_path), QUEEN_HEADER_TIMEOUT_MS=300)
    for first in (b"", b"\x16\x03\x01"):
        with socket.create_connection(("127.0.0.1", tls.port), 30) as s:
            s.sendall(first)
            assert s.recv(10) == b""


def test_with_a_certificate_the_port_speaks_tls(make_broker, tmp_path):
    cert, key = certificate(str(tmp_path), "only")
    b = make_broker(start=False, QUEEN_TLS_CERT=cert, QUEEN_TLS_KEY=key)
    b.spawn()
    wait_until(lambda: "serve.ready" in b.log_text(), 60, "the broker")
    assert "listens on https://127.0.0.1:%d" % b.port in b.log_text()

    def run(*args):
        return subprocess.run([harness.BIN, *args, "--url", "https://localhost:%d" % b.port], capture_output=True, text=True,
                              timeout=60, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert run("doctor", "--ca-file", cert).returncode == 0
    assert run("doctor").returncode != 0, "an unknown authority"


def test_the_client_distinguishes_plain_http_from_tls(tls, tmp_path):
    cli = Cli(tls.broker, tmp_path)
    r = cli("doctor", "--url", "https://127.0.0.1:%d" % tls.broker.port).expect(2)
    assert "plain HTTP" in r.err and "use http://" in r.err and "--ca-file" not in r.err, r.err
    r = cli("doctor", "--url", "http://127.0.0.1:%d" % tls.port)
    assert r.code != 0 and "use https" in r.err, (r.code, r.err)
    r = cli("doctor", "--url", "https://localhost:%d" % tls.port).expect(2)
    assert "certificate" in r.err and "--ca-file" in r.err, r.err


@pytest.mark.parametrize("env, text", [
    ({"QUEEN_TLS_CERT": "/no/such/file"}, "QUEEN_TLS_KEY"), ({"QUEEN_TLS_PORT": "1"}, "QUEEN_TLS_CERT"),
    ({"QUEEN_TLS_CERT": "/no/such/file", "QUEEN_TLS_KEY": "/no/such/key"}, "/no/such/file")])
def test_bad_settings_prevent_the_start(make_broker, env, text):
    b = make_broker(start=False, **env)
    b.spawn()
    assert b.process.wait(60) == 1 and text in b.log_text()


@pytest.mark.parametrize("how", ["ca", "fingerprint"])
def test_the_load_generator_speaks_tls(tls, how):
    """It checks the certificate, and takes its token from the environment."""
    pem = ssl.PEM_cert_to_DER_cert(open(tls.cert).read())
    pin = hashlib.sha256(pem).hexdigest()

    def bench(*args, **env):
        return subprocess.run([harness.BIN, "bench", "--url", "https://localhost:%d" % tls.port, "-d", "0.5", "-c", "4", "-C", "4",
                               "--json", "-", *args], capture_output=True, text=True, timeout=120, env={**os.environ, **env})
    good = bench("--ca-file", tls.cert) if how == "ca" else bench(QUEEN_FINGERPRINT=pin)
    assert good.returncode == 0, good.stderr
    result = json.loads([x for x in good.stdout.splitlines() if x.startswith("{")][-1])
    assert result["pushPerSecond"] > 0
    for bad in [bench(), bench("--fingerprint", "0" * 64), bench("--fingerprint", "xyz"), bench("--ca-file", "/nonexistent")]:
        assert bad.returncode in (1, 2) and "queen bench: " in bad.stderr, bad.stderr
