"""Every documented route with every kind of identity, and with every defect of a token, key, certificate or request.

The routes and the roles that they need come from the OpenAPI document, which a unit test compares with the compiled table. So
a new route is covered without a change here, and one that forgets its check fails. What somebody without rights sends is
sent in full. What somebody with rights sends is incomplete, so that it changes nothing.
"""
import base64
import hashlib
import hmac
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import time

import contract
from tokens import SECRET, b64, token

LEVELS = ["public", "read-only", "read-write", "admin"]
DUMMY = "00000000-0000-7000-8000-000000000001"
GOOD = {"sub": "matrix", "role": "admin", "iss": "tests", "aud": "queen", "jti": "good"}
REVOKED = "stolen"


def openssl(*args, data=None):
    return subprocess.run(["openssl", *args], check=True, capture_output=True, input=data).stdout


class Site:
    """The files and settings of a server that takes tokens, keys and certificates, and strict rules for tokens."""

    def __init__(self, folder, port, roles="ops=admin,app=read-write,reader=read-only"):
        self.folder, self.port = str(folder), port
        self.server = self.certificate("server")
        self.pairs = {name: self.certificate(name) for name in ("ops", "app", "reader", "stranger")}
        self.outsider = self.certificate("outsider")
        trusted, revoked, rules = (os.path.join(self.folder, n) for n in ("trusted.pem", "revoked", "rules"))
        with open(trusted, "w") as f:
            f.write("".join(open(cert).read() for cert, _ in self.pairs.values()))
        with open(revoked, "w") as f:
            f.write(REVOKED + "\n")
        with open(rules, "w") as f:
            f.write("bounded push:other\n")
        ec = os.path.join(self.folder, "ec.pem")
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", ec)
        self.public = openssl("pkey", "-in", ec, "-pubout").decode()
        self.env = {"JWT_ENABLED": "true", "JWT_ALGORITHM": "auto", "JWT_SECRET": SECRET, "JWT_PUBLIC_KEY": self.public, "JWT_REQUIRE_EXP": "true",
                    "JWT_ISSUER": "tests", "JWT_AUDIENCE": "queen", "JWT_REVOKED_FILE": revoked, "QUEEN_RULES_FILE": rules,
                    "QUEEN_TLS_CERT": self.server[0], "QUEEN_TLS_KEY": self.server[1], "QUEEN_TLS_PORT": port, "QUEEN_TLS_CLIENT_CA": trusted,
                    "QUEEN_TLS_CLIENT_ROLES": roles, "HOST": "127.0.0.1"}

    def certificate(self, name):
        cert, key = os.path.join(self.folder, name + ".crt"), os.path.join(self.folder, name + ".key")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert)
        return cert, key

    def connect(self, pair):
        context = ssl.create_default_context(cafile=self.server[0])
        context.load_cert_chain(*pair)
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), timeout=120), server_hostname="localhost")


def claims(**more):
    return {**GOOD, "exp": int(time.time()) + 3600, **more}


def without(name):
    return {k: v for k, v in claims().items() if k != name}


def bad_tokens(site):
    """(defect, token). Without the defect each would be an administrator's."""
    now = int(time.time())
    good = token(claims())
    head, body, signature = good.split(".")
    raw = base64.urlsafe_b64decode(signature + "==")

    def header(**more):
        return token(claims(), header=more)

    def signed(alg, sign):
        return token(claims(), header={"alg": alg}, sign=sign)

    def remade(text):
        data = head + "." + b64(text)
        return data + "." + b64(hmac.new(SECRET.encode(), data.encode(), hashlib.sha256).digest())

    yield "expired", token(claims(exp=now - 3600))
    yield "exp is text", token(claims(exp=str(now + 3600)))
    yield "exp is a list", token(claims(exp=[now + 3600]))
    yield "exp is beyond all numbers", remade(json.dumps(claims()).replace(str(claims()["exp"]), "1e999").encode())
    yield "no exp", token(without("exp"))
    yield "not valid yet", token(claims(nbf=now + 3600))
    yield "issued in the future", token(claims(iat=now + 3600))
    yield "another issuer", token(claims(iss="other"))
    yield "a list of issuers", token(claims(iss=["tests"]))
    yield "no issuer", token(without("iss"))
    yield "another audience", token(claims(aud=["other", "queen2"]))
    yield "no audience", token(without("aud"))
    yield "revoked", token(claims(jti=REVOKED))
    yield "no jti", token(without("jti"))
    yield "jti is a number", token(claims(jti=1))
    yield "subject of a key", token(claims(sub="key:ci"))
    yield "subject of a certificate", token(claims(sub="cert:ops"))
    yield "rules that are none", token(claims(queen_rules=":::"))
    yield "rules that are a number", token(claims(queen_rules=1))
    yield "limits that are none", token(claims(queen_limits="x"))
    yield "another secret", token(claims(), secret=SECRET + "x")
    yield "empty secret", token(claims(), secret="")
    yield "signature of another token", head + "." + body + "." + token(claims(sub="x")).split(".")[2]
    yield "flipped bit", head + "." + body + "." + b64(bytes([raw[0] ^ 1]) + raw[1:])
    yield "short signature", head + "." + body + "." + b64(raw[:16])
    yield "long signature", head + "." + body + "." + b64(raw + b"\0")
    yield "no signature", head + "." + body + "."
    yield "two parts", head + "." + body
    yield "four parts", good + "." + signature
    yield "five parts", "a.b.c.d.e"
    yield "changed claims", head + "." + b64(json.dumps(claims(sub="root")).encode()) + "." + signature
    yield "claims are a list", remade(b"[]")
    yield "claims are cut", remade(b'{"role":"admin"')
    yield "claims have an end", remade(json.dumps(claims()).encode() + b"{}")
    yield "claims with a NUL", remade(json.dumps(claims()).encode() + b"\0")
    yield "padded", good + "="
    yield "not base64", head + "." + body + ".*" + signature[1:]
    for alg in ("none", "None", "", "HS384", "hs256", "RS256", "PS256", "EdDSA"):
        yield "alg " + (alg or "empty"), header(alg=alg)
    yield "alg none, no signature", signed("none", lambda data: b"")
    yield "signed with the public key", token(claims(), secret=site.public)
    yield "ES256 with a signature of zeros", signed("ES256", lambda data: b"\0" * 64)
    yield "ES256 with the secret", signed("ES256", lambda data: hmac.new(SECRET.encode(), data, hashlib.sha512).digest())
    yield "critical extension", header(crit=["exp"])
    yield "b64 off", header(b64=False, crit=["b64"])
    yield "word", "admin"
    yield "a quote", "\"' or 1=1 --"


def bad_keys(key):
    prefix, name, secret = key.split("_", 2)  # the secret may contain more
    head = prefix + "_" + name
    yield "qk_", "qk_"
    yield "cut", key[:-1]
    yield "longer", key + "A"
    yield "upper case", key.upper()
    yield "no secret", head + "_"
    yield "unknown id", "qk_" + "0" * len(name) + "_" + secret
    yield "wrong secret", head + "_" + ("A" if secret[0] != "A" else "B") + secret[1:]
    yield "secret of nothing", head + "_" + "A" * len(secret)
    yield "as a token", key + ".x.y"


class Route:
    def __init__(self, method, template, operation):
        self.method, self.template, self.access = method, template, operation["x-access"]
        self.path = re.sub(r"{(\w+)}", lambda m: DUMMY if m.group(1).endswith("Id") or m.group(1) == "id" else "matrix", template)
        self.has_body = method in ("POST", "PUT", "PATCH")

    def request(self, lines=(), path=None, method=None, body=b"{", version="1.1"):
        """As bytes. The body is not JSON, so that a request that is permitted changes nothing."""
        head = ["%s %s HTTP/%s" % (method or self.method, path or self.path, version), "Host: localhost"]
        if self.has_body and body is not None:
            head += ["Content-Type: application/json", "Content-Length: %d" % len(body)]
        return "\r\n".join([*head, *lines, "", ""]).encode("latin-1") + (body if self.has_body and body is not None else b"")


def routes(book):
    for template, item in sorted(contract.load(book)["paths"].items()):
        for method, operation in sorted(item.items()):
            if method in ("get", "post", "put", "patch", "delete"):
                yield Route(method.upper(), template, operation)


def statuses(sock, data, n):
    """Sends all and reads n answers, or what there is until the server closes."""
    with sock:
        sock.sendall(data)
        stream = sock.makefile("rb")
        found = []
        while len(found) < n:
            line = stream.readline()
            if not line:
                break
            found.append(int(line.split()[1]))
            headers = http.client.parse_headers(stream)
            stream.read(int(headers.get("Content-Length", 0)))
        return found


def is_as_its_role(role, route, status):
    if route.access == "public":
        return status not in (401, 403)
    if role is None:
        return status == 401
    if LEVELS.index(role) < LEVELS.index(route.access):
        return status == 403
    return status not in (401, 403)


def odd_paths(path):
    """Ways to write a path that may pass a check and reach the handler all the same."""
    parts = path.split("/")
    yield "/" + path
    yield "//localhost" + path
    yield path + "/"
    yield "/." + path
    yield "/live/.." + path
    yield "/metrics/prometheus/../.." + path
    yield path.replace("/api", "/%61pi", 1) if path.startswith("/api") else "/%2e" + path
    yield path.upper()
    yield "/".join(parts[:-1]) + "%2F" + parts[-1]
    yield path + ";/health"
    yield path + "%00"
    yield path + "?/health"
    yield "http://localhost" + path
    yield "http://localhost/health/.." + path
    yield path + "#/health"


class Matrix:
    def __init__(self, server, site, book, admin_key, keys=None):
        """keys: role -> API key."""
        self.server, self.site, self.admin_key, self.keys = server, site, admin_key, keys or {}
        self.routes = list(routes(book))
        self.sent, self.wrong = 0, []

    def plain(self):
        return socket.create_connection((self.server.host, self.server.port), timeout=120)

    def check(self, what, cases, good, connect=None, one_each=False):
        """cases: [(name, route, request)]; good(name, route, status)."""
        batches = [[c] for c in cases] if one_each else [cases[i:i + 100] for i in range(0, len(cases), 100)]
        for batch in batches:
            found = statuses((connect or self.plain)(), b"".join(c[2] for c in batch), len(batch))
            self.sent += len(batch)
            if len(found) != len(batch):
                self.wrong.append("%s: %d of %d answers, the next is %s" % (what, len(found), len(batch), batch[len(found)][:2]))
            for (name, route, _), status in zip(batch, found):
                if not good(name, route, status) or (status >= 500 and status not in (501, 503)):
                    self.wrong.append("%s, %s: %s %s (%s) -> %d" % (what, name, route.method, route.template, route.access, status))

    def refused(self, name, route, status):
        return status == 401 if route.access != "public" else status not in (401, 403)

    def identities(self):
        held = {"no token": (None, [])}
        held.update({"token " + r: (r, ["Authorization: Bearer " + token(claims(role=r))]) for r in LEVELS[1:]})
        held.update({"token of a list " + r: (r, ["Authorization: Bearer " + token(claims(role="x", roles=["y", r]))]) for r in LEVELS[1:]})
        held["token without a role"] = ("public", ["Authorization: Bearer " + token(without("role"))])
        held["token of an unknown role"] = ("public", ["Authorization: Bearer " + token(claims(role="Admin", roles=["ADMIN", None, 1]))])
        held["key of the file"] = ("admin", ["Authorization: Bearer " + self.admin_key])
        held.update({"key " + r: (r, ["Authorization: bearer " + key]) for r, key in self.keys.items()})
        for kind, (role, lines) in held.items():
            self.check(kind, [(kind, r, r.request(lines)) for r in self.routes], lambda _, route, status, role=role: is_as_its_role(role, route, status))
        for name, role in (("ops", "admin"), ("app", "read-write"), ("reader", "read-only"), ("stranger", "public")):
            self.check("certificate " + name, [(name, r, r.request()) for r in self.routes],
                       lambda _, route, status, role=role: is_as_its_role(role, route, status), lambda name=name: self.site.connect(self.site.pairs[name]))
        # A token comes before a certificate, also a bad one.
        self.check("certificate and bad token", [("", r, r.request(["Authorization: Bearer a.b.c"])) for r in self.routes],
                   self.refused, lambda: self.site.connect(self.site.pairs["ops"]))
        # Its rules replace the role.
        bounded = ["Authorization: Bearer " + token(claims(sub="bounded"))]
        self.check("rules of the file", [("", r, r.request(bounded)) for r in self.routes if r.access == "admin"], lambda n, r, status: status == 403)

    def credentials(self):
        bad = [("token: " + n, t) for n, t in bad_tokens(self.site)] + [("key: " + n, k) for n, k in bad_keys(self.admin_key)]
        for name, text in bad:
            self.check("defect", [(name, r, r.request(["Authorization: Bearer " + text])) for r in self.routes], self.refused)

    def carriers(self):
        """A valid token at a place that does not count, or beside another one."""
        good = token(claims())
        right, other = "Authorization: Bearer " + good, "Authorization: Bearer x"
        elsewhere = {
            "Proxy-Authorization": ["Proxy-Authorization: Bearer " + good], "Cookie": ["Cookie: token=%s; Authorization=%s" % (good, good)],
            "X-Authorization": ["X-Authorization: Bearer " + good], "underscore": ["Authorization_: Bearer " + good],
            "forwarded user": ["X-Forwarded-User: admin", "X-Remote-User: admin", "Remote-User: admin", "X-Queen-Subject: admin"],
            "forwarded certificate": ["X-SSL-Client-Verify: SUCCESS", "X-SSL-Client-CN: ops", "X-Forwarded-Client-Cert: Subject=\"CN=ops\""],
            "Basic": ["Authorization: Basic " + b64(b"admin:admin")], "token as Basic": ["Authorization: Basic " + good],
            "two tokens in a line": [right + ", Bearer x"], "method override": ["X-HTTP-Method-Override: GET", "X-Original-URL: /health", "X-Rewrite-URL: /health"],
        }
        for name, lines in elsewhere.items():
            self.check("carrier", [(name, r, r.request(lines)) for r in self.routes], self.refused)
        in_query = [("query", r, r.request(path="%s?token=%s&access_token=%s&Authorization=%s" % (r.path, good, good, good))) for r in self.routes]
        self.check("carrier", in_query, self.refused)
        twice = [(name, r, r.request(lines)) for r in self.routes for name, lines in (("good, bad", [right, other]), ("bad, good", [other, right]), ("twice", [right, right]))]
        self.check("two headers", twice, lambda n, r, status: status == 400, one_each=True)
        self.check("folded", [("", r, r.request(["Authorization:", " Bearer " + good])) for r in self.routes], lambda n, r, status: status == 400, one_each=True)
        chunked = ["Transfer-Encoding: chunked", "Content-Type: application/json"]
        trailer = b"1\r\n{\r\n0\r\n" + right.encode() + b"\r\n\r\n"
        self.check("trailer", [("", r, r.request(chunked, body=None) + trailer) for r in self.routes if r.has_body], self.refused)

    def requests(self):
        """Without a token: ways to write a request that must not get around the check."""
        guarded = [r for r in self.routes if r.access != "public"]
        paths = [(p, r, r.request(path=p)) for r in guarded for p in odd_paths(r.path)]
        self.check("path", paths, lambda n, r, status: status in (400, 401, 404, 405), one_each=True)
        self.check("HEAD", [("", r, r.request(["Connection: close"], method="HEAD", body=None)) for r in guarded if r.method == "GET"], lambda n, r, status: status == 401,
                   one_each=True)
        self.check("HTTP/1.0", [("", r, r.request(version="1.0")) for r in guarded], self.refused, one_each=True)
        self.check("OPTIONS", [("", r, r.request(method="OPTIONS", body=None)) for r in guarded], lambda n, r, status: status == 204)
        # The identity of one request is not that of the next, nor of another connection.
        ops = ["Authorization: Bearer " + self.admin_key]
        for r in guarded:
            pair = r.request(ops) + r.request() + r.request(["Authorization: Bearer " + token(claims())]) + r.request()
            found = statuses(self.plain(), pair, 4)
            self.sent += 4
            if found[1::2] != [401, 401]:
                self.wrong.append("after a valid request: %s %s -> %s" % (r.method, r.template, found))

    def run(self):
        """The number of requests, and a sentence about each wrong answer."""
        for part in (self.identities, self.credentials, self.carriers, self.requests):
            part()
            if not self.server.alive:
                self.wrong.append("the process ended")
                break
        return self.sent, self.wrong
