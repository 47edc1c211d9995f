"""Client certificates and their roles; the self-signed certificate and the client's --fingerprint."""
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess

import pytest

import harness
from cli import Cli
from harness import free_port, wait_until
from tokens import SECRET, token


def run(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


class Authority:
    def __init__(self, folder, name):
        self.folder, self.cert, self.key = folder, os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key")
        run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
            "-addext", "keyUsage=keyCertSign,digitalSignature", "-keyout", self.key, "-out", self.cert)

    def issue(self, name, san="DNS:localhost,IP:127.0.0.1", days="2", usage="clientAuth,serverAuth"):
        at = os.path.join(self.folder, "%s-%s" % (os.path.basename(self.cert)[:-4], re.sub(r"\W", "_", name)))
        run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name, "-keyout", at + ".key", "-out", at + ".csr")
        with open(at + ".ext", "w") as f:
            f.write("subjectAltName=%s\nextendedKeyUsage=%s\n" % (san, usage))
        run("x509", "-req", "-in", at + ".csr", "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial", "-days", days, "-extfile", at + ".ext",
            "-out", at + ".pem")
        return at + ".pem", at + ".key"


class Server:
    def __init__(self, make, folder, roles="ops=admin, app.example=read-write, spiffe://x/reader=read-only", **env):
        self.ca, self.other = Authority(folder, "ca"), Authority(folder, "other")
        self.cert, self.key = self.ca.issue("server")
        self.trusted = os.path.join(folder, "trusted.pem")
        shutil.copy(self.ca.cert, self.trusted)
        self.port = free_port()
        self.broker = make(start=False, QUEEN_TLS_CERT=self.cert, QUEEN_TLS_KEY=self.key, QUEEN_TLS_PORT=self.port, QUEEN_TLS_CLIENT_CA=self.trusted,
                           QUEEN_TLS_CLIENT_ROLES=roles, HOST="127.0.0.1", **env)
        self.broker.start()

    def context(self, pair=None):
        c = ssl.create_default_context(cafile=self.ca.cert)
        if pair:
            c.load_cert_chain(*pair)
        return c

    def ask(self, pair=None, method="GET", path="/api/v1/resources/queues", body=None, headers=None, context=None):
        c = http.client.HTTPSConnection("localhost", self.port, timeout=30, context=context or self.context(pair))
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return r.status, r.read()
        finally:
            c.close()


@pytest.fixture
def server(make_broker, tmp_path):
    return Server(make_broker, str(tmp_path))


def test_certificates_have_the_roles_of_the_rules(server, queue):
    push = dict(method="POST", path="/api/v1/push", body=json.dumps({"items": [{"queue": queue, "payload": 1}]}))
    ops, app = server.ca.issue("ops"), server.ca.issue("client-7", "DNS:nothing.example,DNS:app.example")
    reader, stranger = server.ca.issue("r", "URI:spiffe://x/reader"), server.ca.issue("stranger")
    assert server.ask()[0] == 401
    assert server.ask(headers={"Authorization": "Bearer x"})[0] == 401
    assert [server.ask(p, **push)[0] for p in (ops, app, reader, stranger)] == [201, 201, 403, 403]
    assert [server.ask(p)[0] for p in (ops, app, reader, stranger)] == [200, 200, 200, 403]
    delete = dict(method="DELETE", path="/api/v1/resources/queues/" + queue)
    assert [server.ask(p, **delete)[0] for p in (app, ops)] == [403, 200]
    # There are no certificates on the plain port.
    assert server.broker.get("/api/v1/resources/queues").status == 401
    assert server.ask(path="/live")[0] == 200


def test_a_certificate_does_not_count_for_other_web_pages(server, queue):
    """A browser adds it to the requests of any page, by itself."""
    ops = server.ca.issue("ops")
    push = dict(method="POST", path="/api/v1/push", body=json.dumps({"items": [{"queue": queue, "payload": 1}]}))
    for page in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                 {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}):
        status, text = server.ask(ops, headers={"Content-Type": "text/plain", **page}, **push)
        assert status == 401 and b"QUEEN_CORS_ORIGINS" in text, page
        assert server.ask(headers=page)[0] == 401
    own = {"Origin": "https://localhost:%d" % server.port, "Sec-Fetch-Site": "same-origin"}
    assert server.ask(ops, headers=own)[0] == 200
    assert queue not in server.ask(ops)[1].decode(), "no push was stored"


@pytest.mark.parametrize("make", [
    lambda s: s.other.issue("ops"), lambda s: s.ca.issue("ops", usage="serverAuth"),
    lambda s: (s.other.cert, s.other.key)], ids=["other authority", "server certificate", "authority itself"])
def test_certificates_that_are_not_valid_are_refused(server, make):
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
        server.ask(make(server))


def test_a_resumed_session_keeps_the_identity(server):
    context = server.context(server.ca.issue("ops"))
    session, reused = None, []
    for _ in range(3):
        raw = socket.create_connection(("127.0.0.1", server.port), 30)
        with context.wrap_socket(raw, server_hostname="localhost", session=session) as s:
            s.sendall(b"GET /api/v1/resources/queues HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in s.recv(2000)
            session = s.session
            reused.append(s.session_reused)
    assert reused[1:] == [True, True]


def test_tokens_and_certificates_work_side_by_side(make_broker, tmp_path):
    server = Server(make_broker, str(tmp_path), roles="ops=admin", JWT_ENABLED="true", JWT_SECRET=SECRET)
    ops, app = server.ca.issue("ops"), server.ca.issue("app")
    assert server.ask(ops)[0] == 200
    assert server.ask(app)[0] == 403
    assert server.ask(app, headers={"Authorization": "Bearer " + token(role="read-only")})[0] == 200
    assert server.ask(headers={"Authorization": "Bearer " + token(role="read-only")})[0] == 200
    assert server.ask(ops, headers={"Authorization": "Bearer wrong"})[0] == 401, "a token that is sent counts"


def test_certificates_can_be_required_and_the_authorities_change(make_broker, tmp_path):
    server = Server(make_broker, str(tmp_path), roles="*=read-only", QUEEN_TLS_CLIENT_REQUIRED="true")
    first, second = server.ca.issue("a"), server.other.issue("b")
    assert server.ask(first)[0] == 200
    for pair in (None, second):
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            server.ask(pair)
    shutil.copy(server.other.cert, server.trusted + ".new")
    os.rename(server.trusted + ".new", server.trusted)

    def accepted():
        try:
            return server.ask(second)[0] == 200
        except (ssl.SSLError, ConnectionError, http.client.HTTPException):
            return False
    wait_until(accepted, 20, "the new authority is trusted")
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
        server.ask(first)


@pytest.mark.parametrize("env, text", [
    ({"QUEEN_TLS_CLIENT_CA": "/nowhere"}, "QUEEN_TLS_CLIENT_CA requires"), ({"QUEEN_TLS_CLIENT_ROLES": "a=admin"}, "requires QUEEN_TLS_CLIENT_CA"),
    ({"QUEEN_TLS_CLIENT_REQUIRED": "true"}, "requires QUEEN_TLS_CLIENT_CA"), ({"QUEEN_TLS_CLIENT_ROLES": "a=boss"}, "is not name=role"),
    ({"QUEEN_TLS_CLIENT_ROLES": "=admin"}, "is not name=role")])
def test_bad_settings_prevent_the_start(make_broker, env, text):
    b = make_broker(start=False, **env).spawn()
    assert b.process.wait(harness.patience(20)) != 0
    assert text in b.log_text()


def test_a_self_signed_certificate_is_accepted_by_its_fingerprint(make_broker, tmp_path, queue):
    folder = str(tmp_path / "data")
    b = make_broker(start=False, args=["--tls-self-signed"], QUEEN_DATA_DIR=folder, FILE_BUFFER_DIR=str(tmp_path / "buffers"), QUEEN_TLS_PORT=free_port())
    b.start()
    fingerprint = re.search(r"tls.self_signed.*fingerprint=([0-9A-F:]{95})", b.log_text()).group(1)
    assert os.stat(os.path.join(folder, "tls-self-signed.key")).st_mode & 0o777 == 0o600
    url = "https://localhost:%s" % b.env["QUEEN_TLS_PORT"]
    cli = Cli(b, tmp_path)

    def push(*args):
        return cli("push", queue, "1", "--url", url, *args)
    assert push("--fingerprint", fingerprint).code == 0
    assert push("--fingerprint", fingerprint.replace(":", "").lower()).code == 0
    wrong = push("--fingerprint", "AA" * 32)
    assert wrong.code != 0 and "another fingerprint" in wrong.err
    refused = push()
    assert refused.code != 0 and "--fingerprint" in refused.err
    bad = push("--fingerprint", "12:34")
    assert bad.code != 0 and "64 hexadecimal digits" in bad.err
    assert len(b.take(queue, batch=10)) == 2
    b.terminate()
    b.start()
    assert fingerprint in b.log_text().rsplit("tls.self_signed", 1)[1], "it is kept"
