"""The functions of broker/sql without a broker: deletion, expiry and rotation."""
import time

import psycopg2
import pytest

from harness import deadline_after, in_parallel
from sqlcore import discover, stored, v7


# --- deleting -------------------------------------------------------------------------------------------------------

TABLES = {"segments": "lane", "message_keys": "lane", "consumers": "lane", "dead_letter_queue": "lane", "lanes": "num"}


def left(core, lane):
    return {t for t, c in TABLES.items() if core.one("select count(*) from queen.%s where %s = %%s" % (t, c), lane)}


@pytest.mark.parametrize("by", ["queue", "partition"])
def test_a_delete_takes_everything_along(core, lane, queue, by):
    core.push([(lane[0], ["a", "b"])])
    consumer = core.consumers("g", lane[0])
    core.settle(lane[1], "g", ["a"], [2])
    assert left(core, lane[0]) == set(TABLES)
    if by == "queue":
        core.rows("delete from queen.queues where name = %s", queue)
    else:
        core.rows("delete from queen.partitions where id = %s", lane[1])
    assert left(core, lane[0]) == set()
    assert core.one("select count(*) from queen.consumer_states where consumer = %s", consumer[0]) == 0


@pytest.mark.parametrize("limited", [False, True])
def test_pushing_claiming_and_creating_while_the_queue_is_deleted(core, connect, queue, limited):
    options = {"maxSize": 1000000} if limited else {}
    stop, lost = time.monotonic() + 3, []
    core.configure(queue, **options)

    def push(c):
        while time.monotonic() < stop:
            pairs = [(queue, "p%d" % i) for i in range(6)]
            lanes = c.lanes(*pairs)
            try:
                results = c.push([(n, [v7()]) for n, _ in lanes], whole=limited) if lanes else []
            except psycopg2.errors.LockNotAvailable:
                continue  # a deletion took longer than a broker waits for a lock; the broker sends the push again
            lost.extend(r for r in results if r.status not in (0, 2, 3, 5))

    def pop(c):
        while time.monotonic() < stop:
            found = discover(c, queue, "g")
            if found:
                rows, lease = c.claim([r.consumer for r in found], batch=100, parts=10)
                for r in {r.lane_id for r in rows if r.status == 0}:
                    c.settle(r, "g", ["x"], [0], [lease])

    def delete(c):
        while time.monotonic() < stop:
            c.rows("delete from queen.queues where name = %s", queue)
            c.configure(queue, **options)
            time.sleep(0.02)
    in_parallel([lambda c=connect(): push(c), lambda c=connect(): push(c), lambda c=connect(): pop(c),
                 lambda c=connect(): delete(c)])
    assert lost == []
    core.rows("delete from queen.queues where name = %s", queue)
    while core.one("select queen.forget_deleted()"):
        pass  # the chore of a broker
    for table, column in TABLES.items():
        if table != "lanes":
            assert core.one("select count(*) from queen.%s t where not exists (select from queen.lanes l where"
                            " l.num = t.%s)" % (table, column)) == 0, table
    assert core.one("select count(*) from queen.lanes l where not exists (select from queen.queues q where"
                    " q.id = l.queue_id)") == 0
    assert core.one("select count(*) from queen.consumer_states t where not exists (select from queen.consumers c where"
                    " c.num = t.consumer)") == 0


# --- expiry ---------------------------------------------------------------------------------------------------------

@pytest.fixture
def only(core):
    """Nothing else is about to expire."""
    core.rows("delete from queen.queues where ages")


def expire(core, limit=1000, evict=True):
    """One step of a pass."""
    rows = core.rows("select * from queen.sweep(%s, %s, 100, 0, 0, 0)", evict, limit)
    return {r.queue_name: r.removed for r in rows if r.queue_name}


def aged(core, lane, seconds):
    core.rows("update queen.segments set created_at = created_at - %s * interval '1 s' where lane = %s", seconds, lane)
    core.rows("update queen.lane_due set evict_at = evict_at - %s * interval '1 s', retain_at = retain_at - %s * interval '1 s'"
              " where lane = %s", seconds, seconds, lane)


def test_expiry_removes_whole_old_segments_with_all_that_refers_to_them(core, queue, only):
    core.configure(queue, ttl=100)
    (lane, lane_id), = core.lanes((queue, "p"))
    core.push([(lane, ["a", v7(), "b"]), (lane, ["c"])])
    core.consumers("g", lane)
    core.settle(lane_id, "g", ["a"], [2])
    aged(core, lane, 101)
    core.push([(lane, ["d"])])
    assert expire(core, 1) == {queue: 3}
    assert expire(core) == {queue: 1} and expire(core) == {}
    assert [r.seq for r in core.rows("select seq from queen.message_keys where lane = %s", lane)] == [5]
    assert core.one("select count(*) from queen.dead_letter_queue where lane = %s", lane) == 0


def test_an_emptied_lane_continues_its_numbering(core, queue, only):
    core.configure(queue, ttl=100)
    (lane, lane_id), = core.lanes((queue, "p"))
    consumer, = core.consumers("g", lane)
    core.push([(lane, ["a", "b", "c"])])
    core.claim([consumer], batch=2, auto=True)
    aged(core, lane, 101)
    assert expire(core) == {queue: 3} and expire(core) == {}
    assert core.claim([consumer])[0][0].status == 3 and discover(core, queue, "g") == []
    assert not core.one("select queen.has_pending_messages(%s, '', 'other')", queue)
    assert core.one("select queen.queue_pending(id) from queen.queues where name = %s", queue) == 0
    rows = stored(core, core.push([(lane, ["a"])]))
    assert rows[0].first_seq == 4, "and the id may be used again"
    assert core.one("select queen.queue_pending(id) from queen.queues where name = %s", queue) == 1
    rows, lease = core.claim([consumer], batch=10)
    assert (rows[0].start_seq, rows[0].take) == (4, 1)
    assert [r.why for r in core.settle(lane_id, "g", ["a"], lease=lease)] == [0]
    aged(core, lane, 101)
    assert expire(core) == {queue: 1}
    assert stored(core, core.push([(lane, ["a"])]))[0].first_seq == 5
    assert core.one("select count(*) from queen.segments where lane = %s", lane) == 2


def test_sql_eviction_keeps_messages_consumed_by_all(core, queue, only):
    core.configure(queue, maxWaitTimeSeconds=100)
    (one, one_id), (two, _), (none, _) = core.lanes((queue, "1"), (queue, "2"), (queue, "3"))
    core.push([(one, ["a"]), (two, ["a"]), (none, ["a"])])
    first, second = core.consumers("g", one, two)
    core.consumers("h", two)
    core.claim([first, second], batch=9, parts=9, auto=True)
    for lane in (one, two, none):
        aged(core, lane, 101)
    assert expire(core) == {queue: 2}
    assert core.one("select sum(count) from queen.segments where lane = %s", one) == 1


def test_messages_that_expire_under_a_lease_do_not_confuse_an_ack(core, queue, only):
    core.configure(queue, ttl=100)
    (lane, lane_id), = core.lanes((queue, "p"))
    core.push([(lane, ["a", "b"])])
    core.push([(lane, ["c", "d"])])
    consumer, = core.consumers("g", lane)
    _, lease = core.claim([consumer], batch=4)
    core.rows("update queen.segments set created_at = created_at - interval '101 s' where lane = %s and first_seq = 1", lane)
    expire(core)
    rows = core.settle(lane_id, "g", ["a", "b", "c", "d"], lease=lease)
    assert sorted((r.entry, r.why) for r in rows) == [(0, 1), (1, 1), (2, 0), (3, 0)]
    assert core.state(consumer).cursor_seq == 4


# --- rotation and the feed ------------------------------------------------------------------------------------------

def test_rotation_under_load_never_moves_a_cursor_back(core, connect, queue):
    core.configure(queue)
    lanes = core.lanes(*[(queue, "p%d" % i) for i in range(8)])
    ids = {n: [v7() for _ in range(400)] for n, _ in lanes}
    core.push([(n, ids[n][i:i + 200]) for n, _ in lanes for i in (0, 200)])
    consumers = core.consumers("g", *[n for n, _ in lanes])
    begin, deadline, progress, emptied = time.monotonic(), deadline_after(60), {k: 0 for k in consumers}, []

    def goes_on():
        """For four seconds, and longer on a slow machine: until there was enough of both."""
        now = time.monotonic()
        return now < begin + 4 or now < deadline and (len(emptied) < 5 or min(progress.values()) <= 20)

    def again(call, *args, **kw):
        # Without a minimal age the victim of the switch can be us.
        while True:
            try:
                return call(*args, **kw)
            except psycopg2.errors.DeadlockDetected:
                pass

    def consume(c, mine):
        cursors, turns = {k: 0 for k in mine}, 0
        where = dict(zip(consumers, lanes))
        while goes_on():
            for k in mine:
                rows, lease = again(c.claim, [k], batch=3)
                n, lane_id = where[k]
                if rows[0].status == 3 and cursors[k] >= 400:
                    continue
                assert rows[0].status == 0, rows[0].status
                assert rows[0].start_seq == cursors[k] + 1
                take = rows[0].take
                batch = ids[n][cursors[k]:cursors[k] + take]
                turns += 1
                if turns % 5 == 0:
                    again(c.settle, lane_id, "g", batch, [3] * take, [lease] * take)
                else:
                    assert [r.why for r in again(c.settle, lane_id, "g", batch, lease=lease)] == [0]
                    cursors[k] += take
                assert c.state(k).cursor_seq == cursors[k]
                progress[k] = cursors[k]

    def rotate(c):
        while goes_on():
            if c.one("select queen.rotate(0, 0)") == "emptied":
                emptied.append(True)
            time.sleep(0.02)

    def newcomers(c):
        n = 0
        while goes_on():
            n += 1
            made = again(c.consumers, "new-%d" % n, *[x for x, _ in lanes])
            assert {len(c.rows("select * from queen.latest_state(%s)", k)) for k in made} == {1}
    in_parallel([lambda c=connect(): consume(c, consumers[:4]), lambda c=connect(): consume(c, consumers[4:]),
                 lambda c=connect(): rotate(c), lambda c=connect(): newcomers(c)], 120)
    assert len(emptied) >= 5 and min(progress.values()) > 20, (len(emptied), progress)
    assert core.one("select count(*) from queen.consumers c where not exists (select from queen.latest_state(c.num))") == 0


def test_a_late_writer_keeps_its_slot_from_being_emptied(core, connect, queue):
    core.configure(queue)
    (lane, _), = core.lanes((queue, "p"))
    core.push([(lane, ["a"])])
    consumer = core.consumers("g", lane)
    while core.one("select queen.rotate(0, 0)") != "emptied":
        pass
    late = connect(autocommit=False)
    made = late.consumers("late", lane)
    late.claim(consumer)
    assert core.one("select queen.rotate(0, 0)") == "switched"
    assert core.one("select queen.rotate(0, 0)") == "waiting"
    late.conn.commit()
    assert [core.one("select queen.rotate(0, 0)") for _ in range(2)] == ["copied", "emptied"]
    assert core.state(made[0]).cursor_seq == 0 and core.claim(consumer)[0][0].status == 2


def test_the_feed_reports_changes_once_while_a_slot_cannot_be_emptied(core, connect, queue):
    core.configure(queue)
    (lane, _), = core.lanes((queue, "p"))
    core.push([(lane, ["a"])])
    turns = []
    while turns[-2:] != ["switched", "copied"]:
        turns.append(core.one("select queen.rotate(0, 0)"))

    def told():
        return core.one("select count(*) from queen.changes where %s = any (lanes)", lane)
    before = told()
    reader = connect(autocommit=False)
    reader.rows("select from queen.changes limit 1")  # like a dump, for as long as it takes
    assert [core.one("select queen.rotate(0, 0)") for _ in range(3)] == ["waiting"] * 3
    assert told() == before > 0
    reader.conn.rollback()
    assert core.one("select queen.rotate(0, 0)") == "emptied"
    assert told() == before


def test_marks_missing_from_a_dump_are_created_again(core, queue):
    """A dump that began while they were rewritten (queen.rewrite_bloated_table)."""
    core.configure(queue, retentionEnabled=True, retentionSeconds=3600)
    (lane, _), = core.lanes((queue, "p"))
    core.push([(lane, ["a"])])
    core.rows("select queen.note_ages(true)")
    for table in ("rotation", "sweeps", "lane_due"):
        core.rows("delete from queen." + table)
    core.rows("select queen.note_ages(true)")
    assert core.one("select count(*) from queen.sweeps") == core.one("select count(*) from queen.lane_due where lane = %s", lane) == 1
    assert core.one("select queen.rotate(0, 0)") == "nothing"
    assert core.one("select active from queen.rotation") in ("a", "b")
    assert core.claim(core.consumers("g", lane))[0][0].status == 0


def feed(core, seen, origin=99):
    rows = core.rows("select * from queen.changes_since(%s, %s)", seen, origin)
    return rows[0].snapshot, {r.lane for r in rows[1:]}


def test_the_feed_reports_every_change_once_in_any_order_of_commits(core, connect, queue):
    core.configure(queue)
    (a, _), (b, _), (c, _) = core.lanes((queue, "a"), (queue, "b"), (queue, "c"))
    seen, _ = feed(core, None)
    early, late = connect(autocommit=False), connect(autocommit=False)
    early.push([(a, ["1"])])
    late.push([(b, ["1"])])
    late.conn.commit()
    seen, lanes = feed(core, seen)
    assert lanes == {b}
    core.push([(c, ["1"])])
    seen, lanes = feed(core, seen)
    assert lanes == {c}
    early.conn.commit()
    seen, lanes = feed(core, seen)
    assert lanes == {a}
    assert feed(core, seen)[1] == set()
    core.push([(c, ["2"])], origin=99)
    assert feed(core, seen)[1] == set(), "the caller knows its own"


def test_one_does_the_chores(core, connect):
    other = connect(autocommit=False)
    assert other.one("select queen.try_chores()") is True
    assert core.one("select queen.try_chores()") is False
    other.conn.rollback()
    assert core.one("select queen.try_chores()") is True
