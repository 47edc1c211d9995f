"""Rules of the platform: who may use one tenant can neither see nor touch another."""
import re
import subprocess
import json

import pytest

import contract
import harness
from harness import BIN
from process import Platform
from tokens import SECRET, bearer, token


@pytest.fixture(scope="module")
def guarded(pg, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("key") / "admin.key")
    key = json.loads(subprocess.run([BIN, "init", path], check=True, capture_output=True, text=True).stdout)["key"]
    p = Platform({"PLATFORM_PG_HOST": pg.host, "PLATFORM_PG_PORT": pg.port, "PLATFORM_PG_USER": pg.user, "PLATFORM_PG_PASSWORD": "x",
                  "PLATFORM_PG_DB": "platform_rules", "QUEEN_URL": "http://127.0.0.1:9", "JWT_ENABLED": "true", "JWT_SECRET": SECRET,
                  "QUEEN_ADMIN_KEY_FILE": path})
    harness.living.append(p)
    try:
        p.start()
        p.admin = key
        yield p
    finally:
        harness.end(p, clean_exit=True)


def routes():
    return [(verb.upper(), path, op["x-permission"]) for path, item in contract.load("platform/docs/openapi")["paths"].items()
            for verb, op in item.items() if verb != "parameters" and op["x-access"] != "public"]


@pytest.mark.parametrize("method, path, permission", routes(), ids=lambda x: str(x))
def test_matrix(guarded, method, path, permission):
    target = permission.rsplit(": ", 1)[-1]
    assert target in ("admin", "free", "tenant")
    url = re.sub(r"{(\w+)}", lambda m: "acme" if m.group(1) == "tenant" else "1", path)
    body = {} if method in ("POST", "PUT", "PATCH") else None

    def status(t):
        return guarded.request(method, url, body, headers=bearer(t) if t else None).status
    assert status(None) == 401
    assert status(token(exp=1)) == 401
    assert status("qk_0123456789abcdef_" + "A" * 43) == 401
    assert status(guarded.admin) not in (401, 403)
    everything = "push+pop+read+configure+delete:tenant=%s"
    assert (status(token(queen_rules=everything % "other")) == 403) == (target != "free"), "another tenant"
    assert (status(token(queen_rules="*:*")) == 403) == (target != "free"), "rules for queues"
    assert (status(token(queen_rules=everything % "ac*")) == 403) == (target == "admin"), "its own tenant"


def test_operations(guarded):
    def status(rules, method, url, body=None):
        return guarded.request(method, url, body, headers=bearer(token(queen_rules=rules))).status
    assert status("read:tenant=acme", "POST", "/api/v1/tenants/acme/events", []) == 403
    assert status("push:tenant=acme", "POST", "/api/v1/tenants/acme/events", []) != 403
    assert status("push:tenant=acme", "GET", "/api/v1/tenants/acme/segments") == 403
    assert status("read:tenant=acme", "GET", "/api/v1/tenants/%61cme/segments") != 403
    assert status("read:tenant=acme", "GET", "/api/v1/tenants/ACME/segments") == 403


def test_a_queue_of_a_body_needs_push(guarded):
    """The platform pushes for its tenants with rights of its own."""
    def status(rules, queue):
        headers = bearer(token(queen_rules=rules))
        put = guarded.request("PUT", "/api/v1/tenants/acme/segments/rich/subscription", {"queue": queue}, headers=headers).status
        body = {"name": "c", "segment": "rich", "when": "now", "queue": queue}
        assert (guarded.request("POST", "/api/v1/tenants/acme/campaigns", body, headers=headers).status == 403) == (put == 403)
        return put
    assert status("configure:tenant=acme", "acme.mail") == 403
    assert status("push+configure:tenant=acme", "acme.mail") == 403
    assert status("configure:tenant=acme,push:acme.*", "other.mail") == 403
    assert status("configure:tenant=acme,push:acme.*", "acme.mail") == 404
    assert status("configure:tenant=acme,push:*", "platform.events") == 400
    assert status("admin", "acme.mail") == 404
