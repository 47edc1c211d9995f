"""Locks are taken in the order of docs/internals/locking.md: derived from the SQL, and forced between two sessions."""
import json
import os
import shutil
import subprocess
import sys
import time
import uuid

import psycopg2
import pytest

import sqlcore
from harness import REPO, Background
from sqlcore import Core, stored


@pytest.fixture(scope="module")
def database(pg):
    name = pg.create_database("locks_" + uuid.uuid4().hex[:8])
    conn = pg.connect(database=name)
    sqlcore.load(conn)
    conn.close()
    return name


@pytest.fixture
def connect(pg, database):
    conns = []

    def make(autocommit=True):
        conn = pg.connect(database=database)
        conn.autocommit = autocommit
        conns.append(conn)
        return Core(conn)
    yield make
    for conn in conns:
        conn.close()


@pytest.fixture
def core(connect):
    return connect()


def crossing(connect, held, statement, *args, wanted):
    """One session takes the locks `held`.  A second one runs a procedure until it waits.  The first one then takes the locks
    `wanted`, which come later in the order, and commits.  Without a deadlock the procedure ends; its rows are returned."""
    first, second, watch = connect(False), connect(), connect()
    first.rows(*held)
    pid = second.one("select pg_backend_pid()")
    running = Background(lambda: second.rows(statement, *args))
    deadline = time.monotonic() + 30
    while watch.one("select wait_event_type from pg_stat_activity where pid = %s", pid) != "Lock":
        assert time.monotonic() < deadline, "the procedure does not wait for the lock that is held"
        time.sleep(0.01)
    first.rows(*wanted)
    first.conn.commit()
    return running.result()


def partitions(core, queue, *names):
    core.configure(queue)
    lanes = core.lanes(*[(queue, n) for n in names])
    stored(core, core.push([(n, ["m0", "m1"]) for n, _ in lanes]))
    return lanes


def owned(core, queue, group):
    """A queue with a fixed set of two partitions whose first one has an owner."""
    core.configure(queue, partitions=2)
    lanes = [n for n, _ in core.lanes((queue, "0"), (queue, "1"))]
    claim(core, queue, group, "0")
    return lanes


def claim(core, queue, group, *names, epoch=0):
    args = {"group": group, "queue": queue, "body": {"owner": "me", "partitions": [{"partition": n, "epoch": epoch} for n in names]}}
    return core.one("select queen.claim_owners(%s)", json.dumps(args))


def test_the_sql_follows_the_documented_order():
    """tools/lock_order.py prints each violation, and the procedures whose list in docs/internals/locking.md is out of date."""
    r = subprocess.run([sys.executable, os.path.join(REPO, "tools", "lock_order.py")], capture_output=True, text=True)
    assert r.returncode == 0, r.stdout + r.stderr


MISTAKES = {
    "a table too early": ("finish", "    v_now := clock_timestamp();",
                          "    perform l.num from queen.lanes l where l.num = any (p_lane) order by l.num for share;",
                          "finish, called by -: lock of queen.lanes"),
    "in a procedure that is called": ("latest_state_of", None,
                                      "create or replace function queen.latest_state_of(p bigint) returns void language plpgsql as $$\n"
                                      "begin\n    perform queen.lock_limited(array['x']);\nend\n$$;\n",
                                      "lock_limited, called by latest_state_of: lock of queen.queues"),
    "in the next turn of a loop": ("save_checkpoints", "        if v_error is null then",
                                   "        perform c.num from queen.consumers c where c.lane = w.lane and c.grp = v_group for update;",
                                   "save_checkpoints, called by -: lock of queen.owners"),
    "by a trigger": ("set_maintenance", "begin",
                     "    perform c.num from queen.consumers c where c.num = 1 for update;\n    update queen.queues q set task = null;",
                     "spread_step, called by spread_options: lock of queen.lanes"),
    "rows without an order": ("move_cursors", "order by c.num for no key update", "for no key update",
                              "move_cursors locks several rows of queen.consumers without an order"),
    "a lock that the page does not have": ("set_maintenance", "begin", "    perform o.lane from queen.owners o where o.lane = 1 for update;",
                                           "docs/internals/locking.md lacks: | `set_maintenance` |"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(tmp_path, mistake):
    proc, place, text, problem = MISTAKES[mistake]
    for folder in ("tools", "docs/internals"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("tools/lock_order.py", "docs/internals/locking.md"):
        shutil.copy(os.path.join(REPO, name), tmp_path / name)
    sql = tmp_path / "broker" / "sql"
    shutil.copytree(os.path.join(REPO, "broker", "sql"), sql)
    path = next(sql.glob("*/%s.sql" % proc), sql / "settle" / (proc + ".sql"))
    if place is None:
        path.write_text(text)
        path = sql / "settle" / "finish.sql"
        place, text = "    v_now := clock_timestamp();", "    perform queen.latest_state_of(1);"
    before = path.read_text()
    assert place in before
    path.write_text(before.replace(place, text if place.startswith("order") else place + "\n" + text, 1))
    r = subprocess.run([sys.executable, str(tmp_path / "tools" / "lock_order.py")], capture_output=True, text=True)
    assert r.returncode == 1 and problem in r.stdout, r.stdout + r.stderr


def test_deleting_a_group_beside_a_change_of_owners(core, connect, queue):
    lanes = owned(core, queue, "g")
    core.consumers("g", *lanes)
    crossing(connect, ("select from queen.owners where lane = any (%s) order by lane for update", lanes),
             "select * from queen.delete_group(%s)", json.dumps({"group": "g", "queue": queue}),
             wanted=("select from queen.consumers where lane = any (%s) order by num for update", lanes))
    assert core.one("select count(*) from queen.owners where lane = any (%s)", lanes) == 0


def test_a_transaction_that_makes_a_consumer_beside_the_deletion_of_a_message(core, connect, queue):
    (lane, lane_id), = partitions(core, queue, "p")
    core.consumers("old", lane)
    rows = crossing(
        connect, ("select from queen.lanes where num = %s for update", lane),
        "select * from queen.transact(0, 0, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',"
        " %s::uuid[], '{old,new}', %s::bytea[], '{f,f}', array[null,null]::uuid[], '{1,2}', '{0,0}', array[null,null]::uuid[],"
        " '{a,b}', null, null, null, '{}')", [lane_id, lane_id], [sqlcore.key("m0").bytes] * 2,
        wanted=("select from queen.consumers where lane = %s order by num for update", lane))
    assert [(r.kind, r.why) for r in rows] == [(1, 0), (1, 0)]


def test_a_change_of_owners_beside_acknowledgements(core, connect, queue):
    lanes = owned(core, queue, "g")
    core.consumers("g", lanes[1])
    core.consumers("g", lanes[0])  # the numbers of the consumers run against those of the lanes
    first, second = [r.num for r in core.rows("select num from queen.consumers where lane = any (%s) order by num", lanes)]
    rows = crossing(connect, ("select from queen.consumers where num = %s for update", first),
                    "select queen.claim_owners(%s) as answer", json.dumps({"group": "g", "queue": queue, "body": {
                        "owner": "you", "steal": True, "partitions": [{"partition": "0", "epoch": 1}, {"partition": "1", "epoch": 0}]}}),
                    wanted=("select from queen.consumers where num = %s for update", second))
    assert [r["success"] for r in rows[0].answer["results"]] == [True, True]


def test_a_first_claim_of_a_partition_beside_the_deletion_of_its_queue(core, connect, queue):
    lanes = owned(core, queue, "g")
    args = {"group": "g", "queue": queue, "body": {"owner": "me", "partitions": [{"partition": "0", "epoch": 1},
                                                                                 {"partition": "1", "epoch": 0}]}}
    try:
        crossing(connect, ("select from queen.lanes where num = any (%s) order by num for update", lanes),
                 "select queen.claim_owners(%s)", json.dumps(args), wanted=("delete from queen.queues where name = %s", queue))
    except psycopg2.Error as e:
        assert e.pgcode in ("40001", "QN001"), e  # the queue went meanwhile
    assert core.one("select count(*) from queen.owners where lane = any (%s)", lanes) == 0


def test_deleting_a_group_by_sql_beside_deleting_it_by_api(core, connect, queue):
    core.configure(queue, retryPolicy={"mode": "scheduled"})
    (lane, lane_id), = core.lanes((queue, "p"))
    stored(core, core.push([(lane, ["m0"])]))
    core.claim(core.consumers("g", lane))
    core.settle(lane_id, "g", ["m0"], [1])
    retry = core.one("select num from queen.lanes where origin = %s", lane)
    crossing(connect, ("select from queen.lanes where num = %s for update", retry),
             "delete from queen.partition_consumers where partition_id = %s and consumer_group = 'g'", lane_id,
             wanted=("select from queen.consumers where lane = %s order by num for update", lane))
    assert core.one("select count(*) from queen.consumers where lane = any (%s)", [lane, retry]) == 0
