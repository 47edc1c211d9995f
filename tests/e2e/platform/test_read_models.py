"""Read models with real platforms and tenants: first build, refresh, two processes, a crash, the bulk window, modes, drift."""
import os
import re
import signal
import time
import uuid

import pytest

import sqlcore
from harness import in_parallel, wait_until
from readmodels import MODELS, Writer

# So quick that a test sees several refreshes.
QUICK = {"PLATFORM_ATTRIBUTES_REFRESH_MS": 300, "PLATFORM_ATTRIBUTES_DEBOUNCE_MS": 100, "PLATFORM_TRANSACTIONS_REFRESH_MS": 300,
         "PLATFORM_TRANSACTIONS_DEBOUNCE_MS": 100, "PLATFORM_REFRESH_POLL_MS": 50, "PLATFORM_LIVE_CHECK_MS": 200}


@pytest.fixture
def connect(pg):
    made = []

    def make(name, autocommit=True):
        made.append(pg.connect(autocommit=autocommit, database="tenant_" + name if "_" not in name else name))
        return sqlcore.Core(made[-1])
    yield make
    for conn in made:
        conn.close()


def models(platform, tenant):
    return {m["model"]: m for m in platform.get("/api/v1/tenants/%s/read-models" % tenant).expect(200).json["models"]}


def work(platform, tenant):
    return {m["model"]: m for m in platform.get("/api/v1/read-models").expect(200).json["readModels"] if m["tenant"] == tenant}


def note(control, tenant):
    """The report of ingestion to the control database after a commit."""
    control.rows("select platform.note_changes(array[%s])", tenant)


def wait_for(platform, tenant, what, test):
    return wait_until(lambda: all(test(m) for m in models(platform, tenant).values()), 30, what)


def customers(n):
    return [str(uuid.UUID(int=i + 1)) for i in range(n)]


def test_a_new_tenant_has_its_models_at_once(make_platform, tenant_name):
    p = make_platform()
    p.add_tenant(tenant_name)
    wait_for(p, tenant_name, "live and built", lambda m: m["live"]["ready"] and m["view"]["built"])
    for m in models(p, tenant_name).values():
        assert m["mode"] == m["source"] == "live" and m["staleMs"] == 0 and not m["view"]["refreshing"] and m["view"]["error"] is None
    w = wait_until(lambda: [w for w in [work(p, tenant_name)] if all(m["visitedAt"] and not m["visitedBy"] for m in w.values())], 10, "visited")[0]
    assert set(w) == set(MODELS) and all(m["failures"] == 0 and m["wantedAt"] is None for m in w.values())


def test_views_are_refreshed_when_data_changed_and_only_then(make_platform, tenant_name, connect):
    p = make_platform(PLATFORM_READ_MODEL="views", **QUICK)
    p.add_tenant(tenant_name)
    wait_for(p, tenant_name, "built", lambda m: m["view"]["built"])
    assert all(m["source"] == "view" and not m["live"]["ready"] for m in models(p, tenant_name).values())
    control, w = connect(p.env["PLATFORM_PG_DB"]), Writer(connect(tenant_name, autocommit=False).conn, 1, customers(20))
    for _ in range(3):
        before = {k: m["view"]["refreshes"] for k, m in models(p, tenant_name).items()}
        w.batch(30)
        assert all(m["view"]["stale"] and m["staleMs"] > 0 for m in models(p, tenant_name).values())
        note(control, tenant_name)
        wait_for(p, tenant_name, "fresh", lambda m: not m["view"]["stale"])
        assert all(m["view"]["refreshes"] == before[k] + 1 for k, m in models(p, tenant_name).items())
    # A report without changes causes a look and no refresh.
    clean, before = p.get("/metrics").json["readModels"]["clean"], {k: m["view"]["refreshes"] for k, m in models(p, tenant_name).items()}
    note(control, tenant_name)
    wait_until(lambda: p.get("/metrics").json["readModels"]["clean"] == clean + 2, 10, "looked")
    assert {k: m["view"]["refreshes"] for k, m in models(p, tenant_name).items()} == before
    text = p.get("/metrics/prometheus").text
    assert 'queen_platform_read_model_stale_seconds{tenant="%s",model="customer_attributes"}' % tenant_name in text
    assert "queen_platform_refreshes_total 6" in text


def event(type_, customer, **data):
    return {"id": str(uuid.uuid4()), "type": type_, "at": "2026-11-16T08:00:00Z", "data": {"customer_id": customer, **data}}


@pytest.mark.parametrize("mode", ["live", "views"])
def test_events_become_visible_without_a_request(make_platform, broker, tenant_name, connect, mode):
    p = make_platform(PLATFORM_READ_MODEL=mode, QUEEN_URL=broker.url, PLATFORM_QUEUE="events-" + tenant_name, **QUICK)
    p.add_tenant(tenant_name)
    wait_for(p, tenant_name, "built", lambda m: m["view"]["built"] and m["live"]["ready"] == (mode == "live"))
    c = str(uuid.uuid4())
    p.post("/api/v1/tenants/%s/events" % tenant_name, [
        event("customer.upserted", c, first_name="Ada"),
        event("transaction.recorded", c, id=str(uuid.uuid4()), kind="sale", amount=12.5)]).expect(202)
    core, suffix = connect(tenant_name), "live" if mode == "live" else "mv"
    query = """select a.first_name, t.transaction_count, t.total_spent from crm.customer_attributes_{0} a
               join crm.customer_transactions_{0} t using (id) where a.customer_uuid = %s""".format(suffix)
    rows = wait_until(lambda: [r for r in core.rows(query, c) if r[1] == 1], 30, "visible")
    assert (rows[0][0], float(rows[0][2])) == ("Ada", 12.5)
    wait_for(p, tenant_name, "fresh", lambda m: m["staleMs"] == 0)
    if mode == "live":  # samples are compared without anybody asking, too
        wait_for(p, tenant_name, "compared", lambda m: m["live"]["checkedRows"] > 0 and m["live"]["differingRows"] == 0)


def test_a_tenant_may_have_its_own_mode(make_platform, tenant_name, connect):
    p = make_platform(**QUICK)
    path = "/api/v1/tenants/%s/read-models" % tenant_name
    p.add_tenant(tenant_name)
    wait_for(p, tenant_name, "live", lambda m: m["source"] == "live")
    assert p.request("PUT", path, {"mode": "views"}).expect(202).json["tenant"] == tenant_name
    wait_for(p, tenant_name, "views", lambda m: m["source"] == "view" and m["mode"] == "views" and not m["live"]["ready"])
    w = Writer(connect(tenant_name, autocommit=False).conn, 2, customers(20))
    w.batch(50)
    p.request("PUT", path, {"mode": "default"}).expect(202)
    wait_for(p, tenant_name, "live", lambda m: m["source"] == "live")
    core = connect(tenant_name)
    for model in MODELS:  # filled from what came meanwhile
        assert core.rows("select checked > 0, differing from crm.check_live(%s, null)", model) == [(True, 0)]


def test_a_refresh_can_be_requested(make_platform, tenant_name, connect):
    p = make_platform(PLATFORM_READ_MODEL="views")  # at its own pace, which is slow
    p.add_tenant(tenant_name)
    wait_for(p, tenant_name, "built", lambda m: m["view"]["built"])
    Writer(connect(tenant_name, autocommit=False).conn, 3, customers(20)).batch(50)
    path = "/api/v1/tenants/%s/read-models/refresh" % tenant_name
    assert p.post(path, {"model": "customer_attributes"}).expect(202).json["wantedAt"]
    wait_until(lambda: not models(p, tenant_name)["customer_attributes"]["view"]["stale"], 20, "refreshed")
    assert models(p, tenant_name)["customer_transactions"]["view"]["stale"]
    p.post(path).expect(202)
    wait_until(lambda: not models(p, tenant_name)["customer_transactions"]["view"]["stale"], 20, "refreshed")


def test_invalid_requests_get_an_error(make_platform, tenant_name):
    p = make_platform()
    p.add_tenant(tenant_name)
    path = "/api/v1/tenants/%s/read-models" % tenant_name
    wait_until(lambda: work(p, tenant_name), 10, "known")
    assert "mode must be" in p.request("PUT", path, {"mode": "fast"}).expect(400).json["error"]
    assert "mode must be" in p.request("PUT", path, {}).expect(400).json["error"]
    assert "a string" in p.request("PUT", path, {"mode": 1}).expect(400).json["error"]
    assert "JSON" in p.request("PUT", path, b"{").expect(400).json["error"]
    assert "model must be" in p.post(path + "/refresh", {"model": "customers"}).expect(400).json["error"]
    for verb, rest in (("GET", ""), ("POST", "/refresh")):
        assert "nobody" in p.request(verb, "/api/v1/tenants/nobody/read-models" + rest).expect(404).json["error"]
    assert "nobody" in p.request("PUT", "/api/v1/tenants/nobody/read-models", {"mode": "live"}).expect(404).json["error"]


@pytest.mark.parametrize("window", ["13:00", "1-2", "13:00-14:00 Atlantis/Capital"])
def test_a_wrong_bulk_window_stops_the_start(make_platform, window):
    p = make_platform(start=False, PLATFORM_BULK_WINDOW=window)
    p.spawn()
    assert p.process.wait(20) == 1
    assert "PLATFORM_BULK_WINDOW" in p.log_text()


def test_the_bulk_window_puts_refreshes_off(make_platform, tenant_name, connect):
    p = make_platform(PLATFORM_READ_MODEL="views", PLATFORM_BULK_WINDOW="00:00-24:00 Europe/Rome", PLATFORM_BULK_DEBOUNCE_MS=600000, **QUICK)
    p.add_tenant(tenant_name)
    wait_for(p, tenant_name, "built", lambda m: m["view"]["built"])  # a first build does not wait
    control = connect(p.env["PLATFORM_PG_DB"])
    Writer(connect(tenant_name, autocommit=False).conn, 4, customers(20)).batch(50)
    note(control, tenant_name)
    looks = p.get("/metrics").json["readModels"]["visits"]
    time.sleep(1.5)  # five times the interval; nothing to poll for, since nothing happens
    assert p.get("/metrics").json["readModels"]["visits"] == looks
    assert all(m["view"]["stale"] for m in models(p, tenant_name).values())


def test_new_columns_of_the_write_model_are_reported(make_platform, tenant_name, connect):
    p = make_platform(**QUICK)
    p.add_tenant(tenant_name)
    wait_for(p, tenant_name, "built", lambda m: m["view"]["built"])
    core = connect(tenant_name)
    core.rows("alter table crm.wallet_account add column points int")
    p.post("/api/v1/tenants/%s/read-models/refresh" % tenant_name).expect(202)
    wait_until(lambda: "readmodel.drift" in p.log_text(), 20, "told")
    assert "wallet_account.points" in p.log_text()
    assert p.get("/api/v1/tenants/%s/read-models" % tenant_name).json["unknownColumns"] == ["wallet_account.points"]
    assert "queen_platform_read_model_unknown_columns" in p.get("/metrics/prometheus").text


def test_a_live_table_that_differs_is_repaired_and_counted(make_platform, tenant_name, connect):
    p = make_platform(PLATFORM_LIVE_CHECK_ROWS=1000, **QUICK)
    p.add_tenant(tenant_name)
    wait_for(p, tenant_name, "live", lambda m: m["source"] == "live")
    core, control = connect(tenant_name), connect(p.env["PLATFORM_PG_DB"])
    Writer(connect(tenant_name, autocommit=False).conn, 5, customers(20)).batch(80)
    core.rows("update crm.customer_attributes_live set wallet_balance = wallet_balance + 7")
    note(control, tenant_name)
    wait_until(lambda: p.get("/metrics").json["readModels"]["differingRows"] > 0, 20, "found")
    assert "readmodel.mismatch" in p.log_text()
    assert core.rows("select differing from crm.check_live('customer_attributes', null)") == [(0,)]
    assert models(p, tenant_name)["customer_attributes"]["live"]["differingRows"] > 0


def test_two_processes_share_the_work_and_never_refresh_a_view_twice(make_platform, connect):
    database = "platform_" + uuid.uuid4().hex[:8]
    env = {"PLATFORM_READ_MODEL": "views", "PLATFORM_REFRESH_PARALLEL": 4, **QUICK}
    one = make_platform(database=database, PLATFORM_ID="one", **env)
    two = make_platform(database=database, PLATFORM_ID="two", **env)
    names = ["t-" + uuid.uuid4().hex[:10] for _ in range(6)]
    in_parallel([lambda n=n: one.add_tenant(n) for n in names])
    for n in names:
        wait_for(two, n, "built", lambda m: m["view"]["built"])
    control = connect(database)
    writers = {n: Writer(connect(n, autocommit=False).conn, 6, customers(20)) for n in names}
    for _ in range(4):
        before = {n: {k: m["view"]["refreshes"] for k, m in models(two, n).items()} for n in names}
        for n in names:
            writers[n].batch(20)
            note(control, n)
        for n in names:
            wait_for(two, n, "fresh", lambda m: not m["view"]["stale"])
            assert {k: m["view"]["refreshes"] for k, m in models(one, n).items()} == {k: v + 1 for k, v in before[n].items()}
    done = [p.get("/metrics").json["readModels"]["refreshed"] + p.get("/metrics").json["readModels"]["built"] for p in (one, two)]
    assert min(done) > 0 and sum(done) == len(names) * len(MODELS) * 5


def test_a_refresher_that_is_killed_is_noticed_and_replaced(make_platform, tenant_name, connect):
    """kill -9 while it refreshes: the lock goes with its connection, the claim with its time."""
    database = "platform_" + uuid.uuid4().hex[:8]
    env = {"PLATFORM_READ_MODEL": "views", **QUICK}
    one = make_platform(database=database, PLATFORM_ID="one", **env)
    one.add_tenant(tenant_name)
    wait_for(one, tenant_name, "built", lambda m: m["view"]["built"])
    core, control = connect(tenant_name), connect(database)
    Writer(connect(tenant_name, autocommit=False).conn, 7, customers(20)).batch(50)

    blocker = connect(tenant_name, autocommit=False)  # a refresh waits for this table, and so takes as long as we like
    blocker.rows("lock table crm.customer in access exclusive mode")
    note(control, tenant_name)

    def refreshing():
        return core.rows("select refreshing_by, refreshing_pid from crm.mv_refresh_status where is_refreshing")
    by = wait_until(refreshing, 10, "refreshing")
    # The name of a start, not of a process: two containers may both have process 1 of platform-1.
    assert all(re.fullmatch("one/[0-9a-f]{16}", r[0]) for r in by), by
    os.kill(one.process.pid, signal.SIGKILL)
    one.process.wait()
    control.rows("update platform.read_model set claimed_until = clock_timestamp() + interval '15 s' where claimed_by is not null")
    two = make_platform(database=database, PLATFORM_ID="two", **env)
    # Noticed although nothing was cleared up: not by a time, but because the connection is gone.
    wait_until(lambda: not [r for r in refreshing() if r[0].startswith("one/")], 10, "the lock is gone")
    assert work(two, tenant_name)["customer_attributes"]["visitedBy"].startswith("one/")  # its claim still runs
    control.rows("update platform.read_model set claimed_until = clock_timestamp()")
    blocker.conn.rollback()
    wait_until(lambda: core.one("select not bool_or(is_stale) from crm.mv_refresh_status"), 20, "refreshed by the other")
    wait_until(lambda: two.get("/metrics").json["readModels"]["abandoned"] > 0, 10, "noticed")
    assert "readmodel.abandoned" in two.log_text() and "by=one/" in two.log_text()


def test_a_process_that_stops_during_a_refresh_hands_the_work_on(make_platform, tenant_name, connect):
    database = "platform_" + uuid.uuid4().hex[:8]
    env = {"PLATFORM_READ_MODEL": "views", **QUICK}
    one = make_platform(database=database, PLATFORM_ID="one", **env)
    one.add_tenant(tenant_name)
    wait_for(one, tenant_name, "built", lambda m: m["view"]["built"])
    core, control = connect(tenant_name), connect(database)
    Writer(connect(tenant_name, autocommit=False).conn, 8, customers(20)).batch(50)
    blocker = connect(tenant_name, autocommit=False)
    blocker.rows("lock table crm.customer in access exclusive mode")
    note(control, tenant_name)
    wait_until(lambda: core.rows("select 1 from crm.mv_refresh_status where is_refreshing"), 10, "refreshing")
    assert one.terminate() == 0
    assert control.rows("select claimed_by from platform.read_model where claimed_by is not null") == []
    blocker.conn.rollback()
    make_platform(database=database, PLATFORM_ID="two", **env)
    wait_until(lambda: core.one("select not bool_or(is_stale) from crm.mv_refresh_status"), 20, "refreshed by the other")


def test_a_failure_is_reported_and_retried(make_platform, tenant_name, connect):
    p = make_platform(PLATFORM_READ_MODEL="views", **QUICK)
    p.add_tenant(tenant_name)
    wait_for(p, tenant_name, "built", lambda m: m["view"]["built"])
    core, control = connect(tenant_name), connect(p.env["PLATFORM_PG_DB"])
    Writer(connect(tenant_name, autocommit=False).conn, 9, customers(20)).batch(50)
    core.rows("drop index crm.%s" % core.one("select indexname from pg_indexes where tablename = 'customer_attributes_mv' and indexname like '%%_id'"))
    core.rows("drop index crm.%s" % core.one("select indexname from pg_indexes where tablename = 'customer_attributes_mv' and indexname like '%%_uuid'"))
    note(control, tenant_name)
    wait_until(lambda: work(p, tenant_name)["customer_attributes"]["failures"] > 0, 20, "failed")
    assert "cannot refresh" in models(p, tenant_name)["customer_attributes"]["view"]["error"]
    w = work(p, tenant_name)["customer_attributes"]
    assert "concurrently" in w["error"] and w["retryAt"]
    core.rows("create unique index on crm.customer_attributes_mv (id)")
    p.post("/api/v1/tenants/%s/read-models/refresh" % tenant_name).expect(202)  # does not wait for the pause
    wait_for(p, tenant_name, "fresh", lambda m: not m["view"]["stale"] and m["view"]["error"] is None)
    wait_until(lambda: work(p, tenant_name)["customer_attributes"]["failures"] == 0, 10, "well again")


def test_tenants_without_changes_cost_nothing(make_platform, connect):
    p = make_platform(PLATFORM_POOL_IDLE_MS=300, **QUICK)
    names = ["t-" + uuid.uuid4().hex[:10] for _ in range(3)]
    in_parallel([lambda n=n: p.add_tenant(n) for n in names])
    for n in names:
        wait_for(p, n, "live", lambda m: m["source"] == "live")
    wait_until(lambda: p.pools()["open"] == 0, 20, "all pools are closed")
    looks, misses = p.get("/metrics").json["readModels"]["visits"], p.pools()["misses"]
    time.sleep(1)  # twenty looks at the agenda
    assert p.pools()["misses"] == misses and p.get("/metrics").json["readModels"]["visits"] == looks


def test_the_mode_of_a_new_tenant_can_be_set_at_once_and_is_listed(make_platform, tenant_name):
    p = make_platform(PLATFORM_REFRESH_POLL_MS=86400000)  # it is not enrolled by itself meanwhile
    p.add_tenant(tenant_name)
    p.request("PUT", "/api/v1/tenants/%s/read-models" % tenant_name, {"mode": "views"}).expect(202)
    modes = {r["effectiveMode"] for r in p.get("/api/v1/read-models").expect(200).json["readModels"] if r["tenant"] == tenant_name}
    assert modes == {"views"}
    p.request("PUT", "/api/v1/tenants/%s/read-models" % tenant_name, {"mode": "default"}).expect(202)
    answer = p.get("/api/v1/read-models").expect(200).json
    assert {(r["mode"], r["effectiveMode"]) for r in answer["readModels"] if r["tenant"] == tenant_name} == {(None, answer["default"])}
    p.remove_tenant(tenant_name)


def test_a_live_table_that_takes_long_does_not_keep_the_place(make_platform, connect):
    """The owner of a database may have replaced our function by one that never ends; a large database takes long as well."""
    p = make_platform(PLATFORM_REFRESH_PARALLEL=1, PLATFORM_REFRESH_POLL_MS=200)
    hog, waits = "t-" + uuid.uuid4().hex[:12], "t-" + uuid.uuid4().hex[:12]
    p.add_tenant(hog)
    wait_for(p, hog, "live and built", lambda m: m["live"]["ready"] and m["view"]["built"])
    tenant = connect(hog)
    tenant.rows("drop function crm.fill_live; create function crm.fill_live(p_model text, p_chunk int) returns text language sql "
                "as $$select pg_sleep(0.05); select 'filling'::text$$; update crm.read_model set live_version = null returning 1")
    p.post("/api/v1/tenants/%s/read-models/refresh" % hog, {}).expect(202)
    wait_until(lambda: all(m["visitedBy"] for m in work(p, hog).values()), 30, "it has the place")
    p.add_tenant(waits)
    wait_until(lambda: all(m["live"]["ready"] and m["view"]["built"] for m in models(p, waits).values()), 150, "the other tenant has its turn")
    wait_until(lambda: any(m["visitedBy"] for m in work(p, hog).values()), 60, "and then the first one again")
    assert all(m["failures"] == 0 and m["error"] is None for m in work(p, hog).values())


def test_a_process_without_a_free_place_does_not_ask_all_the_time(make_platform, connect):
    """A refused claim was repeated at once, for as long as another process had the place."""
    database = "platform_" + uuid.uuid4().hex[:8]
    p = make_platform(database=database, PLATFORM_REFRESH_PARALLEL=1, PLATFORM_REFRESH_POLL_MS=1000)
    busy, waits = "t-" + uuid.uuid4().hex[:12], "t-" + uuid.uuid4().hex[:12]
    for t in (busy, waits):
        p.add_tenant(t)
        wait_for(p, t, "live and built", lambda m: m["live"]["ready"] and m["view"]["built"])
    control = connect(database)
    wait_until(lambda: not control.rows("select 1 from platform.read_model where claimed_by is not null"), 30, "no visit is in progress")
    control.rows("update platform.read_model set claimed_by = 'another', claimed_at = now(), claimed_until = clock_timestamp() + interval '15 s', "
                 "wanted_at = now() where tenant = %s returning 1", busy)
    control.rows("update platform.read_model set wanted_at = now(), wishes = wishes + 1 where tenant = %s returning 1", waits)

    def transactions():
        return control.rows("select xact_commit from pg_stat_database where datname = %s", database)[0][0]

    def hold_for(seconds):
        for _ in range(seconds):
            control.rows("update platform.read_model set claimed_until = clock_timestamp() + interval '15 s' where claimed_by = 'another'")
            time.sleep(1)
    hold_for(2)  # statistics are reported with a delay
    before = transactions()
    hold_for(5)
    n = transactions() - before
    assert work(p, waits)[MODELS[0]]["wantedAt"], "it still waits"
    assert n < 300, "%d transactions in about five polls" % n
    control.rows("update platform.read_model set claimed_by = null, claimed_until = null where tenant = %s returning 1", busy)
    wait_until(lambda: not work(p, waits)[MODELS[0]]["wantedAt"], 30, "it is visited")


def test_changes_of_the_last_transactions_of_a_process_are_reported(make_platform, broker, connect, tenant_name):
    """The part that reports changes stopped before ingestion had finished its transactions: the view stayed as it was."""
    database = "platform_" + uuid.uuid4().hex[:8]
    p = make_platform(database=database, QUEEN_URL=broker.url, PLATFORM_QUEUE="last-" + uuid.uuid4().hex[:8], PLATFORM_PARTITIONS=1,
                      PLATFORM_READ_MODEL="views", PLATFORM_WRITE_LIMIT_MS=60000, PLATFORM_ATTRIBUTES_REFRESH_MS=300000)
    p.add_tenant(tenant_name)
    wait_for(p, tenant_name, "built", lambda m: m["view"]["built"])
    control, lock = connect(database), connect(tenant_name, autocommit=False)
    wait_until(lambda: not control.rows("select 1 from platform.read_model where claimed_by is not null or wanted_at is not null"), 30, "all is quiet")
    lock.rows("lock crm.customer in share mode; select 1")
    p.post("/api/v1/tenants/%s/events" % tenant_name, [{"id": str(uuid.uuid4()), "type": "customer.upserted", "at": "2026-11-16T04:05:06Z",
                                                       "data": {"customer_id": str(uuid.uuid4()), "first_name": "last"}}]).expect(202)
    wait_until(lambda: control.rows("select 1 from pg_stat_activity where datname = %s and wait_event_type = 'Lock'", "tenant_" + tenant_name), 30,
               "the transaction waits")
    before = control.rows("select max(changes) from platform.read_model where tenant = %s", tenant_name)[0][0]
    p.process.send_signal(signal.SIGTERM)
    time.sleep(2)
    assert p.process.poll() is None, "it waits for the transaction"
    lock.rows("rollback; select 1")
    assert p.process.wait(60) == 0
    ((n, reported),) = control.rows("select max(changes), bool_or(first_change_at is not null) from platform.read_model where tenant = %s", tenant_name)
    assert n > before and reported, (n, before, reported)
