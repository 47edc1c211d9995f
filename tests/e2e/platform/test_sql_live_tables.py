"""Live tables of a tenant's read models (platform/sql/tenant) without a platform."""
import threading
import uuid

import psycopg2
import psycopg2.extras
import pytest

from harness import wait_until
from readmodel_db import build, check, connect, customers, database, db, fill, redefine, refresh, same, writer  # noqa: F401 (fixtures)
from readmodels import MODELS


# --- live -----------------------------------------------------------------------------------------------------------

def test_live_equals_the_full_computation_under_random_changes_by_several_writers(connect, db):
    """Writers share customers; the backfill, a new definition and samples run in between."""
    who = customers(60)
    for _ in range(10):
        writer(connect, 10, who[:30]).batch(20)
    errors = []

    def write(w):
        try:
            for _ in range(60):
                w.batch(1 + w.random.randrange(12))
        except Exception as e:  # reported below
            errors.append(e)
    writers = [threading.Thread(target=write, args=(writer(connect, 20 + i, who[i * 10:i * 10 + 40]),)) for i in range(3)]
    for t in writers:
        t.start()
    for model in MODELS:
        fill(db, model, 7)
        assert check(db, model, 25)[1] == 0
    redefine(db)
    fill(db, "customer_attributes", 7)
    while any(t.is_alive() for t in writers):
        for model in MODELS:
            assert check(db, model, 25)[1] == 0
    # Deadlocks are possible here, since these writers take their customers' rows in any order, and harmless.
    assert all(isinstance(e, psycopg2.errors.DeadlockDetected) for e in errors), errors
    for model in MODELS:
        checked, differing = check(db, model)
        assert checked > 20 and differing == 0
        assert same(db, model)


# How a transaction reports a new customer and a purchase: as people do, and as ingestion does.
CAME = {"whole": "select crm.changed(%(who)s::uuid[], true, false)",
        "parts": """select crm.changed_attributes('{}', %(who)s::uuid[], '{}', '{}', '{}'),
                           crm.changed_transactions(%(who)s::uuid[], '{}', '{}', '{}')"""}
BOUGHT = {"whole": "select crm.changed(%(who)s::uuid[], false, true)",
          "parts": "select crm.changed_transactions('{}', %(who)s::uuid[], '{}', '{}')"}


def tell(core, text, customer):
    with core.conn.cursor() as cur:
        cur.execute(text, {"who": [customer]})


def in_thread(core, work):
    """Runs work(core) and commits; a thread that has begun."""
    t = threading.Thread(target=lambda: (work(core), core.conn.commit()))
    t.start()
    return t


def wait_for_lock(db, core):
    wait_until(lambda: db.one("select count(*) from pg_locks where not granted and pid = %s", core.conn.get_backend_pid()) == 1, 10, "it waits for a lock")


@pytest.mark.parametrize("how", ["whole", "parts"])
def test_a_row_that_is_deleted_while_a_writer_waits_for_it_loses_nothing(connect, db, how):
    """The writer waited for the row, found it deleted and held no lock: the next one who made the customer again did not wait for it."""
    c = str(uuid.UUID(int=5))
    new_customer = "insert into crm.customer (customer_uuid, created_at, updated_at) values (%s, now(), now())"
    db.rows(new_customer, c)
    for model in MODELS:
        fill(db, model)
    deleter, buyer, maker = (connect(autocommit=False) for _ in range(3))
    deleter.rows("delete from crm.customer where customer_uuid = %s", c)
    tell(deleter, "select crm.changed(%(who)s::uuid[], true, true)", c)
    buyer.rows("insert into crm.transaction_log (id, customer_id, kind, amount, created_at) values (gen_random_uuid(), %s, 'sale', 1, now())", c)
    buying = threading.Thread(target=tell, args=(buyer, BOUGHT[how], c))
    buying.start()
    wait_for_lock(db, buyer)
    deleter.conn.commit()
    buying.join()
    maker.rows(new_customer, c)
    making = in_thread(maker, lambda core: tell(core, CAME[how], c))
    wait_until(lambda: not making.is_alive()
               or db.one("select count(*) from pg_locks where not granted and pid = %s", maker.conn.get_backend_pid()) == 1, 10, "it is done, or waits")
    buyer.conn.commit()
    making.join()
    for model in MODELS:
        assert check(db, model) == (1, 0), model


@pytest.mark.parametrize("how", ["whole", "parts"])
def test_two_transactions_with_the_same_new_customer_lose_nothing(connect, db, how):
    for model in MODELS:
        fill(db, model)
    c = str(uuid.UUID(int=5))
    first, second = connect(autocommit=False), connect(autocommit=False)
    first.rows("insert into crm.customer (customer_uuid, created_at, updated_at) values (%s, now(), now())", c)
    tell(first, CAME[how], c)
    first.conn.commit()
    for core in (first, second):
        core.rows("insert into crm.transaction_log (id, customer_id, kind, amount, created_at) values (gen_random_uuid(), %s, 'sale', 1, now())", c)
    tell(first, BOUGHT[how], c)
    waiting = threading.Thread(target=lambda: (tell(second, BOUGHT[how], c), second.conn.commit()))
    waiting.start()
    wait_for_lock(db, second)
    first.conn.commit()
    waiting.join()
    assert db.one("select transaction_count from crm.customer_transactions_live where customer_uuid = %s", c) == 2


@pytest.mark.parametrize("how", ["whole", "parts"])
def test_a_transaction_that_overtakes_its_customer_is_not_lost(connect, db, how):
    for model in MODELS:
        fill(db, model)
    c = str(uuid.UUID(int=6))
    first, second = connect(autocommit=False), connect(autocommit=False)
    second.rows("insert into crm.transaction_log (id, customer_id, kind, amount, created_at) values (gen_random_uuid(), %s, 'sale', 1, now())", c)
    tell(second, BOUGHT[how], c)
    first.rows("insert into crm.customer (customer_uuid, created_at, updated_at) values (%s, now(), now())", c)
    waiting = threading.Thread(target=lambda: (tell(first, CAME[how], c), first.conn.commit()))
    waiting.start()
    wait_until(lambda: db.one("select count(*) from pg_locks where not granted and pid = %s", first.conn.get_backend_pid()) == 1,
               10, "the first one waits")
    second.conn.commit()
    waiting.join()
    assert db.one("select transaction_count from crm.customer_transactions_live where customer_uuid = %s", c) == 1


def test_unchanged_parts_are_not_recomputed(connect, db):
    for model in MODELS:
        fill(db, model)
    c = str(uuid.UUID(int=8))
    db.rows("insert into crm.customer (customer_uuid, created_at, updated_at) values (%s, now(), now())", c)
    tell(db, CAME["parts"], c)
    db.rows("update crm.customer_transactions_live set transaction_count = 99, purchase_count = 98")
    db.rows("insert into crm.visit_log (id, customer_id, visited_at) values (gen_random_uuid(), %s, now())", c)
    db.rows("select crm.changed_transactions('{}', '{}', %s::uuid[], '{}')", [c])
    assert db.rows("select transaction_count, visit_count, purchase_count from crm.customer_transactions_live") == [(99, 1, 98)]


def test_every_column_of_a_live_table_belongs_to_a_part(db):
    for model in MODELS:
        fill(db, model)
        body = db.one("select prosrc from pg_proc where proname = %s", "recompute_%s_parts" % model)
        columns = [r[0] for r in db.rows("""select attname from pg_attribute where attrelid = ('crm.' || %s)::regclass and attnum > 0
                                            and attname not in ('id', 'customer_uuid')""", model + "_live")]
        # crm.stale_copies decides when the whole row is computed for these.
        without = ["is_active_subscriber", "few_location_codes"] if model == "customer_transactions" else []
        assert [c for c in columns if body.count(" %s = part.%s" % (c, c)) != 1] == without


def test_a_live_table_that_an_older_program_made_is_kept_too(connect, db):
    for model in MODELS:
        fill(db, model)
        db.rows("drop function crm.recompute_%s_parts" % model)
    db.rows("update crm.read_model set live_in_parts = false")
    w = writer(connect, 3, customers(20))
    for _ in range(20):
        w.batch(10)
    for model in MODELS:
        assert check(db, model)[1] == 0


INGEST = "select * from crm.ingest('q', %s, %s, 1, '{0}', %s::uuid[], '{}', null, null, null, null, null, null, null, %s::jsonb, null, " \
         "'{}', '{}', '{}', '{}', '{}', '{}', '{}', %s::uuid[], '{}')"


def test_ingestion_reads_by_index_also_while_the_tables_are_new(connect, db):
    """A plan made while a table is empty is used as long as the connection lives."""
    who = customers(40)
    for c in who:
        db.rows("insert into crm.customer (customer_uuid, created_at, updated_at) values (%s, now(), now())", c)
    for model in MODELS:
        fill(db, model)
    tables = ("customer", "visit_log", "customer_transactions_live", "applied_event_0", "applied_event_1", "applied_event_2", "applied_event_3")
    db.rows("select crm.turn_applied_day()")  # which empties a table, and that counts
    db.rows("select pg_stat_force_next_flush()")
    before = dict(db.rows("select relname, seq_scan from pg_stat_user_tables"))
    core = connect()
    for i in range(30):
        some = who[i:i + 5]
        visits = [{"id": str(uuid.uuid4()), "customer_id": c, "at": "2026-11-16T00:00:00Z"} for c in some]
        assert core.rows(INGEST, ["0"], [i], [str(uuid.uuid4()) for _ in some], psycopg2.extras.Json(visits), some) == []
    core.rows("select pg_stat_force_next_flush()")
    core.rows("select 1")
    assert db.one("select n_tup_ins from pg_stat_user_tables where relname = 'visit_log'") == 150
    after = dict(db.rows("select relname, seq_scan from pg_stat_user_tables"))
    assert {t: after[t] - before[t] for t in tables} == dict.fromkeys(tables, 0)
    assert check(db, "customer_transactions") == (40, 0)


def test_a_customer_who_goes_and_comes_again_has_one_row(connect, db):
    for model in MODELS:
        fill(db, model)
    c = str(uuid.UUID(int=7))
    for _ in range(2):
        db.rows("delete from crm.customer where customer_uuid = %s", c)
        db.rows("insert into crm.customer (customer_uuid, created_at, updated_at) values (%s, now(), now())", c)
        db.rows("select crm.changed(%s::uuid[], true, true)", [c])
        for model in MODELS:
            assert check(db, model) == (1, 0)


def test_a_difference_is_counted_and_repaired(connect, db):
    writer(connect, 11, customers(30)).batch(200)
    for model in MODELS:
        fill(db, model)
    n = db.one("select count(*) from crm.customer")
    assert check(db, "customer_attributes") == (n, 0)
    db.rows("update crm.customer_attributes_live set wallet_balance = wallet_balance + 1 where id in (select id from crm.customer limit 2)")
    db.rows("delete from crm.customer_attributes_live where id = (select max(id) from crm.customer)")
    assert check(db, "customer_attributes") == (n, 3)
    assert check(db, "customer_attributes") == (n, 0)
    assert same(db, "customer_attributes")
    r = db.rows("select checked_rows, differing_rows, differed_at from crm.read_model where model = 'customer_attributes'")[0]
    assert r.checked_rows == 3 * n and r.differing_rows == 3 and r.differed_at


def test_read_model_sources_name_the_relation_to_query(connect, db):
    def sources():
        return {r.model: (r.source, r.relation) for r in db.rows("select * from crm.read_model_sources()")}
    writer(connect, 12, customers(10)).batch(50)
    assert sources()["customer_attributes"] == (None, None)
    build(db)
    assert sources()["customer_attributes"] == ("view", "customer_attributes_mv")
    fill(db, "customer_attributes")
    assert sources() == {"customer_attributes": ("live", "customer_attributes_live"), "customer_transactions": ("view", "customer_transactions_mv")}
    writer(connect, 13, customers(10)).batch(50)
    stale = {r.model: r.stale_ms for r in db.rows("select * from crm.read_model_sources()")}
    assert stale["customer_attributes"] == 0 and stale["customer_transactions"] > 0
    db.rows("select crm.visit_model('customer_attributes', 'views')")
    assert sources()["customer_attributes"] == ("view", "customer_attributes_mv")
    assert db.one("select crm.drop_live('customer_attributes')") is True
    writer(connect, 14, customers(10)).batch(50)  # nothing is kept any more, and nothing is missed
    assert refresh(db, "customer_attributes").action == "refreshed"


def test_dropping_or_swapping_a_live_table_does_not_wait_for_readers(connect, db):
    writer(connect, 15, customers(10)).batch(50)
    fill(db, "customer_attributes")
    reader = connect(autocommit=False)
    reader.rows("select count(*) from crm.customer_attributes_live")
    assert db.one("select crm.drop_live('customer_attributes')") is False
    redefine(db)
    assert [db.one("select crm.fill_live('customer_attributes', 1000)") for _ in range(3)] == ["started", "filling", "busy"]
    reader.conn.commit()
    assert db.one("select crm.fill_live('customer_attributes', 1000)") == "ready"


# --- ids of applied events --------------------------------------------------------------------------------------------

def ids_by_slot(db):
    return dict(db.rows("select slot::int, count(*) from crm.applied_event group by 1"))


def apply_id(db, days=0):
    """One id, as on a day so many days from the last one; its slot."""
    if days:
        db.rows("update crm.applied_day set day = day - %s where day > '1970-01-01'", days)
    slot = db.one("select crm.turn_applied_day()")
    db.rows("insert into crm.applied_event values (%s, gen_random_uuid())", slot)
    return slot


@pytest.mark.parametrize("days", [1, 4, 400])
def test_ids_of_the_last_three_days_with_events_are_known_however_long_ago_they_were(db, days):
    """A tenant that was away for four days, or whose clock was four days ahead, forgot the ids of its last day."""
    first = apply_id(db)
    for n in range(1, 4):
        assert apply_id(db, days) == (first + n) % 4
        assert ids_by_slot(db)[first] == 1, "still known"
    assert apply_id(db, days) == first and ids_by_slot(db)[first] == 1, "emptied, and used again"


def test_a_clock_that_is_set_back_turns_nothing(db):
    first = apply_id(db)
    db.rows("update crm.applied_day set day = day + 4 where day > '1970-01-01'")
    assert apply_id(db) == first and ids_by_slot(db) == {first: 2}


def test_the_turn_of_the_day_waits_for_those_who_apply_events(connect, db):
    first = apply_id(db)
    before = connect(autocommit=False)
    before.one("select crm.turn_applied_day()")
    db.rows("update crm.applied_day set day = day - 1 where day > '1970-01-01'")
    seen = []
    after = threading.Thread(target=lambda: seen.append(connect().one("select crm.turn_applied_day()")))
    after.start()
    wait_until(lambda: db.one("select count(*) from pg_locks where not granted") == 1, 20, "it waits")
    before.conn.commit()
    after.join(20)
    assert seen == [(first + 1) % 4]
