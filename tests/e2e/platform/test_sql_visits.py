"""Visits of a tenant's read models (platform/sql/control/readmodels): claims, and changes during a visit, with any clock."""
import os
import uuid

import pytest

import sqlcore

SQL = os.path.join(sqlcore.REPO, "platform", "sql", "control")


@pytest.fixture
def db(pg):
    conn = pg.connect(database=pg.create_database("visits_" + uuid.uuid4().hex[:8]))
    sqlcore.load(conn, SQL, "platform")
    core = sqlcore.Core(conn)
    core.rows("insert into platform.tenant (name, kind, database, made, state) values ('t', 'postgresql', 'd', true, 'ready')")
    core.one("select platform.enrol_read_models(true)")
    core.rows("update platform.read_model set wanted_at = null")
    yield core
    conn.close()


def claim(db, who="a"):
    return db.rows("select taken, abandoned_by from platform.claim_visit('t', 'customer_attributes', %s, 15000, 4)", who)[0]


def end(db, who="a"):
    return db.one("select platform.end_visit('t', 'customer_attributes', %s, null, 0, true)", who)


def agenda(db):
    return [r.tenant for r in db.rows("select * from platform.read_model_agenda('UTC')") if r.model == "customer_attributes"]


def set_clock_back(db):
    """As if all that happened so far had happened an hour later."""
    db.rows("update platform.read_model set claimed_at = claimed_at + interval '1 hour', claimed_until = claimed_until + interval '1 hour', "
            "last_change_at = last_change_at + interval '1 hour', first_change_at = first_change_at + interval '1 hour'")


@pytest.mark.parametrize("what", ["platform.note_changes('{t}')", "platform.want_visit('t', null, null)"])
@pytest.mark.parametrize("back", [False, True])
def test_changes_during_a_visit_cause_another_visit(db, what, back):
    db.one("select platform.note_changes('{t}')")
    assert claim(db).taken
    if back:
        set_clock_back(db)
    db.one("select " + what)
    assert end(db) and agenda(db) == ["t"]
    assert claim(db).taken and end(db) and agenda(db) == []


def test_an_incomplete_visit_waits_behind_other_tenants(db):
    db.one("select platform.note_changes('{t}')")
    db.one("select platform.want_visit('t', null, null)")
    assert claim(db).taken
    before = db.rows("select first_change_at, visited_at, failures, wanted_at from platform.read_model where model = 'customer_attributes'")[0]
    assert db.one("select platform.end_visit('t', 'customer_attributes', 'a', null, 30000, false, true)")
    after = db.rows("select first_change_at, visited_at, failures, wanted_at, claimed_by, retry_at > now() + interval '20 s' as pauses, error "
                    "from platform.read_model where model = 'customer_attributes'")[0]
    assert (after.first_change_at, after.visited_at, after.failures) == (before.first_change_at, before.visited_at, before.failures)
    assert after.wanted_at > before.wanted_at and after.claimed_by is None and after.pauses and after.error is None
    assert claim(db).taken and end(db) and agenda(db) == []


def test_a_claim_of_a_dead_process_ends_although_the_clock_was_set_back(db):
    db.one("select platform.note_changes('{t}')")
    assert claim(db, "dead").taken
    assert not claim(db).taken
    set_clock_back(db)
    assert tuple(claim(db)) == (True, "dead")


def test_a_tenant_that_was_migrated_long_after_it_came_is_visited(db):
    db.rows("update platform.tenant set changed_at = now() - interval '1 day', migrated_at = now() + interval '1 s'")
    assert db.one("select platform.enrol_read_models(false)") == 2 and agenda(db) == ["t"]
