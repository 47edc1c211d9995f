"""Errors that a tenant's database reports: which of them blame the event, and none of them stops the partition."""
import random
import uuid

import pytest

import harness
from harness import wait_until
from rig_events import Platform, tenant_cursor

TENANTS = ["delta", "epsilon"]
SOON = 20 * harness.TIME_FACTOR


@pytest.fixture(scope="module")
def platform(pg, broker):
    """One partition, so that all tenants share it."""
    p = Platform(pg, broker.url, PLATFORM_QUEUE="faults-" + uuid.uuid4().hex[:8], PLATFORM_PARTITIONS=1, database="platform_faults")
    p.start()
    for t in TENANTS:
        p.add_tenant(t)
    yield p
    assert p.terminate() == 0, p.log_tail()


@pytest.fixture
def tables(pg):
    """tables(tenant): a cursor; closed at the end, without triggers on the visits."""
    made = []

    def make(tenant):
        made.append(tenant_cursor(pg, tenant))
        return made[-1]
    yield make
    for c in made:
        c.execute("drop trigger if exists fault on crm.visit_log")
        c.connection.close()


def visit(**more):
    return {"id": str(uuid.uuid4()), "type": "visit.recorded", "at": "2026-11-16T04:05:06Z",
            "data": {"customer_id": str(uuid.uuid4()), "id": str(uuid.uuid4()), **more}}


def count(cursor, table="visit_log"):
    cursor.execute("select count(*) from crm." + table)
    return cursor.fetchone()[0]


def raise_on_visits(cursor, message, errcode, when="true"):
    """A trigger of the tenant's own that refuses visits."""
    cursor.execute("create or replace function crm.fault() returns trigger language plpgsql as $$ begin "
                   "raise exception using message = %s, errcode = %s; end $$", (message, errcode))
    cursor.execute("create trigger fault before insert on crm.visit_log for each row when (%s) execute function crm.fault()" % when)


def dead(broker, platform):
    return {d["data"]["id"]: d["errorMessage"]
            for d in broker.get("/api/v1/dlq?queue=%s&limit=500" % platform.env["PLATFORM_QUEUE"]).json["messages"]}


def test_a_long_error_text_that_is_not_ascii_holds_one_tenant_only(platform, tables):
    """Cut inside a character, the text was refused by the control database, and the partition stood still."""
    delta, epsilon = tables("delta"), tables("epsilon")
    raise_on_visits(delta, "ж" * 200, "55006")
    before = count(delta), count(epsilon)
    platform.send("delta", visit())
    wait_until(lambda: "delta" in platform.held(), SOON, "its events are held")
    assert platform.held()["delta"]["lastError"].startswith("жжж")
    platform.send("epsilon", visit())
    wait_until(lambda: count(epsilon) == before[1] + 1, SOON, "the other tenant goes on")
    delta.execute("drop trigger fault on crm.visit_log")
    wait_until(lambda: count(delta) == before[0] + 1, SOON, "the held event is applied")
    wait_until(lambda: not platform.held(), SOON, "no lane is left")


def test_events_that_cannot_be_held_are_written_again(platform, pg, tables):
    """Neither the tenant nor the control database takes them.  The tenant recovers first."""
    delta, control = tables("delta"), pg.connect(database="platform_faults")
    before = count(delta)
    control.cursor().execute("alter table platform.held_lane rename to held_lane_away")
    try:
        raise_on_visits(delta, "not now", "55006")
        platform.send("delta", visit())
        wait_until(lambda: "held.record_failed" in platform.log_tail(), SOON, "the lane cannot be recorded")
        delta.execute("drop trigger fault on crm.visit_log")
        wait_until(lambda: count(delta) == before + 1, SOON, "the event is written again")
    finally:
        control.cursor().execute("alter table platform.held_lane_away rename to held_lane")
        control.close()


@pytest.mark.parametrize("errcode", ["P0001", "54000", "44000", "ZZ123"])
def test_an_error_that_one_event_causes_costs_that_event_alone(platform, broker, tables, errcode):
    delta = tables("delta")
    raise_on_visits(delta, "no такое", errcode, "new.service = 'poison'")
    before, good, poison = count(delta), [visit() for _ in range(9)], visit(service="poison")
    platform.send("delta", good[:4] + [poison] + good[4:])
    wait_until(lambda: poison["id"] in dead(broker, platform), SOON, "the event is a dead letter")
    assert "no такое" in dead(broker, platform)[poison["id"]]
    wait_until(lambda: count(delta) == before + 9, SOON, "the others are applied")
    assert "delta" not in platform.held()


def test_an_event_that_a_unique_index_of_the_tenant_refuses_is_a_dead_letter(platform, broker, tables):
    """A unique violation also means that two transactions applied one event, so it was retried for ever."""
    delta = tables("delta")
    delta.execute("create unique index mine on crm.visit_log (service) where service like 'unique%'")
    try:
        before, poison = count(delta), visit(service="unique 1")
        platform.send("delta", visit(service="unique 1"))
        wait_until(lambda: count(delta) == before + 1, SOON, "the first one is applied")
        platform.send("delta", [visit(service="unique 2"), poison, visit(service="unique 3"), visit()])
        wait_until(lambda: poison["id"] in dead(broker, platform), SOON, "the event is a dead letter")
        assert "mine" in dead(broker, platform)[poison["id"]]
        wait_until(lambda: count(delta) == before + 4, SOON, "the others are applied")
        assert "delta" not in platform.held()
    finally:
        delta.execute("drop index crm.mine")


def test_an_error_of_the_schema_blames_no_event(platform, broker, tables):
    """Without a table every event fails: they wait until somebody repairs it."""
    delta, e = tables("delta"), visit()
    before = count(delta)
    delta.execute("alter table crm.visit_log rename to visit_log_away")
    try:
        platform.send("delta", e)
        wait_until(lambda: "delta" in platform.held(), SOON, "its events are held")
        assert e["id"] not in dead(broker, platform)
    finally:
        delta.execute("alter table crm.visit_log_away rename to visit_log")
    wait_until(lambda: count(delta) == before + 1, SOON, "the held event is applied")


def test_a_customer_with_many_locations_is_like_any_other(platform, broker, tables):
    """The locations of a customer were part of an index entry, which has a limit of 2,704 bytes."""
    cursor, customer = tables("epsilon"), str(uuid.uuid4())

    def event(type, **data):
        return {**visit(), "type": type, "data": {"customer_id": customer, **data}}

    def built():
        cursor.execute("select bool_and(live_version is not null) from crm.read_model")
        return cursor.fetchone()[0]
    wait_until(built, 2 * SOON, "the live models are complete")
    codes = ["".join(random.choices("абвгдежзийклмнопрстуфхцчшщъыьэюя", k=60)) for _ in range(60)]  # what repeats would be compressed
    platform.send("epsilon", [event("customer.upserted")] + [event("transaction.recorded", id=str(uuid.uuid4()), kind="sale", amount=1) for _ in range(3)])
    platform.send("epsilon", [event("subscription.changed", id=str(uuid.uuid4()), status="active", location_code=c) for c in codes])

    def locations():
        cursor.execute("select cardinality(location_codes) from crm.customer_attributes_live where customer_uuid = %s", (customer,))
        return cursor.fetchall()
    wait_until(lambda: locations() == [(60,)], SOON, "all subscriptions are applied")
    assert not platform.held()
    cursor.execute("select transaction_count, is_active_subscriber from crm.customer_transactions_live where customer_uuid = %s", (customer,))
    assert cursor.fetchall() == [(3, True)]
    # A filter that uses the index finds the customer by any of the locations.
    answer = platform.post("/api/v1/tenants/epsilon/segments/count", {"filter": {"and": [
        {"attribute": "is_active_subscriber", "operator": "eq", "value": True},
        {"attribute": "transaction_count", "operator": "gte", "value": 3, "withinDays": 365},
        {"attribute": "location_codes", "operator": "any", "value": [codes[-1]]}]}}).expect(200).json
    assert answer["count"] == 1, answer


def peak_mb(process):
    with open("/proc/%d/status" % process.pid) as f:
        return int(next(line for line in f if line.startswith("VmHWM")).split()[1]) // 1024


def test_a_tenant_cannot_fill_the_memory_of_the_platform(platform, pg):
    """All rows of a result are kept in memory, and the owner of the database decides how many there are."""
    platform.add_tenant("vast")
    cursor = tenant_cursor(pg, "vast")
    cursor.execute("drop function crm.list_segments; create function crm.list_segments(p_args json) returns table (status int, body text) "
                   "language sql as $$ select 200, repeat('x', 1000000) from generate_series(1, 1000) $$")
    answer = platform.get("/api/v1/tenants/vast/segments", timeout=120)
    assert answer.status == 503 and "larger than" in answer.json["error"], answer
    assert peak_mb(platform.process) < 500
    event = visit()
    platform.send("epsilon", event)
    other = tenant_cursor(pg, "epsilon")
    wait_until(lambda: rows(other, "select count(*) from crm.visit_log where id = %s", event["data"]["id"]) == [(1,)], SOON, "other tenants are served")
    other.connection.close()
    cursor.connection.close()


def rows(cursor, text, *args):
    cursor.execute(text, args)
    return cursor.fetchall()


def test_a_tenant_cannot_abort_the_platform(platform, pg):
    """The owner of a tenant's database may replace our functions and write any data."""
    platform.add_tenant("eta")
    cursor, customer = tenant_cursor(pg, "eta"), str(uuid.uuid4())
    platform.send("eta", {**visit(), "type": "customer.upserted", "data": {"customer_id": customer}})
    wait_until(lambda: count(cursor, "customer") == 1, SOON, "the customer is there")
    cursor.execute("insert into crm.wallet_account (id, customer_id, balance, last_topup_at, updated_at) "
                   "values (gen_random_uuid(), %s, 'NaN', 'infinity', '-infinity')", (customer,))
    cursor.execute("select crm.changed(array[%s]::uuid[], true, true)", (customer,))
    platform.post("/api/v1/tenants/eta/segments/preview", {"filter": {"attribute": "is_blocked", "operator": "eq", "value": False}})

    def replace(name, returns, body):
        cursor.execute("select pg_get_function_identity_arguments(oid) from pg_proc where pronamespace = 'crm'::regnamespace and proname = %s", (name,))
        ((arguments,),) = cursor.fetchall()
        cursor.execute("drop function crm.%s cascade; create function crm.%s(%s) returns %s language sql as $$ %s $$"
                       % (name, name, arguments.replace("OUT ", ""), returns, body))
    every = "list_segments get_segment save_segment delete_segment segment_counts watch_segment create_campaign get_campaign " \
        "delete_campaign campaign_runs read_models_json visit_model refresh_view refresh_failed fill_live drop_live swap_view check_live ingest"
    some_id = str(uuid.uuid4())
    requests = [("GET", "segments"), ("POST", "segments"), ("GET", "segments/" + some_id), ("PUT", "segments/" + some_id),
                ("DELETE", "segments/" + some_id), ("GET", "segments/%s/history" % some_id), ("GET", "campaigns"), ("POST", "campaigns"),
                ("GET", "campaigns/" + some_id), ("GET", "campaigns/%s/runs" % some_id), ("DELETE", "campaigns/" + some_id),
                ("GET", "read-models"), ("POST", "segments/count"), ("POST", "segments/preview"), ("POST", "segments/explain"),
                ("POST", "read-models/refresh")]
    body = {"name": "n", "filter": {"attribute": "is_blocked", "operator": "eq", "value": False}, "segment": some_id, "queue": "q",
            "template": {}, "kind": "now", "customer": customer}
    for returns, answer in (("table (a text, b bytea)", "select 'nonsense', null::bytea union all select null, '\\x00'"),
                            ("table (status int8, body int8)", "select 1::int8 << 40, 7::int8"),
                            ("table (status int4, body text)", "select 200, null where false")):
        for name in every.split():
            replace(name, returns, answer)
        platform.send("eta", visit())
        for method, path in requests:
            status = platform.request(method, "/api/v1/tenants/eta/" + path, body if method in ("POST", "PUT") else None).status
            assert status >= 400 or (status == 202 and "refresh" in path) or path.endswith(("count", "preview", "explain")), (method, path, status)
    wait_until(lambda: "pg.unexpected_result" in platform.log_text(), SOON, "it is logged")
    platform.add_tenant("theta")
    other = tenant_cursor(pg, "theta")
    platform.send("theta", visit())
    wait_until(lambda: count(other) == 1, SOON, "other tenants are served")
    # A column of another type.
    cursor.execute("alter table crm.customer alter column city type int using 7")
    wrong = platform.post("/api/v1/tenants/eta/segments/preview", {"filter": body["filter"], "path": "fallback"})
    assert wrong.status == 500 and "city" in wrong.text, wrong.text
    assert platform.process.poll() is None
    other.connection.close()
    cursor.connection.close()
