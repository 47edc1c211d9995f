"""A tenant's database with read models, without a platform: fixtures and helpers of the tests in SQL."""
import uuid

import pytest

import readmodels
import sqlcore
from readmodels import MODELS, Writer


@pytest.fixture
def database(pg):
    name = pg.create_database("tenant_" + uuid.uuid4().hex[:8])
    conn = pg.connect(database=name)
    readmodels.load(conn)
    conn.close()
    return name


@pytest.fixture
def connect(pg, database):
    made = []

    def make(autocommit=True):
        made.append(pg.connect(autocommit=autocommit, database=database))
        return sqlcore.Core(made[-1])
    yield make
    for conn in made:
        conn.close()


@pytest.fixture
def db(connect):
    return connect()


def customers(n, seed=0):
    return [str(uuid.UUID(int=seed * 1000 + i + 1)) for i in range(n)]


def writer(connect, seed, who):
    return Writer(connect(autocommit=False).conn, seed, who)


def refresh(db, model, force=False):
    return db.rows("select action, rows, ms from crm.refresh_view(%s, 'a test', 64, %s)", model, force)[0]


def build(db):
    for model in MODELS:
        assert refresh(db, model).action == "built"
        assert db.one("select crm.swap_view(%s)", model)


def fill(db, model, chunk=50):
    for _ in range(1000):
        if db.one("select crm.fill_live(%s, %s)", model, chunk) == "ready":
            return
    raise AssertionError("never ready")


def check(db, model, n=None):
    return tuple(db.rows("select checked, differing from crm.check_live(%s, %s)", model, n)[0])


def table(db, name):
    return {r["customer_uuid"]: r for r in (r._asdict() for r in db.rows("select * from crm.%s" % name))}


def status(db, model):
    return db.rows("select * from crm.mv_refresh_status where mv_name = %s", model + "_mv")[0]


def redefine(db, model="customer_attributes"):
    """A new version of a definition: one more column."""
    text = db.one("select crm.%s_definition()" % model)
    db.rows("create or replace function crm.%s_definition() returns text language sql immutable as $fn$ select $def$%s$def$ $fn$"
            % (model, text.replace("select c.id,", "select c.id, c.id * 2 as %s," % ("twice" if "twice" not in text else "again"), 1)))


def columns(db, relation):
    return {r[0] for r in db.rows("select attname from pg_attribute where attrelid = %s::regclass and attnum > 0", "crm." + relation)}


def same(db, model):
    """The live table against a view built from nothing."""
    build_action = refresh(db, model, True).action
    if build_action == "built":
        assert db.one("select crm.swap_view(%s)", model)
    return table(db, model + "_live") == table(db, model + "_mv")
