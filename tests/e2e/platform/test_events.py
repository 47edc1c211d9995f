"""Events into the tables of tenants: checked, in order, once; held while a tenant is away; dead-lettered when they are wrong."""
import re
import time
import uuid

import pytest

import harness
from event_model import Maker, Model, differences, live_differences
from harness import patience, wait_until
from rig_events import Platform, tenant_cursor

TENANTS = ["alpha", "beta", "gamma"]


@pytest.fixture(scope="module")
def platform(pg, broker):
    p = Platform(pg, broker.url, PLATFORM_QUEUE="events-" + uuid.uuid4().hex[:8], PLATFORM_PARTITIONS=8)
    p.start()
    for t in TENANTS + ["delta"]:
        p.add_tenant(t)
    yield p
    assert p.terminate() == 0, p.log_tail()


@pytest.fixture
def tables(pg):
    """tables(tenant): a cursor; closed at the end."""
    made = []

    def make(tenant):
        made.append(tenant_cursor(pg, tenant))
        return made[-1]
    yield make
    for c in made:
        c.connection.close()


@pytest.fixture
def cut(pg):
    """cut(tenant): its database takes no connections, until cut.mend(tenant) or the end of the test."""
    admin = pg.connect()
    away = set()

    def mend(tenant):
        admin.cursor().execute("alter database tenant_%s allow_connections true" % tenant)
        away.discard(tenant)

    def make(tenant):
        away.add(tenant)
        admin.cursor().execute("alter database tenant_%s allow_connections false" % tenant)
        admin.cursor().execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'tenant_%s'" % tenant)
    make.mend = mend
    yield make
    for tenant in list(away):
        mend(tenant)
    admin.close()


def wipe(cursor):
    """The checkpoints stay: without them the database has lost events, and its tenant is held until the platform has looked for them."""
    cursor.execute("truncate crm.customer, crm.subscription_account, crm.wallet_account, crm.package_account, crm.transaction_log, "
                   "crm.visit_log, crm.purchase_log, crm.applied_event")


def visit(customer, **more):
    return {"id": str(uuid.uuid4()), "type": "visit.recorded", "at": "2026-11-16T04:05:06Z",
            "data": {"customer_id": customer, "id": str(uuid.uuid4()), **more}}


def scatter(platform, broker, tenant, events):
    """Past the platform, by customer: tenants share the partitions, and a tenant's events are in many."""
    broker.push([{"queue": platform.env["PLATFORM_QUEUE"], "partitionKey": e["data"]["customer_id"], "transactionId": e["id"],
                  "payload": {**e, "tenant": tenant}} for e in events]).expect(201)


def count(cursor, table):
    cursor.execute("select count(*) from crm." + table)
    return cursor.fetchone()[0]


def state(kind, at, customer, **data):
    return {"id": str(uuid.uuid4()), "type": kind, "at": at, "data": {"customer_id": customer, **data}}


def apply(platform, cursor, tenant, *events):
    """Sends them one after the other and waits for each."""
    for e in events:
        platform.send(tenant, [e])
        wait_until(lambda: rows_of(cursor, "select count(*) from crm.applied_event where id = %s", e["id"]) == [(1,)], patience(20), "it is applied", 0.05)


def rows_of(cursor, text, *args):
    cursor.execute(text, args)
    return cursor.fetchall()


@pytest.mark.parametrize("kind, table, first, second", [
    ("wallet", "wallet_account", {"balance": 5, "status": "active"}, {"balance": 7, "status": "active"}),
    ("package", "package_account", {"total_units": 5, "status": "active"}, {"total_units": 7, "status": "active"}),
    ("subscription", "subscription_account", {"location_code": "A", "status": "active"}, {"location_code": "B", "status": "active"}),
])
def test_an_account_that_changes_its_customer_changes_both_customers(platform, tables, kind, table, first, second):
    cursor, (one, other), account = tables("delta"), [str(uuid.uuid4()) for _ in range(2)], str(uuid.uuid4())
    wait_until(lambda: live_differences(cursor) is not None, patience(60), "the models are live", 0.1)
    apply(platform, cursor, "delta", state("customer.upserted", "2026-11-10T00:00:00Z", one), state("customer.upserted", "2026-11-10T00:00:00Z", other),
          state(kind + ".changed", "2026-11-11T00:00:00Z", one, id=account, **first), state(kind + ".changed", "2026-11-12T00:00:00Z", other, id=account, **second))
    counts = "select %s_count from crm.customer_attributes_live where customer_uuid = any(%%s::uuid[]) order by customer_uuid = %%s::uuid" % kind
    assert rows_of(cursor, counts, [one, other], other) == [(0,), (1,)]
    assert live_differences(cursor) == 0
    # It comes back with an event that is older than the last one: too late.
    apply(platform, cursor, "delta", state(kind + ".changed", "2026-11-11T12:00:00Z", one, id=account, **first))
    assert rows_of(cursor, "select customer_id::text from crm.%s where id = %%s" % table, account) == [(other,)]
    if kind == "wallet":  # an adjustment counts, whoever sends it, and does not move the wallet
        apply(platform, cursor, "delta", state("wallet.adjusted", "2026-11-11T12:00:00Z", one, id=account, delta=10))
        assert rows_of(cursor, "select customer_id::text, balance, updated_at::date::text from crm.wallet_account where id = %s", account) == \
            [(other, 17, "2026-11-12")]
    assert live_differences(cursor) == 0


def test_the_newest_event_wins_whenever_it_arrives(platform, tables):
    cursor, customer = tables("delta"), str(uuid.uuid4())
    city = "select city, updated_at::date::text from crm.customer where customer_uuid = %s"
    apply(platform, cursor, "delta", state("customer.upserted", "2026-11-12T00:00:00Z", customer, city="Rome"),
          state("customer.upserted", "2026-11-11T00:00:00Z", customer, city="Bonn"))
    assert rows_of(cursor, city, customer) == [("Rome", "2026-11-12")]
    apply(platform, cursor, "delta", state("customer.upserted", "2026-11-12T00:00:00Z", customer, city="Oslo"))
    assert rows_of(cursor, city, customer) == [("Oslo", "2026-11-12")]


def test_a_patch_changes_what_it_names(platform, tables):
    cursor, (known, new) = tables("delta"), [str(uuid.uuid4()) for _ in range(2)]
    columns = "select first_name, city, birth_date::text, tags, email_opt_in, created_at::date::text, updated_at::date::text " \
              "from crm.customer where customer_uuid = %s"
    apply(platform, cursor, "delta",
          state("customer.upserted", "2026-11-10T00:00:00Z", known, first_name="Ann", city="Rome", birth_date="1999-12-31", tags=["vip"], email_opt_in=True),
          state("customer.patched", "2026-11-11T00:00:00Z", known, city="Bonn", birth_date=None),
          state("customer.patched", "2026-11-10T12:00:00Z", known, city="Oslo"),  # late
          state("customer.patched", "2026-11-12T00:00:00Z", new, city="Oslo", tags=["new"]))
    assert rows_of(cursor, columns, known) == [("Ann", "Bonn", None, ["vip"], True, "2026-11-10", "2026-11-11")]
    assert rows_of(cursor, columns, new) == [(None, "Oslo", None, ["new"], False, "2026-11-12", "2026-11-12")]
    wait_until(lambda: live_differences(cursor) == 0, patience(60), "the models are live", 0.1)
    assert rows_of(cursor, "select city from crm.customer_attributes_live where customer_uuid = %s", known) == [("Bonn",)]



def dead(broker, platform):
    """Newest first."""
    return broker.get("/api/v1/dlq?limit=1000&queue=" + platform.env["PLATFORM_QUEUE"]).json["messages"]


def test_the_tables_match_the_events(platform, tables):
    makers = {t: Maker(t, 1) for t in TENANTS}
    models = {t: Model() for t in TENANTS}
    for _ in range(6):
        for t in TENANTS:
            events = [makers[t].event() for _ in range(150)]
            platform.send(t, events)
            for e in events:
                models[t].apply(e)
    for t in TENANTS:
        cursor = tables(t)
        wait_until(lambda: count(cursor, "applied_event") == 900, 20 * harness.TIME_FACTOR, "all events of %s are applied" % t)
        assert differences(cursor, models[t]) == ""
        wait_until(lambda: live_differences(cursor) is not None, 20 * harness.TIME_FACTOR, "the live tables are complete")
        assert live_differences(cursor) == 0
        cursor.execute("select queue, count(*), min(position) from crm.ingest_checkpoint group by 1")
        ((queue, partitions, position),) = cursor.fetchall()
        assert queue == platform.env["PLATFORM_QUEUE"] and partitions == 1 and abs(position / 1e6 - time.time()) < 100
        status, told = platform.ask("POST", "/api/v1/tenants/%s/segments/explain" % t,
                                    {"filter": {"attribute": "is_blocked", "operator": "eq", "value": True}, "customer": makers[t].customers[0]})
        assert status == 200 and (told["ingestion"]["queue"], told["ingestion"]["position"]) == (queue, position)


def test_an_event_is_applied_once_however_often_it_is_sent(platform, broker, tables):
    cursor = tables("alpha")
    wipe(cursor)
    customer, before = str(uuid.uuid4()), platform.numbers()
    top_up = {"id": str(uuid.uuid4()), "type": "wallet.adjusted", "at": "2026-11-16T04:05:06Z",
              "data": {"customer_id": customer, "id": str(uuid.uuid4()), "delta": 5}}
    platform.send("alpha", top_up)
    platform.send("alpha", [top_up, visit(customer), top_up])  # the broker has it
    # Past the broker: other transaction ids, together with new ones, twice in a batch.
    other = {**visit(customer), "tenant": "alpha"}
    key = "alpha/" + customer
    for events in ([{**top_up, "tenant": "alpha"}, other, {**top_up, "tenant": "alpha"}, other], [other]):
        broker.push([{"queue": platform.env["PLATFORM_QUEUE"], "partitionKey": key, "payload": e} for e in events])
    wait_until(lambda: platform.numbers()["duplicate"] - before["duplicate"] == 4, 10, "four were known")
    assert count(cursor, "visit_log") == 2
    cursor.execute("select balance from crm.wallet_account")
    assert cursor.fetchall()[0][0] == 5


def test_events_are_known_over_the_turn_of_the_day(platform, broker, tables):
    cursor, customer, before = tables("beta"), str(uuid.uuid4()), platform.numbers()
    wipe(cursor)
    known, fresh = {**visit(customer), "tenant": "beta"}, {**visit(customer), "tenant": "beta"}

    def push(*events):
        broker.push([{"queue": platform.env["PLATFORM_QUEUE"], "partitionKey": "beta", "payload": e} for e in events]).expect(201)
    push(known)
    wait_until(lambda: count(cursor, "applied_event") == 1, 10 * harness.TIME_FACTOR, "it is applied")
    cursor.execute("select crm.turn_applied_day()")
    today = cursor.fetchone()[0]
    yesterday = (today + 3) % 4
    cursor.execute("update crm.applied_event set slot = %s", (yesterday,))
    cursor.execute("insert into crm.applied_event values (%s, gen_random_uuid())", (today,))  # of four days ago
    cursor.execute("update crm.applied_day set day = (now() at time zone 'utc')::date - case slot when %s then 4 else 1 end where slot in (%s, %s)",
                   (today, today, yesterday))
    push(known, fresh)
    wait_until(lambda: count(cursor, "visit_log") == 2, 10 * harness.TIME_FACTOR, "the new one is applied")
    assert platform.numbers()["duplicate"] - before["duplicate"] == 1
    cursor.execute("select slot, id from crm.applied_event")
    assert {(s, str(i)) for s, i in cursor.fetchall()} == {(yesterday, known["id"]), (today, fresh["id"])}


def test_events_that_are_wrong_are_refused_one_by_one(platform):
    good = visit(str(uuid.uuid4()))
    status, answer = platform.ask("POST", "/api/v1/tenants/alpha/events",
                                  [good, {**good, "id": "x"}, visit("nobody"), {**good, "type": "nothing"}, 7])
    assert status == 202 and answer["accepted"] == 1 and answer["refused"] == 4
    assert [e["status"] for e in answer["events"]] == ["accepted"] + ["refused"] * 4
    assert [e.get("error") for e in answer["events"]] == [None, "id: must be a UUID", "data.customer_id: must be a UUID",
                                                          'type: unknown event type "nothing"', "an event must be a JSON object"]
    status, answer = platform.ask("POST", "/api/v1/tenants/alpha/events", visit("nobody"))
    assert status == 400 and answer["refused"] == 1
    assert platform.ask("POST", "/api/v1/tenants/nobody/events", good) == (404, {"error": 'tenant nobody: there is no such tenant'})
    assert platform.ask("POST", "/api/v1/tenants/alpha/events", {**good, "tenant": "beta"})[1]["events"][0]["error"] == \
        "tenant: must be the tenant of the path"
    assert platform.ask("POST", "/api/v1/tenants/alpha/events", [])[1] == {"events": [], "accepted": 0, "refused": 0}
    assert platform.ask("POST", "/api/v1/tenants/alpha/events", [good] * 10001)[0] == 400


def test_bad_events_in_the_queue_are_dead_letters_with_the_reason(platform, broker, tables):
    cursor, customer = tables("beta"), str(uuid.uuid4())
    wipe(cursor)
    good = {**visit(customer), "tenant": "beta"}
    payloads = [{"a": 1}, {**good, "id": str(uuid.uuid4()), "tenant": "nobody"}, {**good, "data": {**good["data"], "rating": 0}}, good, "text"]
    broker.push([{"queue": platform.env["PLATFORM_QUEUE"], "partitionKey": "beta/" + customer, "payload": p} for p in payloads])
    wait_until(lambda: count(cursor, "visit_log") == 1 and len(dead(broker, platform)) == 4, 15, "one good, four bad")
    assert {m["errorMessage"] for m in dead(broker, platform)} == {
        "tenant: must be the name of a tenant", "tenant nobody: there is no such tenant", "data.rating: is out of range", "an event must be a JSON object"}


def test_every_entrance_checks_events_with_the_same_result(platform, broker, cut, tables):
    """The HTTP endpoint, the queue of events and a held lane refuse the same events with the same texts (ADR 42)."""
    good = {**visit(str(uuid.uuid4())), "tenant": "alpha"}
    hostile = {
        "an event must be a JSON object": "text",
        "id: must be a UUID": {**good, "id": "1' or '1'='1"},
        'type: unknown event type "visit.recorded; drop table"': {**good, "type": "visit.recorded; drop table"},
        "at: must be a time with zone such as 2026-11-16T04:05:06Z, from 1900 to 2199": {**good, "at": "9999-12-31T23:59:59Z"},
        "data: must be an object": {**good, "data": []},
        "data.customer_id: must be a UUID": {**good, "data": {**good["data"], "customer_id": {"$ref": 1}}},
        "data.id: must be given": {**good, "data": {**good["data"], "id": None}},
        "data.duration_minutes: must be a whole number": {**good, "data": {**good["data"], "duration_minutes": 1e300}},
        "data.service: is too long": {**good, "data": {**good["data"], "service": "x" * 201}},
        "data.is_admin: unknown member of visit.recorded": {**good, "data": {**good["data"], "is_admin": True}},
    }
    queue = platform.env["PLATFORM_QUEUE"]
    wipe(tables("alpha"))

    status, answer = platform.ask("POST", "/api/v1/tenants/alpha/events", list(hostile.values()))
    assert status == 400 and [e["error"] for e in answer["events"]] == list(hostile)

    def reasons(of):
        return {m["errorMessage"] for m in broker.get("/api/v1/dlq?queue=%s&limit=1000" % of).json["messages"]}

    broker.push([{"queue": queue, "partitionKey": "alpha", "payload": e} for e in hostile.values()])
    wait_until(lambda: set(hostile) <= reasons(queue), 15 * harness.TIME_FACTOR, "all of them are dead letters")

    cut("alpha")
    platform.send("alpha", [good])
    wait_until(lambda: platform.held().get("alpha", {}).get("events", 0) >= 1, 15 * harness.TIME_FACTOR, "the event is held")
    lanes = broker.get("/api/v1/resources/partitions?queue=%s.held" % queue).json["partitions"]
    lane = [p["name"] for p in lanes if p["name"].endswith("/alpha") and p["messages"]["pending"] + p["messages"]["processing"] > 0][0]
    broker.push([{"queue": queue + ".held", "partition": lane, "payload": e} for e in hostile.values()])
    cut.mend("alpha")
    wait_until(lambda: not platform.held(), 30 * harness.TIME_FACTOR, "the lane is empty")
    wait_until(lambda: set(hostile) <= reasons(queue + ".held"), 15 * harness.TIME_FACTOR, "all of them are dead letters of the lane")
    assert count(tables("alpha"), "visit_log") == 1


def test_data_that_only_the_database_refuses_costs_that_event_alone(platform, broker, tables):
    cursor, customer, wallet = tables("beta"), str(uuid.uuid4()), str(uuid.uuid4())
    wipe(cursor)
    n = len(dead(broker, platform))

    def adjust(delta):
        return {"id": str(uuid.uuid4()), "type": "wallet.adjusted", "at": "2026-11-16T04:05:06Z",
                "data": {"customer_id": customer, "id": wallet, "delta": delta}}
    full = {"id": str(uuid.uuid4()), "type": "wallet.changed", "at": "2026-11-16T04:05:06Z",
            "data": {"customer_id": customer, "id": wallet, "balance": 999999999999.99, "status": "active"}}
    platform.send("beta", [full])
    wait_until(lambda: count(cursor, "wallet_account") == 1, 10, "the wallet is full")
    platform.send("beta", [visit(customer), adjust(9), visit(customer), adjust(-1), visit(customer)])
    wait_until(lambda: count(cursor, "visit_log") == 3 and len(dead(broker, platform)) == n + 1, 10, "only the overflow is dead")
    cursor.execute("select balance from crm.wallet_account")
    assert str(cursor.fetchone()[0]) == "999999999998.99"
    assert "numeric field overflow" in dead(broker, platform)[0]["errorMessage"]
    assert "/beta" not in "".join(line for line in platform.log_text().splitlines() if "event=held.opened" in line), "beta was never unavailable"


def test_a_tenant_that_is_away_does_not_stall_the_others_and_loses_nothing(platform, broker, cut, tables):
    """Its database refuses connections: its events wait in lanes, the others go on; then everything is applied in order."""
    makers = {t: Maker(t, 2) for t in TENANTS}
    models = {t: Model() for t in TENANTS}
    cursors = {t: tables(t) for t in TENANTS[1:]}
    for t in TENANTS:
        wipe(tables(t))
    cut("alpha")
    for _ in range(4):
        for t in TENANTS:
            events = [makers[t].event() for _ in range(50)]
            scatter(platform, broker, t, events)
            for e in events:
                models[t].apply(e)
        time.sleep(0.3)
    for t in TENANTS[1:]:
        wait_until(lambda: count(cursors[t], "applied_event") == 200, 10 * harness.TIME_FACTOR, "the others are not stalled")
        assert differences(cursors[t], models[t]) == ""
    wait_until(lambda: platform.held().get("alpha", {}).get("events", 0) >= 200, 15, "all of alpha's wait")
    held = platform.held()["alpha"]
    assert 4 < held["lanes"] <= 8 and held["lastError"] and held["attempts"] >= 1
    # On a busy machine a write of another tenant may take longer than its limit, which holds its events for a moment.
    wait_until(lambda: set(platform.held()) == {"alpha"}, 30, "only alpha's wait")
    cut.mend("alpha")
    wait_until(lambda: not platform.held(), 30 * harness.TIME_FACTOR, "nothing is held any more")
    cursor = tables("alpha")
    assert count(cursor, "applied_event") == 200
    assert differences(cursor, models["alpha"]) == ""
    platform.send("alpha", [visit(str(uuid.uuid4()))])
    wait_until(lambda: count(cursor, "applied_event") == 201, 10, "and it goes on as before")


def test_a_slow_tenant_does_not_stall_the_others(platform, broker, pg, tables):
    """A lock on one of its tables: writes run into their limit, and the events are held."""
    for t in TENANTS:
        wipe(tables(t))
    lock = pg.connect(autocommit=False, database="tenant_beta")
    lock.cursor().execute("lock crm.visit_log in share mode")
    customers = [str(uuid.uuid4()) for _ in range(20)]
    scatter(platform, broker, "beta", [visit(c) for c in customers])
    gamma = tables("gamma")
    scatter(platform, broker, "gamma", [visit(c) for c in customers])
    wait_until(lambda: count(gamma, "visit_log") == 20, 20 * harness.TIME_FACTOR, "gamma's are applied while beta's wait")
    wait_until(lambda: platform.held().get("beta", {}).get("events", 0) >= 20, 10, "beta's are held")
    scatter(platform, broker, "gamma", [visit(c) for c in customers])
    wait_until(lambda: count(gamma, "visit_log") == 40, 20 * harness.TIME_FACTOR, "and while they are held")
    assert count(tables("beta"), "visit_log") == 0 and platform.held()["beta"]["events"] >= 20
    lock.close()
    wait_until(lambda: not platform.held(), 20 * harness.TIME_FACTOR, "beta has caught up")
    assert count(tables("beta"), "visit_log") == 20


def test_a_tenant_that_waits_does_not_keep_the_slot(platform, broker, pg, tables):
    """One transaction at a time, and one that waits for a lock: others begin all the same, long before it is given up."""
    queue = "slots-" + uuid.uuid4().hex[:8]
    other = Platform(pg, broker.url, PLATFORM_QUEUE=queue, PLATFORM_PARTITIONS=2, PLATFORM_WRITE_PARALLEL=1, PLATFORM_WRITE_LIMIT_MS=60000)
    other.start()
    lock = pg.connect(autocommit=False, database="tenant_beta")
    try:
        wait_until(lambda: "queen_platform_owned_partitions 2" in other.get("/metrics/prometheus").text, 20, "it has its partitions")
        for t in ("beta", "gamma"):
            wipe(tables(t))
        lock.cursor().execute("lock crm.visit_log in share mode")

        def push(tenant, partition):
            broker.push([{"queue": queue, "partition": partition, "payload": {"tenant": tenant, **visit(str(uuid.uuid4()))}}]).expect(201)
        push("beta", "0")
        watch = tables("beta")

        def waits():
            watch.execute("select count(*) from pg_locks where not granted and relation = 'crm.visit_log'::regclass")
            return watch.fetchone()[0] == 1
        wait_until(waits, 10, "beta's transaction waits")
        for n in range(1, 4):
            push("gamma", "1")
            wait_until(lambda: count(tables("gamma"), "visit_log") == n, 20, "gamma's does not")
        assert count(tables("beta"), "visit_log") == 0
        lock.rollback()
        wait_until(lambda: count(tables("beta"), "visit_log") == 1, 10, "beta's ends, too")
    finally:
        lock.close()
        assert other.terminate() == 0, other.log_tail()


def test_a_pause_makes_larger_transactions(platform, broker, pg, tables):
    """The first event goes at once; what comes before the pause is over goes together, however many requests it came in."""
    cursor = tables("gamma")
    wipe(cursor)
    other = Platform(pg, broker.url, PLATFORM_QUEUE="pause-" + uuid.uuid4().hex[:8], PLATFORM_PARTITIONS=1, PLATFORM_WRITE_PAUSE_MS=3000)
    other.start()

    def transactions():
        return int(re.search(r'queen_platform_write_events_bucket{le="\+Inf"} (\d+)', other.get("/metrics/prometheus").text)[1])
    try:
        wait_until(lambda: "queen_platform_owned_partitions 1" in other.get("/metrics/prometheus").text, 20, "it has its partition")
        other.send("gamma", visit(str(uuid.uuid4())))
        wait_until(lambda: count(cursor, "visit_log") == 1, 10, "the first one is there")
        for _ in range(5):
            other.send("gamma", visit(str(uuid.uuid4())))
        wait_until(lambda: count(cursor, "visit_log") == 6, 20, "and the others")
        assert transactions() == 2
        other.send("gamma", visit(str(uuid.uuid4())))
    finally:
        assert other.terminate() == 0, other.log_tail()  # it rests, and ends all the same
    assert count(cursor, "visit_log") in (6, 7)


def test_numbers(platform):
    n = platform.numbers()
    assert n["applied"] > 1000 and n["bad"] > 0 and n["duplicate"] > 0 and n["held"] > 0 and 0 < n["visibleP50Ms"] <= n["visibleP99Ms"]
    text = platform.get("/metrics/prometheus").text
    for line in ('queen_platform_events_total{type="visit.recorded",outcome="applied"}', 'queen_platform_events_total{type="unknown",outcome="bad"}',
                 "queen_platform_event_visible_seconds_bucket{", "queen_platform_write_events_bucket{", "queen_platform_owned_partitions 8",
                 "queen_platform_held_lanes 0", "queen_platform_held_events_total ", "queen_platform_write_failures_total "):
        assert line in text, line


def test_events_of_the_future_are_refused(platform, broker, tables):
    cursor, customer = tables("delta"), str(uuid.uuid4())
    e = {**visit(customer), "at": "2150-01-01T00:00:00Z"}
    status, answer = platform.ask("POST", "/api/v1/tenants/delta/events", [e])
    assert status == 400 and answer["events"][0]["error"] == "at: is more than a day in the future"
    queue = platform.env["PLATFORM_QUEUE"]
    scatter(platform, broker, "delta", [e])
    wait_until(lambda: any(e["id"] in str(m) for m in broker.get("/api/v1/dlq?queue=%s&limit=1000" % queue).json["messages"]), patience(20), "a dead letter", 0.1)
    assert rows_of(cursor, "select count(*) from crm.visit_log where customer_id = %s", customer) == [(0,)]
