"""TLS of the platform: its own port, client certificates, and its connections to the broker."""
import hashlib
import http.client
import os
import signal
import ssl
import subprocess

import pytest

import harness
from harness import wait_until


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


def certificate(folder, name, *extra):
    cert, key = os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", *extra, "-keyout", key, "-out", cert)
    return cert, key


def fingerprint(cert):
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(open(cert).read())).hexdigest()


def ask(port, context, path="/api/v1/tenants", headers=None):
    c = http.client.HTTPSConnection("localhost", port, timeout=30, context=context)
    try:
        c.request("GET", path, headers=headers or {})
        return c.getresponse().status
    finally:
        c.close()


def test_the_port_speaks_tls_and_maps_client_certificates(make_platform, pg, broker, tmp_path):
    folder = str(tmp_path)
    cert, key = certificate(folder, "server")
    ops, reader, stranger = (certificate(folder, name) for name in ("ops", "reader", "stranger"))
    trusted = os.path.join(folder, "trusted.pem")
    with open(trusted, "w") as f:
        f.write("".join(open(pair[0]).read() for pair in (ops, reader)))
    port = harness.free_port()
    p = make_platform(QUEEN_TLS_CERT=cert, QUEEN_TLS_KEY=key, QUEEN_TLS_PORT=port, QUEEN_TLS_CLIENT_CA=trusted,
                      QUEEN_TLS_CLIENT_ROLES="ops=admin,reader=read-only")

    def context(pair=None, ca=cert):
        c = ssl.create_default_context(cafile=ca)
        if pair:
            c.load_cert_chain(*pair)
        return c
    assert ask(port, context()) == 401
    assert ask(port, context(ops)) == 200
    assert ask(port, context(ops), "/api/v1/audit") == 200
    assert ask(port, context(reader)) == 200
    assert ask(port, context(reader), "/api/v1/audit") == 403
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        ask(port, context(stranger))
    assert ask(port, context(ops), headers={"Authorization": "Bearer nonsense"}) == 401, "a token is used instead of the certificate"
    # SIGHUP loads another certificate.
    other = certificate(folder, "other")
    for source, target in zip(other, (cert, key)):
        with open(source) as a, open(target, "w") as b:
            b.write(a.read())
    p.process.send_signal(signal.SIGHUP)
    wait_until(lambda: fingerprint(other[0]) == hashlib.sha256(
        ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("localhost", port)))).hexdigest(), 30, "the new certificate")


@pytest.mark.parametrize("how", ["authority", "fingerprint", "neither"])
def test_an_https_broker_is_verified(make_platform, pg, tmp_path, how):
    cert, key = certificate(str(tmp_path), "broker")
    b = harness.Broker({**pg.env(pg.create_database("tls_" + how)), "QUEEN_TLS_CERT": cert, "QUEEN_TLS_KEY": key, "QUEEN_TLS_PORT": "0"})
    port = harness.free_port()
    b.env["QUEEN_TLS_PORT"] = str(port)
    harness.living.append(b)
    b.start()
    try:
        env = {"authority": {"QUEEN_CA_FILE": cert}, "fingerprint": {"QUEEN_FINGERPRINT": fingerprint(cert)}, "neither": {}}[how]
        p = make_platform(QUEEN_URL="https://localhost:%d" % port, **env)
        if how == "neither":
            wait_until(lambda: "TLS" in p.log_text(), 60, "the refusal is logged")
            assert b.get("/api/v1/resources/queues").expect(200).json["queues"] == []
        else:
            wait_until(lambda: any(q["name"] == "platform.events" for q in b.get("/api/v1/resources/queues").expect(200).json["queues"]), 60,
                       "the platform has configured its queues")
    finally:
        harness.end(b)


def test_web_pages_of_other_origins_are_refused(make_platform, pg, broker):
    p = make_platform()
    assert p.get("/api/v1/tenants", headers={"Origin": "https://evil.example"}).status == 403
    assert p.get("/api/v1/tenants", headers={"Host": "evil.example"}).status in (403, 421)
    assert p.get("/api/v1/tenants").status == 200
