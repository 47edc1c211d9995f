"""The read models of a tenant (platform/sql/tenant) without a platform: definitions, refresh, swap, drift."""
import datetime
import threading
import uuid

import psycopg2
import psycopg2.extras
import pytest

import readmodels
from harness import wait_until
from readmodel_db import build, check, columns, connect, customers, database, db, fill, redefine, refresh, same, status, table, writer  # noqa: F401 (fixtures)
from readmodels import MODELS


# --- contents of the models -----------------------------------------------------------------------------------------

def test_every_column_equals_what_python_works_out(connect, db):
    who = customers(40)
    w = writer(connect, 1, who)
    for _ in range(60):
        w.batch(20)
    build(db)

    rows = {}
    for name in ("customer", "subscription_account", "wallet_account", "package_account", "transaction_log", "visit_log", "purchase_log"):
        rows[name] = [r._asdict() for r in db.rows("select * from crm.%s" % name)]

    def of(name, c):
        return [r for r in rows[name] if str(r["customer_id"]) == str(c["customer_uuid"])]
    one, two = table(db, "customer_attributes_mv"), table(db, "customer_transactions_mv")
    assert len(rows["customer"]) > 20 and set(one) == set(two) == {c["customer_uuid"] for c in rows["customer"]}
    for c in rows["customer"]:
        want = readmodels.attributes(c, of("subscription_account", c), of("wallet_account", c), of("package_account", c))
        assert {k: one[c["customer_uuid"]][k] for k in want} == want
        want = readmodels.transactions(c, of("subscription_account", c), of("transaction_log", c), of("visit_log", c), of("purchase_log", c))
        assert {k: two[c["customer_uuid"]][k] for k in want} == want
    # Nothing is left out of the comparison but what is copied from the customer as it is.
    copied = {"id", "customer_uuid", "last_name", "email", "phone", "gender", "postal_code", "country", "language", "source",
              "home_location", "birth_date", "email_opt_in", "sms_opt_in", "is_blocked", "created_at", "updated_at"}
    assert set(next(iter(one.values()))) - copied == set(readmodels.attributes(rows["customer"][0], [], [], []))
    assert set(next(iter(two.values()))) - copied == set(readmodels.transactions(rows["customer"][0], [], [], [], []))


@pytest.mark.parametrize("days", [1, 7, 30, 90, 366])
def test_the_last_days_are_counted_without_a_clock_in_the_view(connect, db, days):
    who = customers(20)
    w = writer(connect, 2, who)
    for _ in range(40):
        w.batch(20)
    build(db)
    for today in (datetime.date(2026, 11, 2), datetime.date(2026, 11, 20)):
        since = today - datetime.timedelta(days=days)
        exact = dict(db.rows("""select customer_id, count(*) from crm.transaction_log
                               where (created_at at time zone 'UTC')::date > %s group by 1""", since))
        for k in (1, 3, 10):
            found = {r[0] for r in db.rows("select customer_uuid from crm.customer_transactions_mv where last_transaction_days[%s] > %s", k, since)}
            assert found == {c for c, n in exact.items() if n >= k and c in table(db, "customer_transactions_mv")}


# --- refresh --------------------------------------------------------------------------------------------------------

def test_a_view_is_refreshed_only_when_data_changed(connect, db):
    w = writer(connect, 3, customers(10))
    w.batch(20)
    assert status(db, "customer_attributes").needs_build
    build(db)
    assert refresh(db, "customer_attributes").action == "clean"
    assert not status(db, "customer_attributes").is_stale
    w.batch(20)
    s = status(db, "customer_attributes")
    assert s.is_stale and s.last_data_change_at > s.last_refresh_at and s.stale_seconds > 0
    assert refresh(db, "customer_attributes").action == "refreshed"
    assert refresh(db, "customer_attributes").action == "clean"
    assert refresh(db, "customer_attributes", True).action == "refreshed"
    s = status(db, "customer_attributes")
    assert s.rows == len(table(db, "customer_attributes_mv")) and s.refreshes == 3 and not s.is_refreshing


def test_the_first_change_makes_a_view_stale(connect, db):
    build(db)
    assert not any(status(db, model).is_stale for model in MODELS)
    writer(connect, 18, customers(5)).batch(30)
    assert all(status(db, model).is_stale for model in MODELS)


def test_a_change_that_commits_during_a_refresh_is_not_lost(connect, db):
    who = customers(5)
    writer(connect, 4, who).batch(10)
    build(db)
    late = connect(autocommit=False)
    late.rows("insert into crm.customer (customer_uuid, created_at, updated_at) values ('00000000-0000-0000-0000-0000000f0000', now(), now())")
    late.rows("select crm.changed(array['00000000-0000-0000-0000-0000000f0000'::uuid], true, false)")
    # The change is noted, and not there to be seen.
    assert refresh(db, "customer_attributes").action == "refreshed"
    late.conn.commit()
    assert status(db, "customer_attributes").is_stale
    assert refresh(db, "customer_attributes").action == "refreshed"
    assert uuid.UUID("00000000-0000-0000-0000-0000000f0000") in table(db, "customer_attributes_mv")
    assert refresh(db, "customer_attributes").action == "clean"


def test_a_new_customer_makes_the_other_view_stale_too(connect, db):
    writer(connect, 5, customers(5)).batch(30)
    build(db)
    db.rows("insert into crm.customer (customer_uuid, created_at, updated_at) values (%s, now(), now())", str(uuid.UUID(int=77)))
    db.rows("select crm.changed(%s::uuid[], true, false)", [str(uuid.UUID(int=77))])
    assert refresh(db, "customer_transactions").action == "refreshed"
    assert uuid.UUID(int=77) in table(db, "customer_transactions_mv")
    db.rows("select crm.changed_attributes('{}', %s::uuid[], '{}', '{}', '{}')", [str(uuid.UUID(int=77))])
    assert refresh(db, "customer_transactions").action == "clean"
    db.rows("select crm.changed(%s::uuid[], true, false)", [str(uuid.UUID(int=77))])  # the customer may subscribe now, in both views
    assert refresh(db, "customer_transactions").action == "refreshed"


def subscribe(db, customer, status, location):
    db.rows("insert into crm.subscription_account (id, customer_id, status, location_code, updated_at) values (%s, %s, %s, %s, now()) "
            "on conflict (id) do update set status = excluded.status, location_code = excluded.location_code", customer, customer, status, location)
    db.rows("select crm.changed_attributes('{}', '{}', %s::uuid[], '{}', '{}')", [customer])
    return [str(u) for u in db.one("select crm.stale_copies(%s::uuid[])", [customer])]


def test_the_other_table_is_computed_only_for_those_whose_copies_there_changed(connect, db):
    writer(connect, 15, customers(5)).batch(30)
    for model in MODELS:
        fill(db, model)
    c = str(uuid.UUID(int=78))
    db.rows("insert into crm.customer (customer_uuid, created_at, updated_at) values (%s, now(), now())", c)
    db.rows("select crm.changed(%s::uuid[], true, false)", [c])
    for status, location, changed in ((2, None, []), (1, None, [c]), (1, None, []), (1, "A", [c]), (1, "A", []), (4, "A", [c]), (3, "A", []), (3, "B", [c])):
        found = subscribe(db, c, status, location)
        assert found == changed, (status, location)
        db.rows("select crm.changed_transactions(%s::uuid[], '{}', '{}', '{}')", found)
        assert same(db, "customer_transactions")


def test_copies_are_taken_for_stale_when_there_is_nothing_to_compare_with(connect, db):
    c = str(uuid.UUID(int=79))
    db.rows("insert into crm.customer (customer_uuid, created_at, updated_at) values (%s, now(), now())", c)
    assert subscribe(db, c, 1, "A") == [], "no read model at all"
    build(db)
    assert subscribe(db, c, 1, "A") == [c], "views"
    fill(db, "customer_transactions")
    assert subscribe(db, c, 1, "A") == [c], "the other model is a view"
    fill(db, "customer_attributes")
    assert subscribe(db, c, 1, "A") == []
    db.rows("alter table crm.customer_transactions_live drop column few_location_codes")
    assert subscribe(db, c, 2, "A") == [], "an older definition has none"


def test_a_clock_that_is_set_back_hides_no_change(connect, db):
    w = writer(connect, 16, customers(5))
    w.batch(30)
    for model in MODELS:  # it was an hour ahead when the data last changed
        db.rows("select setval('crm.%s_changed', (extract(epoch from now() + interval '1 hour') * 1000000)::bigint)" % model)
    build(db)
    w.batch(30)
    for model in MODELS:
        assert status(db, model).is_stale
        assert refresh(db, model).action == "refreshed"
        assert not status(db, model).is_stale


def test_a_change_that_commits_during_a_refresh_leaves_the_view_stale(connect, db):
    """Changes are counted whatever times the two have read, and the count of an unfinished one is not used."""
    writer(connect, 17, customers(5)).batch(30)
    build(db)
    early, late = connect(autocommit=False), connect(autocommit=False)
    for core in (late, early):  # counted in this order
        core.rows("select crm.changed_attributes('{}', '{}', '{}', '{}', '{}')")
    late.conn.commit()
    assert refresh(db, "customer_attributes").action == "refreshed"
    early.conn.commit()
    assert status(db, "customer_attributes").is_stale
    assert refresh(db, "customer_attributes").action == "refreshed"
    assert not status(db, "customer_attributes").is_stale


def test_sums_are_as_wide_as_events_can_make_them(db):
    c = customers(1)[0]
    db.rows("insert into crm.customer (customer_uuid, created_at, updated_at) values (%s, now(), now())", c)
    db.rows("insert into crm.package_account (id, customer_id, status, total_units, remaining_units, updated_at) "
            "select gen_random_uuid(), %s, 1, 2147483647, 2147483647, now() from generate_series(1, 2)", c)
    db.rows("insert into crm.visit_log (id, customer_id, duration_minutes, visited_at) "
            "select gen_random_uuid(), %s, 100000, now() from generate_series(1, 22000)", c)
    db.rows("insert into crm.purchase_log (id, customer_id, quantity, amount, purchased_at) "
            "select gen_random_uuid(), %s, 1000000, 1, now() from generate_series(1, 2200)", c)
    build(db)
    for model in MODELS:
        fill(db, model)
    for suffix in ("mv", "live"):
        assert db.rows("select package_units, package_units_left from crm.customer_attributes_" + suffix) == [(2 * 2147483647, 2 * 2147483647)]
        assert db.rows("select visit_minutes, purchased_units from crm.customer_transactions_" + suffix) == [(2200000000, 2200000000)]


def largest(customer, sign, year):
    """An array of rows for each table, with the values at the ends of what an event may have (platform/src/ingest/rules.c)."""
    def text(n):
        return "\U0001d11e" * n
    at = "%d-%s" % (year, "01-01T00:00:00Z" if sign < 0 else "12-31T23:59:59.999999Z")
    day, price, wealth = at[:10], 9999999999.99, sign * 999999999999.99
    some = [{"at": at, "customer_id": customer, "id": str(uuid.uuid4()), "location_code": text(57) + "%03d" % i} for i in range(30)]
    return [
        [{"at": at, "created_at": at, "customer_id": customer, "birth_date": day, "tags": [text(97) + "%03d" % i for i in range(64)], "email": text(320),
          "city": text(200), "note": text(4000), "home_location": text(60), **{k: text(30) for k in ("gender", "postal_code", "language")}}],
        [{**r, "package_id": 2147483647, "status": 1 + i % 4, "price": price, "currency": text(10), "billing_period": text(30), "started_at": at,
          "next_bill_date": day, "cancelled_at": at} for i, r in enumerate(some)],
        [{**r, "kind": text(60), "balance": wealth, "currency": text(10), "last_topup_at": at, "expires_at": at, "status": 1 + i % 2}
         for i, r in enumerate(some)],
        [{**r, "package_id": 2147483647 - i, "status": 1 + i % 3, "total_units": 2147483647, "remaining_units": 2147483647, "price": price,
          "purchased_at": at, "expires_at": at} for i, r in enumerate(some)],
        [{**r, "kind": ("sale", "refund")[i % 2], "payment_method": text(57) + "%03d" % i, "amount": price, "discount": price, "tip": price}
         for i, r in enumerate(some)],
        [{**r, "service": text(197) + "%03d" % i, "duration_minutes": 100000, "rating": 5} for i, r in enumerate(some)],
        [{**r, "product_id": 2147483647 - i, "category": text(197) + "%03d" % i, "quantity": 1000000, "amount": sign * price} for i, r in enumerate(some)]]


@pytest.mark.parametrize("sign, year", [(1, 2199), (-1, 1900)])
def test_the_largest_events_are_computed_in_both_modes(db, sign, year):
    """An event that one of them could not compute would be refused there, and would stop the refreshes here."""
    one, other = customers(2)
    for model in MODELS:
        fill(db, model)
    for c in (one, other):
        rows = [psycopg2.extras.Json(r) for r in largest(c, sign, year)]
        customer, subscriptions, wallets, packages, transactions, visits, purchases = rows
        assert db.rows("select * from crm.ingest('q', '{0}', '{1}', 1, '{0}', %s::uuid[], '{}', %s, null, %s, %s, null, %s, %s, %s, %s, "
                       "%s::uuid[], '{}', %s::uuid[], %s::uuid[], '{}', %s::uuid[], %s::uuid[], %s::uuid[], %s::uuid[])",
                       [str(uuid.uuid4())], customer, subscriptions, wallets, packages, transactions, visits, purchases, *[[c]] * 7) == []
    build(db)
    for model in MODELS:
        assert check(db, model) == (2, 0)
        assert same(db, model)
    assert db.rows("select distinct wallet_balance from crm.customer_attributes_mv")[0][0] * sign > 0


def test_locations_of_a_customer_fit_into_an_index_entry_or_are_left_out(db):
    c = customers(1)[0]
    db.rows("insert into crm.customer (customer_uuid, created_at, updated_at) values (%s, now(), now())", c)
    for model in MODELS:
        fill(db, model)
    few = "select cardinality(few_location_codes) from crm.customer_transactions_live"
    assert db.one(few) == 0
    for i in range(1, 60):
        db.rows("insert into crm.subscription_account (id, customer_id, status, location_code, updated_at) "
                "values (gen_random_uuid(), %s, 1, %s, now())", c, "%d" % i + "ы" * 50)
        db.rows("select crm.changed(array[%s]::uuid[], true, false)", c)
        assert db.one(few) == (i if i <= 10 else None), i
    assert [check(db, model) for model in MODELS] == [(1, 0), (1, 0)]


def test_the_refresher_is_shown_by_a_lock_that_ends_with_its_connection(connect, db):
    writer(connect, 6, customers(5)).batch(10)
    build(db)
    other = connect(autocommit=False)
    assert refresh(other, "customer_attributes", True).action == "refreshed"  # and does not commit
    s = status(db, "customer_attributes")
    assert s.is_refreshing and s.refreshing_by == "a test" and s.refreshing_pid == other.conn.get_backend_pid()
    assert refresh(db, "customer_attributes", True).action == "busy"
    assert refresh(db, "customer_transactions", True).action == "refreshed"  # one lock for each model
    db.rows("select pg_terminate_backend(%s)", other.conn.get_backend_pid())
    wait_until(lambda: not status(db, "customer_attributes").is_refreshing, 10, "the lock is gone")
    assert refresh(db, "customer_attributes", True).action == "refreshed"


def test_work_mem_is_raised_for_the_refresh_alone(connect, db):
    writer(connect, 7, customers(5)).batch(10)
    before = db.one("show work_mem")
    build(db)
    assert db.one("show work_mem") == before
    open_one = connect(autocommit=False)
    refresh(open_one, "customer_attributes", True)
    assert open_one.one("show work_mem") == "64MB"
    open_one.conn.rollback()
    assert open_one.one("show work_mem") == before


# --- definitions ----------------------------------------------------------------------------------------------------

def test_a_new_definition_is_built_beside_the_old_one_and_swapped(connect, db):
    writer(connect, 8, customers(10)).batch(40)
    build(db)
    fill(db, "customer_attributes")
    redefine(db)
    assert status(db, "customer_attributes").needs_build
    assert refresh(db, "customer_attributes").action == "built"
    assert "twice" not in columns(db, "customer_attributes_mv")

    # A reader of the old one is not disturbed, and does not hold up others.
    reader = connect(autocommit=False)
    reader.rows("select count(*) from crm.customer_attributes_mv")
    assert db.one("select crm.swap_view('customer_attributes')") is False
    db.rows("set lock_timeout = '1ms'")
    db.rows("select count(*) from crm.customer_attributes_mv")
    reader.conn.commit()
    assert db.one("select crm.swap_view('customer_attributes')") is True
    assert "twice" in columns(db, "customer_attributes_mv")
    assert refresh(db, "customer_attributes").action == "clean"

    assert "twice" not in columns(db, "customer_attributes_live")
    fill(db, "customer_attributes")
    assert "twice" in columns(db, "customer_attributes_live")
    assert columns(db, "customer_attributes_live") == columns(db, "customer_attributes_mv")
    assert check(db, "customer_attributes")[1] == 0


def test_columns_without_a_read_model_are_found(connect, db):
    assert db.one("select crm.unknown_columns()") is None  # nothing is built yet
    build(db)
    assert db.one("select crm.unknown_columns()") == []
    db.rows("alter table crm.subscription_account add column discount_code text")
    db.rows("alter table crm.visit_log add column staff_id int")
    assert db.one("select crm.unknown_columns()") == ["subscription_account.discount_code", "visit_log.staff_id"]
    assert db.one("select unknown_columns from crm.visit_model('customer_attributes', 'live')") == \
        "subscription_account.discount_code, visit_log.staff_id"


# --- readers --------------------------------------------------------------------------------------------------------

def test_readers_are_never_blocked(connect, db, record_property):
    """A reader that had to wait 50 ms for a lock would fail with lock_not_available."""
    w = writer(connect, 9, customers(300))
    for _ in range(20):
        w.batch(40)
    build(db)
    for model in MODELS:
        fill(db, model)
    stop, seen, wrong, worst = threading.Event(), [], [], []

    def read(reader):
        reader.rows("set lock_timeout = '50ms'")
        while not stop.is_set():
            for relation in ("customer_attributes_mv", "customer_transactions_mv", "customer_attributes_live", "customer_transactions_live"):
                began = datetime.datetime.now()
                try:
                    seen.append(reader.one("select count(*) from crm." + relation))
                except psycopg2.Error as e:
                    wrong.append((relation, str(e)))
                worst.append((datetime.datetime.now() - began).total_seconds())
    readers = [threading.Thread(target=read, args=(connect(),)) for _ in range(2)]
    for t in readers:
        t.start()
    try:
        for turn in range(6):
            w.batch(40)
            for model in MODELS:
                assert refresh(db, model, True).action == "refreshed"
            if turn % 3 == 1:
                for model in MODELS:
                    redefine(db, model)
                    assert refresh(db, model).action == "built"
                    wait_until(lambda m=model: db.one("select crm.swap_view(%s)", m), 30, "swapped", 0.01)
                    fill(db, model)
    finally:
        stop.set()
        for t in readers:
            t.join()
    record_property("worst_read_ms", round(max(worst) * 1000))
    assert wrong == [] and len(seen) > 20 and min(seen) > 0
