"""The audit log of the platform: every route that changes something, denied requests, the end of the process."""
import re
import uuid

import contract
from harness import wait_until
from test_tenant_permissions import guarded  # noqa: F401  a platform with tokens and an administrator's key
from tokens import bearer, token

# They read, or they push events: audited only if they are denied.
UNAUDITED = {"/api/v1/tenants/{tenant}/events", "/api/v1/tenants/{tenant}/segments/count", "/api/v1/tenants/{tenant}/segments/preview",
             "/api/v1/tenants/{tenant}/segments/explain", "/api/v1/tenants/{tenant}/segments/{segment}/count"}


def records(p, **filters):
    query = "&".join("%s=%s" % f for f in filters.items())
    return p.request("GET", "/api/v1/audit?limit=1000&" + query, headers=bearer(p.admin)).expect(200).json["records"]


def test_every_route_that_changes_something_is_audited(guarded):  # noqa: F811
    """Generated from the document: a new route is audited unless it is named above."""
    expected, silent = {}, set()
    paths = contract.load("platform/docs/openapi")["paths"]
    assert UNAUDITED <= set(paths)
    for path, item in paths.items():
        for verb in item:
            if verb in ("get", "parameters"):
                continue
            url = re.sub(r"{(\w+)}", lambda m: "t" + uuid.uuid4().hex[:8], path)
            status = guarded.request(verb.upper(), url, {} if verb != "delete" else None, headers=bearer(guarded.admin)).status
            if path in UNAUDITED:
                silent.add((verb.upper(), url))
            else:
                expected[(verb.upper(), url)] = status
    assert len(expected) > 8
    for (method, url), status in expected.items():
        found = wait_until(lambda: [r for r in records(guarded, subject="key:admin-key-file") if (r["method"], r["path"]) == (method, url)], 30,
                           "a record of %s %s" % (method, url))
        assert found[0]["status"] == status and found[0]["address"] == "127.0.0.1" and found[0]["server"], found
    assert not silent & {(r["method"], r["path"]) for r in records(guarded)}


def test_denied_requests_are_recorded(guarded):  # noqa: F811
    who = "s" + uuid.uuid4().hex[:8]
    guarded.request("DELETE", "/api/v1/tenants/acme", headers=bearer(token(sub=who, queen_rules="read:tenant=other"))).expect(403)
    r = wait_until(lambda: records(guarded, subject=who), 30, "the denial")[0]
    assert (r["operation"], r["target"], r["status"], r["result"]) == ("tenant_remove", "acme", 403, "denied")
    guarded.request("GET", "/api/v1/audit", headers=bearer(token(sub=who, queen_rules="read:tenant=acme"))).expect(403)
    assert "audit.denied" in guarded.log_text()


def test_filters(guarded):  # noqa: F811
    assert records(guarded, to="2020-01-01T00:00:00Z") == []
    assert records(guarded, subject="nobody") == []
    for bad in ("result=maybe", "from=then", "limit=x", "before=-1", "queue=x"):
        guarded.request("GET", "/api/v1/audit?" + bad, headers=bearer(guarded.admin)).expect(400)
