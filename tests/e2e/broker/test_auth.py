"""Tokens: roles and routes, valid and invalid tokens, and the producer recorded on messages."""
import base64
import hashlib
import hmac
import http.server
import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time
import types

import pytest

import contract

import harness
from harness import TIME_FACTOR, Client, free_port, wait_until
from tokens import SECRET, b64, bearer, token

LEVELS = ["read-only", "read-write", "admin"]


class Pair:
    """A key pair made and used by the openssl program."""

    def __init__(self, folder, kind):
        self.kind, self.path = kind, os.path.join(str(folder), kind + os.urandom(4).hex())
        algorithm = {"EdDSA": ["-algorithm", "ED25519"], "ES256": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]}.get(
            kind, ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])
        self._run("genpkey", *algorithm, "-out", self.path)
        self.pem = self._run("pkey", "-in", self.path, "-pubout").decode()

    def _run(self, *args, **kw):
        return subprocess.run(["openssl", *args], check=True, capture_output=True, **kw).stdout

    def sign(self, data):
        if self.kind == "RS256":
            return self._run("dgst", "-sha256", "-sign", self.path, input=data)
        if self.kind == "PS256":
            return self._run("dgst", "-sha256", "-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest", "-sign", self.path,
                             input=data)
        if self.kind == "ES256":
            der = self._run("dgst", "-sha256", "-sign", self.path, input=data)
            r = der[4:4 + der[3]]
            s = der[6 + der[3]:]
            return b"".join(x.lstrip(b"\0").rjust(32, b"\0") for x in (r, s))
        with open(self.path + ".in", "wb") as f:
            f.write(data)
        return self._run("pkeyutl", "-sign", "-rawin", "-inkey", self.path, "-in", self.path + ".in")

    def token(self, kid=None, claims=None, **more):
        header = {"alg": self.kind}
        if kid:
            header["kid"] = kid
        return token(claims, header=header, sign=self.sign, **more)

    def jwk(self, kid):
        der = self._run("pkey", "-in", self.path, "-pubout", "-outform", "DER")
        if self.kind == "EdDSA":
            return {"kty": "OKP", "crv": "Ed25519", "x": b64(der[-32:]), "kid": kid, "use": "sig"}
        if self.kind == "ES256":
            return {"kty": "EC", "crv": "P-256", "x": b64(der[-64:-32]), "y": b64(der[-32:]), "kid": kid, "use": "sig", "alg": "ES256"}
        n = self._run("rsa", "-in", self.path, "-noout", "-modulus").decode().strip().split("=")[1]
        return {"kty": "RSA", "n": b64(bytes.fromhex(n)), "e": "AQAB", "kid": kid, "alg": self.kind}


@pytest.fixture(scope="module")
def rsa(tmp_path_factory):
    return Pair(tmp_path_factory.mktemp("rsa"), "RS256")


@pytest.fixture(scope="module")
def ed(tmp_path_factory):
    return Pair(tmp_path_factory.mktemp("ed"), "EdDSA")


@pytest.fixture(scope="module")
def guarded(pg, broker):
    b = harness.begin({**pg.env(), "SIDECAR_POOL_SIZE": "4", "JWT_ENABLED": "true", "JWT_SECRET": SECRET})
    yield b
    harness.end(b, clean_exit=True)


class Keys:
    """A server of published keys; tls: the files of its certificate and key."""

    def __init__(self, tls=None):
        self.keys, self.n, self.fails, self.delay = [], 0, False, 0
        keys = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                keys.n += 1
                time.sleep(keys.delay)
                body = json.dumps({"keys": keys.keys}).encode()
                self.send_response(500 if keys.fails else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
        self.url = "http://127.0.0.1:%d/keys" % self.server.server_address[1]
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.url = self.url.replace("http://127.0.0.1", "https://localhost")
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def published():
    keys = Keys()
    yield keys
    keys.close()


def knock(broker, t, path="/api/v1/pop/queue/none", method="GET"):
    """Status of a request that does nothing, with this token."""
    return broker.request(method, path, headers=bearer(t) if t else None)


# --- levels ---------------------------------------------------------------------------------------------------------

def routes():
    """(method, path, access) of every endpoint: as in docs/reference/openapi, which the unit test api/openapi holds to the compiled table."""
    return [(verb.upper(), re.sub(r"{(\w+)}", r":\1", path), operation["x-access"].upper().replace("-", "_"))
            for path, item in contract.load()["paths"].items() for verb, operation in item.items()]


def spec_levels():
    """The access column of the contract for what it lists: (method, path) -> access."""
    return {
        ("POST", "/api/v1/push"): "READ_WRITE", ("POST", "/api/v1/configure"): "READ_WRITE",
        ("GET", "/api/v1/pop"): "READ_WRITE", ("GET", "/api/v1/pop/queue/:queue"): "READ_WRITE",
        ("GET", "/api/v1/pop/queue/:queue/partition/:partition"): "READ_WRITE",
        ("POST", "/api/v1/ack"): "READ_WRITE", ("POST", "/api/v1/ack/batch"): "READ_WRITE",
        ("POST", "/api/v1/transaction"): "READ_WRITE", ("POST", "/api/v1/lease/:leaseId/extend"): "READ_WRITE",
        ("DELETE", "/api/v1/resources/queues/:queue"): "ADMIN",
        ("DELETE", "/api/v1/messages/:partitionId/:transactionId"): "READ_WRITE",
        ("POST", "/api/v1/traces"): "READ_WRITE", ("POST", "/api/v1/stats/refresh"): "ADMIN",
        ("DELETE", "/api/v1/consumer-groups/:group"): "ADMIN",
        ("POST", "/api/v1/consumer-groups/:group/subscription"): "READ_WRITE",
        ("DELETE", "/api/v1/consumer-groups/:group/queues/:queue"): "ADMIN",
        ("POST", "/api/v1/consumer-groups/:group/queues/:queue/seek"): "READ_WRITE",
        ("POST", "/api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek"): "READ_WRITE",
        ("POST", "/streams/v1/queries"): "READ_WRITE", ("POST", "/streams/v1/cycle"): "READ_WRITE",
        ("POST", "/streams/v1/state/get"): "READ_ONLY",
        ("GET", "/health"): "PUBLIC", ("GET", "/metrics"): "PUBLIC", ("GET", "/metrics/prometheus"): "PUBLIC",
    }


def expected_access(verb, path):
    listed = spec_levels().get((verb, path))
    if listed:
        return listed
    if path.startswith(("/api/v1/system/", "/api/v1/migration/", "/internal/")):
        return "ADMIN"
    if verb == "GET" and path.startswith(("/api/v1/resources/", "/api/v1/messages", "/api/v1/dlq", "/api/v1/traces/",
                                          "/api/v1/consumer-groups", "/api/v1/status", "/api/v1/analytics/")):
        return "READ_ONLY"
    return None  # our own endpoint: its file has the level


def test_every_route_has_the_level_of_the_contract():
    assert len(routes()) >= 14
    wrong = [(v, p, a, expected_access(v, p)) for v, p, a in routes() if expected_access(v, p) not in (None, a)]
    assert not wrong


def test_every_route_accepts_its_role_and_rejects_weaker_ones(guarded):
    levels = {None: 0, "nothing": 0, "read-only": 1, "read-write": 2, "admin": 3}
    needs = {"PUBLIC": 0, "READ_ONLY": 1, "READ_WRITE": 2, "ADMIN": 3}
    tokens = {r: token(role=r) for r in levels if r}
    for verb, path, access in routes():
        # A queue and ids that do not exist: nothing is changed by those that get in.
        path = re.sub(r":\w+", "00000000-0000-4000-8000-000000000000", path)
        for role, level in levels.items():
            if level >= needs[access] and (access == "ADMIN" or "migration" in path):
                continue  # what gets in is tested where it is at home
            r = guarded.request(verb, path, body="{" if verb in ("POST", "PUT") else None,
                                headers=bearer(tokens[role]) if role else {}, timeout=40)
            where = "%s %s as %s: %r" % (verb, path, role, r)
            if level >= needs[access]:
                assert r.status not in (401, 403), where
            elif role is None:
                assert r.status == 401 and r.json["error"], where
                assert r.headers["www-authenticate"] == "Bearer", where
            else:
                assert r.status == 403 and r.json["error"], where
                assert 'error="insufficient_scope"' in r.headers["www-authenticate"], where


def test_an_admin_may_delete_a_queue(guarded, queue):
    guarded.push([{"queue": queue, "payload": 1}], headers=bearer(token())).expect(201)
    knock(guarded, token(role="read-write"), "/api/v1/resources/queues/" + queue, "DELETE").expect(403)
    assert knock(guarded, token(), "/api/v1/resources/queues/" + queue, "DELETE").expect(200).json["deleted"]


def test_a_preflight_and_unknown_paths_need_no_token(guarded):
    guarded.request("OPTIONS", "/api/v1/push").expect(204)
    guarded.get("/nowhere").expect(404)
    guarded.request("PATCH", "/api/v1/push").expect(405)


def test_a_head_request_needs_a_token_too(guarded):
    assert guarded.request("HEAD", "/api/v1/pop/queue/x").status == 401


def test_roles_of_both_claims_count(guarded):
    assert knock(guarded, token({"roles": ["x", "read-write"]})).status == 204
    assert knock(guarded, token({"role": "read-only", "roles": ["read-write"]})).status == 204
    assert knock(guarded, token({"role": "other", "roles": []})).status == 403
    assert knock(guarded, token({"sub": "nobody"})).status == 403


# --- tokens ---------------------------------------------------------------------------------------------------------

def test_the_word_bearer_is_of_any_case_or_missing(guarded):
    t = token()
    for value in ("Bearer " + t, "bearer " + t, "BEARER   " + t + " ", t):
        assert guarded.get("/api/v1/pop/queue/none", headers={"Authorization": value}).status == 204, value
    for value in ("", "Bearer", "Bearer ", "Basic " + t, "Bearer x " + t, "Bearer " + t + "." + t):
        r = guarded.get("/api/v1/pop/queue/none", headers={"Authorization": value})
        assert r.status == 401 and r.json["error"] and r.headers["www-authenticate"].startswith("Bearer"), value


def test_times_are_checked_with_their_skew(guarded):
    now = int(time.time())
    good = [{"exp": now - 20}, {"exp": now + 1.5}, {"nbf": now + 20}, {"iat": now + 20}, {}]
    bad = [{"exp": now - 40}, {"exp": 0}, {"exp": str(now + 100)}, {"exp": None}, {"nbf": now + 50}, {"iat": now + 50}]
    for claims in good:
        assert knock(guarded, token({"role": "admin", **claims})).status == 204, claims
    for claims in bad:
        assert knock(guarded, token({"role": "admin", **claims})).status == 401, claims


def test_a_remembered_token_expires(make_broker):
    b = make_broker(JWT_ENABLED="true", JWT_SECRET=SECRET, JWT_CLOCK_SKEW=0)
    t = token(exp=int(time.time()) + 3)
    assert knock(b, t).status == 204 and knock(b, t).status == 204
    r = wait_until(lambda: (lambda r: r if r.status == 401 else None)(knock(b, t)), 8, "expired", 0.1)
    assert "expired" in r.json["error"]


def test_wrong_signatures_and_broken_tokens(guarded):
    t = token()
    head, body, signature = t.split(".")
    forged = b64(json.dumps({"role": "admin", "sub": "mallory"}).encode())
    assert knock(guarded, t).status == 204
    wrong = [token(secret="another"), "%s.%s.%s" % (head, forged, signature), head + "." + body + ".", head + "." + body,
             t[:-2], t + "A", "x", "..", "%s.%s.%s" % (head, body, signature + "=="), t.replace(".", " ")]
    for text in wrong:
        r = knock(guarded, text)
        assert r.status == 401 and 'error="invalid_token"' in r.headers["www-authenticate"], text
    assert knock(guarded, t).status == 204


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "", None, "HS384", "HS512", "RS256", "RS512", "ES256", "EdDSA", "hs256"])
def test_another_algorithm_than_the_configured_is_refused(guarded, alg):
    assert knock(guarded, token(header={"alg": alg})).status == 401
    assert knock(guarded, token(header={"alg": alg}, sign=lambda data: b"")).status == 401


def test_critical_extensions_are_refused(guarded):
    assert knock(guarded, token(header={"crit": ["b64"], "b64": False})).status == 401


def test_issuer_and_audience(make_broker):
    b = make_broker(JWT_ENABLED="true", JWT_SECRET=SECRET, JWT_ISSUER="https://id", JWT_AUDIENCE="queen")
    assert knock(b, token(iss="https://id", aud="queen")).status == 204
    assert knock(b, token(iss="https://id", aud=["x", "queen"])).status == 204
    for more in ({}, {"iss": "https://id"}, {"aud": "queen"}, {"iss": "https://id/", "aud": "queen"},
                 {"iss": "https://id", "aud": ["x"]}):
        assert knock(b, token(**more)).status == 401, more


def test_names_of_roles_claims_and_skipped_paths_are_settings(make_broker):
    b = make_broker(JWT_ENABLED="true", JWT_SECRET=SECRET, JWT_ROLES_CLAIM="grp", JWT_ROLES_ARRAY_CLAIM="grps",
                    JWT_ROLE_READ_WRITE="w", JWT_SKIP_PATHS="/health, /api/v1/pop/queue/open/,/api/v1/ack")
    assert knock(b, token({"grp": "w"})).status == 204
    assert knock(b, token({"grps": ["w"]})).status == 204
    assert knock(b, token({"role": "admin"})).status == 403
    assert knock(b, None, "/api/v1/pop/queue/open/partition/x").status == 204
    assert knock(b, None, "/api/v1/pop/queue/open").status == 401, "not below the prefix"
    assert b.post("/api/v1/ack", "{").status == 400
    assert b.post("/api/v1/ack/batch", "{").status == 401, "an exact path covers nothing else"
    b.get("/health").expect(200)
    for path in ("/metrics", "/metrics/prometheus", "/openapi.json"):
        assert b.get(path).status == 401, "public only if JWT_SKIP_PATHS lists it"
        assert knock(b, token({"grp": "w"}), path).status == 200


# --- keys -----------------------------------------------------------------------------------------------------------

def test_rs256_with_a_static_key(make_broker, rsa, ed):
    b = make_broker(JWT_ENABLED="true", JWT_ALGORITHM="RS256", JWT_PUBLIC_KEY=rsa.pem.replace("\n", "\\n"),
                    JWT_SECRET=SECRET)
    assert knock(b, rsa.token()).status == 204
    assert knock(b, rsa.token(kid="whatever")).status == 204
    assert knock(b, ed.token()).status == 401
    assert knock(b, token()).status == 401, "HS256 although RS256 is asked for"
    for secret in (rsa.pem, rsa.pem.strip(), rsa.pem.replace("\n", "\\n")):
        assert knock(b, token(secret=secret)).status == 401, "the public key as a secret"
        assert knock(b, token(secret=secret, header={"alg": "RS256"})).status == 401


def test_eddsa_with_a_static_key(make_broker, rsa, ed):
    b = make_broker(JWT_ENABLED="true", JWT_ALGORITHM="EdDSA", JWT_PUBLIC_KEY=ed.pem)
    t = ed.token()
    assert knock(b, t).status == 204
    assert knock(b, t[:-4] + "AAAA").status == 401
    assert knock(b, rsa.token()).status == 401 and knock(b, token(secret=ed.pem)).status == 401


def test_auto_decides_by_the_token_among_the_configured_keys(make_broker, rsa, ed):
    b = make_broker(JWT_ENABLED="true", JWT_ALGORITHM="auto", JWT_PUBLIC_KEY=rsa.pem, JWT_SECRET=SECRET)
    assert knock(b, rsa.token()).status == 204 and knock(b, token()).status == 204
    assert knock(b, ed.token()).status == 401
    assert knock(b, token(secret=rsa.pem)).status == 401
    assert knock(b, token(header={"alg": "none"}, sign=lambda data: b"")).status == 401
    only = make_broker(JWT_ENABLED="true", JWT_ALGORITHM="auto", JWT_PUBLIC_KEY=rsa.pem)
    assert knock(only, rsa.token()).status == 204
    assert knock(only, token(secret="")).status == 401 and knock(only, token(secret=rsa.pem)).status == 401


@pytest.mark.parametrize("kind", ["ES256", "PS256"])
def test_other_algorithms_with_static_and_published_keys(make_broker, published, tmp_path, rsa, ed, kind):
    key = Pair(tmp_path, kind)
    b = make_broker(JWT_ENABLED="true", JWT_ALGORITHM=kind, JWT_PUBLIC_KEY_FILE=write(tmp_path / "key.pem", key.pem))
    good = key.token()
    assert knock(b, good).status == 204
    assert knock(b, good[:-4] + "AAAA").status == 401
    for other in (rsa.token(), ed.token(), token(secret=key.pem), token(header={"alg": kind}, sign=lambda data: b"\0" * 64)):
        assert knock(b, other).status == 401
    published.keys = [key.jwk("k1"), rsa.jwk("r1")]
    b = make_broker(JWT_ENABLED="true", JWT_ALGORITHM="auto", JWT_JWKS_URL=published.url)
    assert knock(b, key.token("k1")).status == 204 and knock(b, rsa.token("r1")).status == 204
    # The key of one algorithm does not serve for another, with any header.
    for kid, header in (("k1", "RS256"), ("r1", kind)):
        assert knock(b, token(header={"alg": header, "kid": kid}, sign=key.sign)).status == 401


def write(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_revoked_token_is_refused(make_broker, tmp_path):
    revoked = tmp_path / "revoked"
    write(revoked, "# none yet\n")
    brokers = [make_broker(JWT_ENABLED="true", JWT_SECRET=SECRET, JWT_REVOKED_FILE=str(revoked)) for _ in range(2)]
    one, two = token(jti="one"), token(jti="two")
    for b in brokers:
        assert knock(b, one).status == 204 and knock(b, two).status == 204
        assert "jti" in knock(b, token()).expect(401).json["error"]
    write(revoked, "one\n")
    for b in brokers:
        wait_until(lambda: knock(b, one).status == 401, 10, "it is refused")
        assert "revoked" in knock(b, one).json["error"] and knock(b, two).status == 204
    revoked.unlink()
    write(tmp_path / "next", "one\ntwo\n")
    os.rename(tmp_path / "next", revoked)
    brokers[0].process.send_signal(signal.SIGHUP)
    for b in brokers:
        wait_until(lambda: knock(b, two).status == 401, 10, "that one, too")


def test_secrets_come_from_files_and_are_shown_nowhere(make_broker, tmp_path):
    b = make_broker(start=False, args=["--queen-sync-secret=a-secret-option"], JWT_ENABLED="true", JWT_SECRET_FILE=write(tmp_path / "s", SECRET + "\n", 0o644))
    b.spawn()
    wait_until(lambda: "serve.ready" in b.log_text(), 60 * TIME_FACTOR, "it serves")
    assert knock(b, token()).status == 204 and knock(b, token(secret=SECRET + "\n")).status == 401
    assert "conf.secret_exposed" in b.log_text(), "others can read that file"
    with open("/proc/%d/cmdline" % b.process.pid, "rb") as f:
        shown = f.read()
    assert b"--queen-sync-secret=" in shown and b"a-secret-option" not in shown
    assert SECRET not in b.log_text() and "a-secret-option" not in b.log_text()


def test_published_keys_are_fetched_once_and_again_for_a_new_one(make_broker, published, rsa, ed):
    published.keys = [rsa.jwk("r1")]
    b = make_broker(JWT_ENABLED="true", JWT_ALGORITHM="auto", JWT_JWKS_URL=published.url)
    assert knock(b, rsa.token("r1")).status == 204
    assert knock(b, rsa.token()).status == 204, "no kid: the first that suits"
    assert published.n == 1
    assert knock(b, rsa.token("r2")).status == 401, "asked a moment ago"
    assert published.n == 1
    published.keys = [rsa.jwk("r1"), ed.jwk("e1")]
    fresh = ed.token("e1")
    wait_until(lambda: knock(b, fresh).status == 204, 12, "the new key", 0.25)
    assert published.n == 2
    for i in range(20):
        assert knock(b, rsa.token("invented-%d" % i)).status == 401
    assert published.n == 2
    assert knock(b, rsa.token("r1")).status == 204


def test_old_keys_are_replaced_after_the_interval(make_broker, published, rsa):
    published.keys = [rsa.jwk("r1")]
    b = make_broker(JWT_ENABLED="true", JWT_ALGORITHM="RS256", JWT_JWKS_URL=published.url, JWT_JWKS_REFRESH_INTERVAL=1)
    t = rsa.token("r1")
    assert knock(b, t).status == 204
    published.keys = [rsa.jwk("r9")]
    wait_until(lambda: knock(b, t).status == 401, 8, "a withdrawn key is no longer good, remembered or not", 0.1)


def test_keys_that_cannot_be_fetched_are_503_and_come_back(make_broker, published, rsa):
    published.keys, published.fails = [rsa.jwk("r1")], True
    b = make_broker(JWT_ENABLED="true", JWT_ALGORITHM="RS256", JWT_JWKS_URL=published.url)
    t = rsa.token("r1")
    r = knock(b, t)
    assert r.status == 503 and r.json["error"] and r.headers["retry-after"]
    assert knock(b, token()).status == 401, "what is no RS256 token needs no key"
    b.get("/health").expect(200)
    published.fails = False
    wait_until(lambda: knock(b, t).status == 204, 8, "keys", 0.1)
    published.fails = True
    assert knock(b, t).status == 204, "old keys stay"


def test_waiting_for_keys_does_not_delay_other_requests(make_broker, published, rsa):
    published.keys, published.delay = [rsa.jwk("r1")], 1.5
    b = make_broker(NUM_WORKERS=1, JWT_ENABLED="true", JWT_ALGORITHM="auto", JWT_SECRET=SECRET,
                    JWT_JWKS_URL=published.url, JWT_JWKS_TIMEOUT_MS=4000)
    answers = []
    t = rsa.token("r1")
    waiting = [threading.Thread(target=lambda: answers.append(knock(Client(b.host, b.port), t).status)) for _ in range(5)]
    for w in waiting:
        w.start()
    begin = time.monotonic()
    assert knock(b, token()).status == 204
    quick = time.monotonic() - begin
    for w in waiting:
        w.join(20)
    assert answers == [204] * 5 and published.n == 1
    assert quick < 1.2


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A certificate authority of our own: .file, and .sign(name) gives the files of a server's certificate and key."""
    folder = tmp_path_factory.mktemp("authority")

    def openssl(*args):
        subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True, cwd=folder)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=ours",
            "-keyout", "ca.key", "-out", "ca.pem")

    def sign(name):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name,
                "-keyout", name + ".key", "-out", name + ".csr")
        (folder / (name + ".ext")).write_text("subjectAltName=DNS:" + name)
        openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", name + ".ext", "-out", name + ".pem")
        return folder / (name + ".pem"), folder / (name + ".key")
    return types.SimpleNamespace(file=folder / "ca.pem", sign=sign)


@pytest.mark.parametrize("certificate,trusted,status", [
    ("localhost", True, 204),
    ("localhost", False, 503),
    ("elsewhere", True, 503),
])
def test_keys_over_https_need_a_certificate_that_is_trusted(make_broker, authority, rsa, certificate, trusted, status):
    published = Keys(authority.sign(certificate))
    try:
        published.keys = [rsa.jwk("r1")]
        b = make_broker(JWT_ENABLED="true", JWT_ALGORITHM="RS256", JWT_JWKS_URL=published.url,
                        **({"SSL_CERT_FILE": authority.file} if trusted else {}))
        assert knock(b, rsa.token("r1")).status == status
        assert published.n == (1 if status == 204 else 0), "nothing is asked of a stranger"
    finally:
        published.close()


@pytest.mark.parametrize("env,says", [
    ({}, "JWT_SECRET"),
    ({"JWT_ALGORITHM": "RS256"}, "JWT_PUBLIC_KEY or JWT_JWKS_URL"),
    ({"JWT_ALGORITHM": "EdDSA", "JWT_SECRET": "x"}, "JWT_PUBLIC_KEY or JWT_JWKS_URL"),
    ({"JWT_ALGORITHM": "auto"}, "JWT_SECRET, JWT_PUBLIC_KEY or JWT_JWKS_URL"),
    ({"JWT_ALGORITHM": "ES256", "JWT_SECRET": "x"}, "JWT_ALGORITHM"),
    ({"JWT_ALGORITHM": "none", "JWT_SECRET": "x"}, "JWT_ALGORITHM"),
    ({"JWT_ALGORITHM": "RS256", "JWT_PUBLIC_KEY": "no key"}, "JWT_PUBLIC_KEY"),
    ({"JWT_ALGORITHM": "RS256", "JWT_JWKS_URL": "ftp://x"}, "JWT_JWKS_URL"),
    ({"JWT_ENABLED": "maybe"}, "JWT_ENABLED"),
    ({"JWT_SECRET": "x", "JWT_CLOCK_SKEW": "-1"}, "JWT_CLOCK_SKEW"),
])
def test_an_unusable_configuration_stops_the_start_with_one_line(make_broker, env, says):
    b = make_broker(start=False, **{"JWT_ENABLED": "true", **env}).spawn()
    assert b.process.wait(20) == 1
    assert sum(says in line for line in b.log_text().splitlines()) == 1


def test_an_ed25519_key_does_not_do_for_rs256(make_broker, ed):
    b = make_broker(start=False, JWT_ENABLED="true", JWT_ALGORITHM="RS256", JWT_PUBLIC_KEY=ed.pem).spawn()
    assert b.process.wait(20) == 1 and "JWT_PUBLIC_KEY" in b.log_text()


# --- producerSub ----------------------------------------------------------------------------------------------------

def subs(sql, queue):
    return [r[0] for r in sql(
        "select m.producer_sub from queen.messages m join queen.partitions p on p.id = m.partition_id "
        "join queen.queues q on q.id = p.queue_id where q.name = %s order by m.id", queue)]


def test_pushes_are_stamped_with_the_subject(guarded, queue, sql):
    alice, nobody = bearer(token(sub="alice")), bearer(token({"role": "admin", "sub": ""}))
    guarded.push([{"queue": queue, "payload": 1, "producerSub": "mallory", "producer_sub": "mallory"}],
                 headers=alice).expect(201)
    guarded.push([{"queue": queue, "payload": 2}], headers=nobody).expect(201)
    guarded.post("/api/v1/transaction", {"operations": [
        {"type": "push", "items": [{"queue": queue, "payload": 3, "producerSub": "mallory"}]}]},
        headers=bearer(token(sub='bob "ü"'))).expect(200)
    assert subs(sql, queue) == ["alice", None, 'bob "ü"']
    got = guarded.get("/api/v1/pop/queue/%s?batch=10" % queue, headers=alice).expect(200).json["messages"]
    assert [m["producerSub"] for m in got] == ["alice", None, 'bob "ü"']


def test_without_tokens_the_header_is_ignored_and_the_producer_is_null(broker, queue, sql):
    broker.push([{"queue": queue, "payload": 1, "producerSub": "mallory"}], headers=bearer(token())).expect(201)
    broker.push([{"queue": queue, "payload": 2}], headers={"Authorization": "garbage"}).expect(201)
    assert subs(sql, queue) == [None, None]


def test_the_sql_functions_return_the_subject(guarded, queue, sql):
    guarded.push([{"queue": queue, "payload": 1}], headers=bearer(token(sub="carol"))).expect(201)
    request = [{"idx": 0, "queue_name": queue, "partition_name": "Default", "consumer_group": "__QUEUE_MODE__",
                "batch_size": 1, "lease_seconds": 30, "worker_id": "w"}]
    result = sql("select queen.pop_specific_batch(%s::jsonb)", json.dumps(request))[0][0]
    assert result[0]["result"]["messages"][0]["producerSub"] == "carol"
    other = queue + "-sql"
    sql("select queen.push_messages_v2(%s::jsonb)", json.dumps([{"queue": other, "payload": 1, "producerSub": "dave"}]))
    got = guarded.get("/api/v1/pop/queue/%s?wait=true&timeout=5000" % other, headers=bearer(token())).expect(200).json
    assert got["messages"][0]["producerSub"] == "dave"


def test_output_of_a_stream_has_the_producer(guarded, queue, sql):
    erin = bearer(token(sub="erin"))
    query = guarded.post("/streams/v1/queries", {"name": queue, "source_queue": queue + "-src", "config_hash": "h"},
                         headers=erin).expect(200).json["query_id"]
    answer = guarded.post("/streams/v1/cycle", {"query_id": query, "partition_id": "00000000-0000-4000-8000-000000000001",
                                                "push_items": [{"queue": queue, "payload": 1, "producerSub": "mallory"}]},
                          headers=erin).expect(200).json
    assert answer["success"], answer
    assert subs(sql, queue) == ["erin"]
