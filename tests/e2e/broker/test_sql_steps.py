"""Operations on queues with many partitions run in steps of bounded size (ADR 38)."""
import json
import threading
import time
import uuid

import pytest

import sqlcore
from sqlcore import Core, stored

CONTENTS = ("segments", "message_keys", "scheduled", "skips", "consumers", "dead_letter_queue", "lane_due", "message_traces",
            "correlations", "attempts", "owners")
PARTS, MESSAGES = 7, 4


@pytest.fixture(scope="module")
def database(pg):
    name = pg.create_database("steps_" + uuid.uuid4().hex[:8])
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
        core = Core(conn)
        core.rows("set queen.step_lanes = 3")
        core.rows("set queen.step_rows = 15")
        core.rows("set jit = off; set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set enable_hashjoin = off;"
                  " set enable_mergejoin = off; set enable_bitmapscan = off")
        if not autocommit:
            conn.commit()
        return core
    yield make
    for conn in conns:
        conn.close()


@pytest.fixture
def core(connect):
    return connect()


def fill(core, queue, groups=("g", "h")):
    """PARTS partitions with MESSAGES segments each, groups, dead letters, retry lanes, skips and messages that wait."""
    core.configure(queue, retryPolicy={"mode": "scheduled"})
    lanes = core.lanes(*[(queue, "p%d" % i) for i in range(PARTS)])
    for i in range(MESSAGES):
        stored(core, core.push([(n, ["m%d" % i]) for n, _ in lanes]))
    for group in groups:
        core.claim_hot(core.consumers(group, *[n for n, _ in lanes]))
        for n, lane_id in lanes:
            core.settle(lane_id, group, ["m0"], [1])
        core.settle(lanes[0][1], group, ["m1"], [2])
    for n, lane_id in lanes[:2]:
        core.rows("select * from queen.move_to_dlq(%s)", json.dumps({"partitionId": str(lane_id), "transactionId": "m2",
                                                                     "body": {"consumerGroup": groups[0]}}))
    return [n for n, _ in lanes]


def steps(core, function, **args):
    """Calls a function until it is done; (number of calls, last answer)."""
    for n in range(1, 500):
        (row,) = core.rows("select status, answer::text as answer from queen.%s(%%s::jsonb)" % function, json.dumps(args))
        args = json.loads(row.answer)
        if row.status != 0:
            assert row.status == 200, row
            return n, args
    raise AssertionError("%s does not end" % function)


def chore(core):
    n = 0
    while core.one("select queen.forget_deleted()"):
        n += 1
        assert n < 500
    return n


def wait_until_blocked(core, session, thread):
    until = time.time() + 30
    while not core.one("select cardinality(pg_blocking_pids(%s)) > 0", session.conn.info.backend_pid):
        assert time.time() < until and thread.is_alive()
        time.sleep(0.01)


def nothing_is_left(core):
    for table in CONTENTS:
        assert core.one("select count(*) from queen.%s t where not exists (select from queen.lanes l where l.num = t.lane)"
                        % table) == 0, table
    assert core.one("select count(*) from queen.lanes l where not exists"
                    " (select from queen.queues q where q.id = coalesce(l.origin_queue, l.queue_id))") == 0
    assert core.one("select count(*) from queen.consumer_states t where not exists"
                    " (select from queen.consumers c where c.num = t.consumer)") == 0
    for table in ("deleted_queues", "deleted_lanes"):
        assert core.one("select count(*) from queen.%s" % table) == 0, table


def test_a_queue_is_deleted_in_steps(core, queue):
    fill(core, queue)
    others = fill(core, queue + "-other")
    n, answer = steps(core, "delete_queue", queue=queue)
    assert n > 2 and answer == {"deleted": True, "queue": queue, "existed": True}
    assert core.one("select count(*) from queen.lanes l where l.queue_id not in (select id from queen.queues) and l.origin is null") == 0
    assert chore(core) > 2
    nothing_is_left(core)
    assert core.one("select count(*) from queen.segments where lane = any (%s)", others) == PARTS * MESSAGES
    assert steps(core, "delete_queue", queue=queue) == (1, {"deleted": True, "queue": queue, "existed": False})


@pytest.mark.parametrize("how", ["delete_queue", "sql"])
def test_the_chore_finishes_an_interrupted_deletion(core, queue, how):
    old = fill(core, queue)
    if how == "sql":
        core.rows("delete from queen.queues where name = %s", queue)
    else:
        core.rows("select queen.delete_queue(%s)", json.dumps({"queue": queue}))
    # The name is free at once, and the new queue has nothing to do with the old one.
    assert core.rows("select * from queen.discover(%s, null, 'g', '', '', '', '')", queue) == []
    new = fill(core, queue)
    assert not set(old) & set(new)
    chore(core)
    nothing_is_left(core)
    assert core.one("select count(*) from queen.segments where lane = any (%s)", new) == PARTS * MESSAGES
    core.rows("set queen.step_lanes = 100")  # one page
    assert len(core.rows("select * from queen.discover(%s, null, 'g', '', '', '', '')", queue)) == PARTS


def test_a_repeated_deletion_finishes_the_first_one(core, queue):
    """The broker of the first deletion died, and the client repeats the request.  After its answer no old partition accepts messages."""
    old = fill(core, queue)
    core.rows("select queen.delete_queue(%s)", json.dumps({"queue": queue}))
    new = fill(core, queue)
    stored(core, core.push([(old[-1], ["too-early"])]))
    core.rows("select queen.delete_queue(%s)", json.dumps({"queue": queue}))
    n, answer = steps(core, "delete_queue", queue=queue)
    assert n > 2 and answer == {"deleted": True, "queue": queue, "existed": False}
    assert [r.status for r in core.push([(n, ["lost"]) for n in old + new])] == [3] * 2 * PARTS
    chore(core)
    nothing_is_left(core)


def test_a_held_consumer_keeps_only_its_own_partition(core, connect, queue):
    """One group holds on to a consumer: the contents of all other deleted partitions go."""
    lanes = fill(core, queue)
    consumer, = core.consumers("g", lanes[0])
    holder = connect(autocommit=False)
    holder.rows("select from queen.consumers where num = %s for no key update", consumer)
    core.rows("set lock_timeout = '50ms'")
    steps(core, "delete_queue", queue=queue)
    chore(core)
    for table in CONTENTS:
        assert core.one("select count(*) from queen.%s where lane = any (%%s)" % table, lanes[1:]) == 0, table
    assert core.one("select count(*) from queen.segments where lane = %s", lanes[0]) == MESSAGES
    holder.conn.commit()
    chore(core)
    nothing_is_left(core)


@pytest.mark.parametrize("status, policy", [(1, {"mode": "scheduled"}), (1, {"mode": "inline", "maxAttempts": 1}), (2, {})])
def test_acknowledgements_continue_while_a_partition_is_deleted(core, connect, queue, status, policy):
    """One call for two partitions.  It waits at the first; the queue of the second is deleted meanwhile."""
    names = (queue, queue + "-gone")
    for name in names:
        core.configure(name, retryPolicy=policy)
    lanes = core.lanes(*[(name, "p") for name in names])
    stored(core, core.push([(n, ["m"]) for n, _ in lanes]))
    core.claim_hot(core.consumers("g", *[n for n, _ in lanes]))
    holder, acks = connect(autocommit=False), connect()
    holder.rows("select queen.add_dead_letter((select id from queen.messages where partition_id = %s), %s, %s, 1, 'g', 'x', 0)",
                lanes[0][1], lanes[0][1], lanes[0][0])
    got, key = [], sqlcore.key("m").bytes

    def settle():
        try:
            got.extend(acks.rows(
                "select * from queen.settle(0, %s::uuid[], '{g,g}', %s::bytea[], '{f,f}', array[null, null]::uuid[], '{1,2}', %s::int2[],"
                " array[null, null]::uuid[], '{e,e}', array[null, null]::text[], array[null, null]::text[],"
                " array[null, null]::text[], false)", [i for _, i in lanes], [key, key], [2, status]))
        except Exception as e:  # pylint: disable=broad-except
            got.append(e)
    thread = threading.Thread(target=settle)
    thread.start()
    wait_until_blocked(core, acks, thread)
    steps(core, "delete_queue", queue=names[1])
    holder.conn.rollback()
    thread.join(30)
    assert [getattr(r, "why", r) for r in got] == [0, 1], "the second message is gone"
    assert core.one("select count(*) from queen.dead_letter_queue where lane = %s", lanes[0][0]) == 1
    chore(core)
    nothing_is_left(core)


@pytest.mark.parametrize("rows", [1, 3])
def test_the_contents_of_a_deleted_partition_are_neither_delivered_nor_acknowledged(core, queue, rows):
    lanes = fill(core, queue)
    consumer, = core.consumers("g", lanes[0])
    lane_id = core.one("select id from queen.lanes where num = %s", lanes[0])
    core.rows("set queen.step_rows = %s", rows)
    core.rows("delete from queen.lanes where num = %s", lanes[0])
    assert core.one("select count(*) from queen.segments where lane = %s", lanes[0]) > 0
    assert [r.status for r in core.claim([consumer])[0]] == [5]
    assert [r.status for r in core.claim_hot([consumer])[0]] == [5]
    assert [r.why for r in core.settle(lane_id, "g", ["m3"], [0])] == [1]
    assert [r.status for r in core.push([(lanes[0], ["x"])])] == [3]
    chore(core)
    nothing_is_left(core)


def test_the_chore_does_not_wait_for_locks(core, connect, queue):
    lanes = fill(core, queue)
    stuck = fill(core, queue + "-stuck")
    holder = connect(autocommit=False)
    stored(holder, holder.push([(stuck[-1], ["held"])]))
    core.rows("set lock_timeout = '50ms'")
    # As a deletion looks like whose broker died after the first step.
    for name in (queue + "-stuck", queue):
        core.rows("begin; alter table queen.queues disable trigger forget_queues;"
                  " insert into queen.deleted_queues (id, name) select id, name from queen.queues where name = %s;"
                  " delete from queen.queues where name = %s; alter table queen.queues enable trigger forget_queues; commit",
                  name, name)
    chore(core)
    assert core.one("select count(*) from queen.lanes where num = any (%s)", lanes) == 0
    assert core.one("select array_agg(num) from queen.lanes where num = any (%s)", stuck) == [stuck[-1]]
    holder.conn.commit()
    chore(core)
    nothing_is_left(core)


def test_a_queue_is_cleared_in_steps(core, queue):
    lanes = fill(core, queue)
    before = core.rows("select cursor_seq from queen.consumers c cross join lateral queen.latest_state(c.num)"
                       " where c.lane = any (%s) order by c.num", lanes)
    n, answer = steps(core, "clear_queue", queue=queue)
    assert n > 2 and answer == {"success": True, "queue": queue, "partition": None, "deleted": PARTS * MESSAGES}
    assert core.rows("select cursor_seq from queen.consumers c cross join lateral queen.latest_state(c.num)"
                     " where c.lane = any (%s) order by c.num", lanes) == before
    assert core.one("select coalesce(sum(count), 0) from queen.segments where lane = any (%s)", lanes) == 0
    for table in ("dead_letter_queue", "attempts", "skips", "message_keys", "correlations"):
        assert core.one("select count(*) from queen.%s where lane = any (%%s)" % table, lanes) == 0, table
    assert core.one("select count(*) from queen.lanes where origin = any (%s)", lanes) == 0
    stored(core, core.push([(n, ["m0"]) for n in lanes]))
    core.rows("set queen.step_lanes = 100")  # one page
    assert len(core.rows("select * from queen.discover(%s, null, 'g', '', '', '', '')", queue)) == PARTS
    assert steps(core, "clear_queue", queue=queue, partition="p3")[1]["deleted"] == 1
    chore(core)
    nothing_is_left(core)


@pytest.mark.parametrize("everywhere", [True, False])
def test_a_group_is_deleted_in_steps(core, queue, everywhere):
    group, other = "g-" + queue, "h-" + queue
    lanes = fill(core, queue, (group, other))
    more = fill(core, queue + "-2", (group, other))
    args = {"group": group} if everywhere else {"group": group, "queue": queue}
    n, answer = steps(core, "delete_group", **args)
    assert n > 2 and answer["deletedPartitions"] == PARTS * (2 if everywhere else 1)
    left = core.one("select count(*) from queen.consumers c join queen.lanes l on l.num = c.lane"
                    " where c.grp = %s and l.origin is null", group)
    assert left == (0 if everywhere else PARTS)
    assert core.one("select count(*) from queen.lanes where name = %s and origin = any (%s)", group, lanes) == 0
    assert core.one("select count(*) from queen.skips where grp = %s and lane = any (%s)", group, lanes) == 0
    assert core.one("select count(*) from queen.consumers where grp = %s", other) == 4 * PARTS
    assert core.one("select count(*) from queen.segments where lane = any (%s)", lanes + more) == 2 * PARTS * MESSAGES
    chore(core)
    nothing_is_left(core)


def test_a_retry_of_a_group_that_consumes_while_it_is_deleted_stays(core, queue):
    """The first step has forgotten the group on p0; it begins afresh there, and its delivery fails once more."""
    group = "g-" + queue
    fill(core, queue, (group,))
    lane, lane_id = core.lanes((queue, "p0"))[0]
    ((status, answer),) = core.rows("select status, answer from queen.delete_group(%s)", json.dumps({"group": group}))
    assert status == 0
    consumer, = core.consumers(group, lane)
    assert core.state(consumer).cursor_seq == 0
    core.claim_hot([consumer])
    assert [r.why for r in core.settle(lane_id, group, ["m0"], [1])] == [0]
    steps(core, "delete_group", **answer)
    assert core.state(consumer).cursor_seq == 1
    assert core.one("select count(*) from queen.scheduled w join queen.lanes r on r.num = w.lane where r.origin = %s", lane) == 1
    steps(core, "delete_queue", queue=queue)
    chore(core)
    nothing_is_left(core)


@pytest.mark.parametrize("how", ["select queen.delete_group(jsonb_build_object('group', %s))",
                                 "delete from queen.partition_consumers where consumer_group = %s"])
def test_a_retry_that_was_under_way_goes_with_its_group(core, connect, queue, how):
    """The acknowledgement makes the retry lane.  The deletion has looked for retry lanes before that, and waits for the consumer."""
    group = "g-" + queue
    core.configure(queue, retryPolicy={"mode": "scheduled"})
    ((lane, lane_id),) = core.lanes((queue, "p"))
    stored(core, core.push([(lane, ["m"])]))
    core.claim_hot(core.consumers(group, lane))
    acks, deletes = connect(autocommit=False), connect()
    acks.settle(lane_id, group, ["m"], [1])
    thread = threading.Thread(target=deletes.rows, args=(how, group))
    thread.start()
    wait_until_blocked(core, deletes, thread)
    acks.conn.commit()
    thread.join(30)
    assert core.one("select count(*) from queen.lanes where origin = %s", lane) == 0
    assert core.one("select count(*) from queen.scheduled where grp = %s", group) == 0
    assert core.one("select count(*) from queen.consumers where grp = %s", group) == 0


def test_a_group_seeks_in_steps(core, queue):
    lanes = fill(core, queue, ("g-" + queue,))
    unseen, = [n for n, _ in core.lanes((queue, "unseen"))]
    stored(core, core.push([(unseen, ["a"])]))
    n, answer = steps(core, "seek_group", group="g-" + queue, queue=queue, body={"toEnd": True})
    assert n > 2 and answer["partitionsUpdated"] == PARTS + 2  # and "Default"
    assert core.rows("select distinct st.cursor_seq from queen.consumers c cross join lateral queen.latest_state(c.num) st"
                     " where c.lane = any (%s)", lanes) == [(MESSAGES,)]
    assert core.rows("select * from queen.discover(%s, 'unseen', %s, '', '', '', '')", queue, "g-" + queue)[0].pending is False
    n, answer = steps(core, "seek_group", group="g-" + queue, queue=queue, body={"timestamp": "2000-01-01T00:00:00Z"})
    assert n > 2 and answer["partitionsUpdated"] == PARTS + 2
    assert core.one("select count(*) from queen.skips where lane = any (%s)", lanes) == 0
    assert steps(core, "seek_group", group="nobody", queue=queue, body={"toEnd": True}) [1]["partitionsUpdated"] == 0


@pytest.mark.parametrize("anew", [False, True])
def test_figures_of_many_partitions_are_counted_in_steps(core, queue, anew):
    while core.one("select lanes from queen.refresh_stats(null, false)") > 0:
        pass
    queues = [queue + "-%d" % i for i in range(3)]
    for name in queues:
        fill(core, name)
    if anew:
        core.rows("update queen.stats_pass set seen = null")
    passes = 0
    while core.one("select lanes from queen.refresh_stats(null, false)") > 0:
        passes += 1
        assert passes < 50
    assert passes > 1
    assert core.one("select count(*) from queen.stats_pending") == 0
    for name in queues:
        (row,) = core.rows("select s.total_messages, s.dead_letter_messages, s.child_count from queen.stats s"
                           " join queen.queues q on q.id = s.queue_id where s.stat_type = 'queue' and q.name = %s", name)
        assert (row.total_messages, row.child_count) == (PARTS * MESSAGES, PARTS)
        assert row.dead_letter_messages == core.one("select count(*) from queen.dead_letter_queue d join queen.lanes l on l.num = d.lane"
                                                    " join queen.queues q on q.id = l.queue_id where q.name = %s", name)
        steps(core, "delete_queue", queue=name)
    chore(core)


def test_the_pass_of_the_figures_is_due_again_while_partitions_are_left(core, queue):
    chore = "select lanes, more from queen.stats_chore(86400000, 86400000, 7)"  # due once a day
    rows = core.rows("select queen.stats_chore(0, 0, 7)")  # a reconciliation, so that none is due
    while rows:
        rows = core.rows(chore)
    for i in range(3):
        fill(core, queue + "-%d" % i)
    core.rows("select queen.refresh_stats(null, false)")  # counts a part
    answers = []
    while True:
        rows = core.rows(chore)
        if not rows:
            break
        answers.append(rows[0])
        assert len(answers) < 50
    assert answers and all(a.lanes > 0 for a in answers)
    assert [a.more for a in answers] == [True] * (len(answers) - 1) + [False]
