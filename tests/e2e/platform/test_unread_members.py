"""Requests to the platform whose meaning would change if a part of them was ignored."""
import uuid

import pytest

FILTER = {"all": True}


def refused(platform, method, path, body, *words):
    answer = platform.request(method, path, body)
    assert answer.status == 400, answer
    for word in words:
        assert word in answer.json["error"], answer.json


@pytest.mark.parametrize("path", ["", "/segments/s", "/segments/s/subscription", "/campaigns/c"])
def test_a_deletion_refuses_a_body_that_was_meant_to_limit_it(platform, tenant, path):
    base = "/api/v1/tenants/" + tenant
    platform.request("POST", base + "/segments", {"name": "s", "filter": FILTER}).expect(201)
    refused(platform, "DELETE", base + path, {"keepDatabase": True}, 'unknown member "keepDatabase"')
    assert platform.request("GET", base).expect(200).json["tenant"] == tenant
    assert platform.request("GET", base + "/segments/s").expect(200).json["name"] == "s"
    platform.request("DELETE", base + "/segments/s", {}).expect(200)


@pytest.mark.parametrize("drop", ["yes", "True", "2"])
def test_a_database_is_dropped_or_kept_as_the_request_says(platform, tenant, drop):
    refused(platform, "DELETE", "/api/v1/tenants/%s?drop=%s" % (tenant, drop), None, "drop must be true or false")
    assert platform.request("GET", "/api/v1/tenants/" + tenant).status == 200


def test_calls_without_a_body_refuse_members(platform, tenant):
    refused(platform, "POST", "/api/v1/tenants/migrate", {"tenant": tenant}, 'unknown member "tenant"')
    base = "/api/v1/tenants/" + tenant
    platform.request("POST", base + "/segments", {"name": "s", "filter": FILTER}).expect(201)
    refused(platform, "POST", base + "/segments/s/count", {"filter": {"attribute": "city", "operator": "is_set"}}, 'unknown member "filter"')


def test_a_tenant_keeps_its_name(platform, tenant):
    refused(platform, "PATCH", "/api/v1/tenants/" + tenant, {"name": "x" + uuid.uuid4().hex[:8], "password": "p"}, "name cannot be changed")
