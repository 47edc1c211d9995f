"""What a removed tenant leaves behind: nothing that acts, fails again and again, or belongs to the next tenant of its name."""
import json
import urllib.request
import uuid

import pytest

from harness import wait_until
from segment_rig import Tenant, rig  # noqa: F401

RICH = {"attribute": "wallet_balance", "operator": "gt", "value": 50}


def of_broker(rig, path):  # noqa: F811
    with urllib.request.urlopen(rig.broker.url + path) as r:
        return json.load(r)


def schedules(rig, name):  # noqa: F811
    return sorted(s["name"] for s in of_broker(rig, "/api/v1/schedules?limit=10000")["schedules"] if s["name"].split(":")[1] == name)


@pytest.fixture
def name():
    return "gone-" + uuid.uuid4().hex[:10]


def watched(rig, name):  # noqa: F811
    """A tenant with a recurring trigger of each kind: (tenant, names of the triggers)."""
    t = Tenant(rig, name)
    rich = t.expect(201, "POST", "/segments", {"name": "rich", "filter": RICH})["id"]
    t.expect(200, "PUT", "/segments/rich/subscription", {"queue": name + ".moves", "everySeconds": 1})
    daily = t.expect(201, "POST", "/campaigns", {"name": "daily", "segment": "rich", "when": {"cron": "0 9 * * *", "timezone": "Europe/Berlin"},
                                                "queue": name + ".mail"})["id"]
    names = sorted(["segment:%s:%s" % (name, rich), "campaign:%s:%s" % (name, daily)])
    assert schedules(rig, name) == names
    return t, names


@pytest.mark.parametrize("drop", (True, False))
def test_a_removed_tenant_leaves_no_recurring_triggers(rig, name, drop):  # noqa: F811
    t, _ = watched(rig, name)
    neighbour, kept = watched(rig, name + "-x")  # its name begins with that of the other
    t.connection.close()
    rig.platform.remove_tenant(name, drop).expect(200)
    assert schedules(rig, name) == []
    assert schedules(rig, name + "-x") == kept
    neighbour.connection.close()
    rig.platform.remove_tenant(name + "-x").expect(200)


def test_a_tenant_that_is_added_again_has_its_recurring_triggers(rig, name):  # noqa: F811
    t, names = watched(rig, name)
    before = {s["name"]: (s["cron"], s["timezone"], s["partition"]) for s in of_broker(rig, "/api/v1/schedules?limit=10000")["schedules"]}
    t.connection.close()
    rig.platform.remove_tenant(name, False).expect(200)
    t = Tenant(rig, name)
    assert schedules(rig, name) == names
    after = {s["name"]: (s["cron"], s["timezone"], s["partition"]) for s in of_broker(rig, "/api/v1/schedules?limit=10000")["schedules"]}
    assert {n: after[n] for n in names} == {n: before[n] for n in names}
    first = t.expect(200, "GET", "/segments/rich")["subscription"]["lastLookAt"]
    wait_until(lambda: t.expect(200, "GET", "/segments/rich")["subscription"]["lastLookAt"] not in (None, first), 60, "the segment is checked")
    t.connection.close()
    rig.platform.remove_tenant(name).expect(200)


def test_a_trigger_that_stayed_is_no_dead_letter_each_time(rig, name):  # noqa: F811
    """The broker was away when the tenant was removed, for example. A check every second would be a dead letter every second."""
    body = {"name": "segment:%s:%s" % (name, uuid.uuid4()), "queue": "platform.triggers", "partition": name, "cron": "* * * * * *",
            "payload": {"kind": "watch", "tenant": name, "id": str(uuid.uuid4())}}
    request = urllib.request.Request(rig.broker.url + "/api/v1/schedules", json.dumps(body).encode(), {"Content-Type": "application/json"})
    urllib.request.urlopen(request).close()
    wait_until(lambda: rig.platform.log_text().count("trigger.tenant_unknown") >= 2 or
               any(name in json.dumps(m) for m in of_broker(rig, "/api/v1/dlq?queue=platform.triggers")["messages"]), 60, "it was delivered twice")
    assert not any(name in json.dumps(m) for m in of_broker(rig, "/api/v1/dlq?queue=platform.triggers")["messages"])
    urllib.request.urlopen(urllib.request.Request(rig.broker.url + "/api/v1/schedules/" + body["name"], method="DELETE")).close()


def test_the_read_models_of_a_removed_tenant_are_forgotten(rig, name):  # noqa: F811
    def modes():
        return {r["effectiveMode"] for r in rig.platform.get("/api/v1/read-models").expect(200).json["readModels"] if r["tenant"] == name}
    rig.platform.add_tenant(name)
    rig.platform.request("PUT", "/api/v1/tenants/%s/read-models" % name, {"mode": "views"}).expect(202)
    assert modes() == {"views"}
    rig.platform.remove_tenant(name).expect(200)
    assert modes() == set()
    rig.platform.add_tenant(name)
    rig.platform.post("/api/v1/tenants/%s/read-models/refresh" % name, {}).expect(202)
    assert modes() == {"live"}
    rig.platform.remove_tenant(name).expect(200)
