"""Reports of owners of partitions about their lanes (platform/sql/control/held): a late report of an earlier owner is refused."""
import os
import threading
import uuid

import psycopg2
import pytest

import sqlcore
from harness import wait_until

SQL = os.path.join(sqlcore.REPO, "platform", "sql", "control")
A, B = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"


@pytest.fixture
def connect(pg):
    name, made = pg.create_database("held_" + uuid.uuid4().hex[:8]), []
    conn = pg.connect(database=name)
    sqlcore.load(conn, SQL, "platform")
    conn.close()

    def make(autocommit=True):
        made.append(pg.connect(database=name, autocommit=autocommit))
        return made[-1].cursor()
    yield make
    for c in made:
        c.close()


@pytest.fixture
def db(connect):
    return connect()


def enter(db, epoch, partition_id=A, instead_of=None):
    """The tenants with lanes; an epoch: that one was here first."""
    db.execute("select tenant, wait_ms from platform.held_enter('q', '3', %s, %s, %s)", (partition_id, epoch, instead_of))
    rows = db.fetchall()
    return rows[0][1] if rows and rows[0][0] is None else [r[0] for r in rows]


def open_lane(db, epoch, tenant, partition_id=A):
    db.execute("select platform.held_open('q', '3', %s, %s, %s, 200, 'why', false)", (partition_id, epoch, tenant))


def close_lane(db, epoch, tenant, partition_id=A):
    db.execute("select platform.held_close('q', '3', %s, %s, %s)", (partition_id, epoch, tenant))


def test_the_next_owner_begins_with_the_lanes_of_the_last(db):
    assert enter(db, 1) == []
    open_lane(db, 1, "t")
    open_lane(db, 1, "u")
    close_lane(db, 1, "u")
    assert enter(db, 2) == ["t"]


def test_an_earlier_owner_cannot_make_forget_a_lane_nor_note_one(db):
    enter(db, 1)
    open_lane(db, 1, "t")
    enter(db, 2)
    for late in (lambda: close_lane(db, 1, "t"), lambda: open_lane(db, 1, "u"),
                 lambda: db.execute("select platform.held_note('q', '3', %s, 1, 't', 9, 200, 'why')", (A,))):
        with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState, match="partition 3 of q has another owner"):
            late()
    assert enter(db, 1) == 2, "refused"
    assert enter(db, 2) == ["t"], "it may ask again"
    db.execute("select attempts from platform.held_lane")
    assert db.fetchall() == [(1,)]


def test_epochs_restart_when_a_queue_is_recreated(db):
    enter(db, 7)
    open_lane(db, 7, "t")
    assert enter(db, 1, B) == ["t"]
    close_lane(db, 1, "t", B)
    assert enter(db, 2, B) == []


def test_a_new_owner_sees_the_unfinished_report_of_the_last_one(connect, db):
    enter(db, 1)
    last = connect(autocommit=False)
    open_lane(last, 1, "t")
    seen = []
    new = threading.Thread(target=lambda: seen.append(enter(connect(), 2)))
    new.start()
    def waits():
        db.execute("select count(*) from pg_locks where not granted")
        return db.fetchone()[0] > 0
    wait_until(waits, 10, "the new owner waits")
    last.connection.commit()
    new.join(20)
    assert seen == [["t"]]


def test_an_owner_goes_on_after_the_control_database_was_restored(db):
    """It is of an earlier epoch then, or has never heard of the partition, and the lanes of the owner are not in it."""
    enter(db, 7)
    open_lane(db, 7, "t")
    for restored in ("update platform.held_partition set epoch = 5", "delete from platform.held_partition"):
        db.execute(restored)
        db.execute("delete from platform.held_lane")
        db.execute("select platform.held_note('q', '3', %s, 7, 't', 2, 200, 'why')", (A,))
        with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState):
            close_lane(db, 6, "t")
        assert enter(db, 7) == ["t"]


def test_an_owner_enters_after_the_broker_was_restored_to_lower_epochs(db):
    enter(db, 9)
    open_lane(db, 9, "t")
    assert enter(db, 3) == 9
    assert enter(db, 3, instead_of=8) == 9, "somebody else was there meanwhile"
    assert enter(db, 3, instead_of=9) == ["t"]
    assert enter(db, 4) == ["t"]
