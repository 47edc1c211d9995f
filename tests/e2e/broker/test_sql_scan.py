"""SQL pops of a group on a queue with more partitions than one step takes (ADR 38): bounded work for each call."""
import json
import uuid

import pytest

import sqlcore
from sqlcore import Core, stored

STEP, PARTS = 3, 40  # a call looks at ten pages at most


@pytest.fixture(scope="module")
def database(pg):
    name = pg.create_database("scan_" + uuid.uuid4().hex[:8])
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
        core.rows("set queen.step_lanes = %d" % STEP)
        core.rows("set lock_timeout = '5s'")
        if not autocommit:
            conn.commit()
        return core
    yield make
    for conn in conns:
        conn.close()


@pytest.fixture
def core(connect):
    return connect()


def pops(core, queue, *requests):
    requests = [{"queue_name": queue, "consumer_group": "g", "auto_ack": True, **r} for r in requests or ({},)]
    answer = core.one("select queen.pop_unified_batch(%s)", json.dumps(requests))
    return [[m["partition"] for m in a["result"]["messages"]] for a in answer]


def pop(core, queue, **request):
    return pops(core, queue, request)[0]


def fill(core, queue, parts=PARTS, messages=None, **options):
    core.configure(queue, **options)
    core.rows("delete from queen.lanes where name = 'Default'")
    names = ["p%02d" % i for i in range(parts)]
    lanes = dict(zip(names, (n for n, _ in core.lanes(*[(queue, n) for n in names]))))
    some = [lanes[n] for n in (names if messages is None else messages)]
    if some:
        stored(core, core.push([(n, ["m"]) for n in some]))
    return lanes


def made(core, queue, group="g"):
    return core.one("select count(*) from queen.consumers c join queen.lanes l on l.num = c.lane join queen.queues q on q.id = l.queue_id"
                    " where q.name = %s and c.grp = %s", queue, group)


def test_a_pop_makes_the_consumers_of_one_page(core, queue):
    fill(core, queue)
    for i in range(1, 6):
        assert len(pop(core, queue)) == 1
        assert made(core, queue) == i * STEP


def test_all_messages_are_delivered_and_no_page_is_preferred(core, queue):
    fill(core, queue)
    first = [pop(core, queue)[0] for _ in range((PARTS + STEP - 1) // STEP)]
    assert len({int(p[1:]) // STEP for p in first}) == len(first), "each page once"
    rest = [pop(core, queue) for _ in range(3 * PARTS)]
    assert sorted(first + [p for some in rest for p in some]) == ["p%02d" % i for i in range(PARTS)]
    assert made(core, queue) == PARTS


def test_repeated_pops_come_to_the_last_page(core, queue):
    """Each call makes one page of consumers.  When they exist, a call looks at ten pages."""
    lanes = fill(core, queue, messages=["p39"])
    got = [pop(core, queue) for _ in range(PARTS // STEP + 1)]
    assert got == [[]] * (len(got) - 1) + [["p39"]]
    stored(core, core.push([(lanes["p38"], ["n"])]))
    assert sorted(pop(core, queue) for _ in range(2)) == [[], ["p38"]]


def test_an_empty_queue_is_noted_after_a_whole_round(core, queue):
    fill(core, queue, messages=[])
    notes = []
    for _ in range(PARTS // STEP + 1):
        assert pop(core, queue) == []
        notes.append(core.one("select count(*) from queen.consumer_watermarks where queue_name = %s", queue))
    assert notes == [0] * (len(notes) - 1) + [1]


def test_several_pops_in_one_call(core, queue):
    fill(core, queue)
    assert sorted(int(got[0][1:]) // STEP for got in pops(core, queue, {}, {}, {"batch_size": 2})) == [0, 1, 2]
    assert made(core, queue) == 3 * STEP
    fill(core, queue + "-small", parts=2)
    assert sorted(pops(core, queue + "-small", {}, {}, {})) == [[], ["p00"], ["p01"]]


def test_an_open_transaction_does_not_stop_other_pops(core, connect, queue):
    fill(core, queue)
    assert len(pop(core, queue)) == 1
    for _ in range(PARTS // STEP + 1):
        pop(core, queue)
    assert made(core, queue) == PARTS
    holder = connect(autocommit=False)
    assert len(pop(holder, queue)) == 1
    assert sum(len(pop(core, queue)) for _ in range(10)) > 5
    holder.conn.rollback()


def test_an_open_transaction_that_found_nothing_does_not_stop_other_pops(core, connect, queue):
    """Both note that the queue is empty."""
    fill(core, queue, parts=1, messages=[])
    assert pop(core, queue) == []
    core.rows("delete from queen.consumer_watermarks")
    holder = connect(autocommit=False)
    for round in range(2):
        assert pop(holder, queue) == []
        assert pop(core, queue) == []
        core.rows("select queen.note_empty(%s, %s)", [queue], ["g"])
        holder.conn.commit()
        core.rows("update queen.consumer_watermarks set updated_at = now() - interval '1 hour'")


def sweep(core):
    core.rows("select * from queen.sweep(false, 1000, 1000, 0, 0, 1000)")


def segments(core, lanes):
    return {name for name, n in lanes.items()
            if core.one("select count(*) from queen.segments where lane = %s and count > 0", n)}


def consume_all(core, queue, lanes, group):
    core.rows("select queen.ensure_consumers(%s, %s)", list(lanes.values()), [group] * len(lanes))
    core.rows("select queen.move_cursors(array(select num from queen.consumers where grp = %s and lane = any (%s)), null)",
              group, list(lanes.values()))


def finish_scans(core):
    core.rows("update queen.group_scans set popped_at = now() - interval '2 minutes'")
    n = 0
    while core.one("select queen.fill_scans()"):
        n += 1
        assert n < 100
    return n


def test_retention_keeps_messages_for_a_group_that_has_not_seen_all_partitions(core, queue):
    core.rows("delete from queen.group_scans")
    lanes = fill(core, queue, retentionEnabled=True, completedRetentionSeconds=1)
    assert pop(core, queue) == ["p00"]
    consume_all(core, queue, lanes, "other")
    core.age(3600)
    sweep(core)
    assert segments(core, lanes) == set(lanes) - {"p00"}
    # The group does not pop any more: the chore makes its other consumers, and messages are still kept.
    assert finish_scans(core) == PARTS // STEP + 1
    assert made(core, queue) == PARTS
    assert core.one("select unread from queen.group_scans where grp = 'g' and queue_id = (select id from queen.queues where name = %s)",
                    queue) is False
    core.rows("update queen.lane_due set retain_at = now()")
    sweep(core)
    assert segments(core, lanes) == set(lanes) - {"p00"}
    # A deleted group keeps nothing.
    for _ in range(PARTS):
        pop(core, queue)
    args = {"group": "g", "queue": queue}
    while True:
        (row,) = core.rows("select status, answer from queen.delete_group(%s)", json.dumps(args))
        args = row.answer
        if row.status == 200:
            break
    core.rows("update queen.lane_due set retain_at = now()")
    sweep(core)
    assert segments(core, lanes) == set()


def test_a_group_that_starts_at_the_end_keeps_nothing(core, queue):
    lanes = fill(core, queue, retentionEnabled=True, completedRetentionSeconds=1)
    core.age(3600)
    assert pop(core, queue, sub_mode="new") == []
    assert made(core, queue) == STEP
    consume_all(core, queue, lanes, "other")
    sweep(core)
    assert segments(core, lanes) == set()


def test_scans_of_deleted_queues_and_groups_are_removed(core, queue):
    fill(core, queue)
    pop(core, queue)
    core.rows("delete from queen.queues where name = %s", queue)
    finish_scans(core)
    assert core.one("select count(*) from queen.group_scans s where not exists (select from queen.queues q where q.id = s.queue_id)") == 0


# ---- the pages that the broker reads for its own pops ----

def page(core, queue, after=None, mode=""):
    """(partitions with messages, where the next page begins or None) of one page."""
    rows = core.rows("select * from queen.discover_page(%s, null, 'g', '', '', %s, '', %s)", queue, mode, after)
    more = [r.lane_name for r in rows if r.lane == 0]
    return [r.lane_name for r in rows if r.lane != 0], more[0] if more else None


def pages_from(core, queue, after):
    names = []
    while after is not None:
        found, after = page(core, queue, after)
        names += found
    return names


@pytest.mark.parametrize("broker", ["goes on", "dies"])
def test_retention_between_two_pages_of_the_broker_keeps_messages(core, queue, broker):
    core.rows("delete from queen.group_scans")
    lanes = fill(core, queue, retentionEnabled=True, completedRetentionSeconds=1)
    names, after = page(core, queue)
    assert names == sorted(lanes)[:STEP]
    consume_all(core, queue, lanes, "other")
    core.age(3600)
    sweep(core)
    assert segments(core, lanes) == set(lanes)
    if broker == "goes on":
        assert pages_from(core, queue, after) == sorted(lanes)[STEP:]
    else:
        assert finish_scans(core) == PARTS // STEP + 1
    assert made(core, queue) == PARTS
    core.rows("update queen.lane_due set retain_at = now()")
    sweep(core)
    assert segments(core, lanes) == set(lanes)


def test_a_new_group_that_starts_at_the_end_does_not_stop_retention_between_two_pages(core, queue):
    lanes = fill(core, queue, retentionEnabled=True, completedRetentionSeconds=1)
    core.age(3600)
    page(core, queue, mode="new")
    consume_all(core, queue, lanes, "other")
    sweep(core)
    assert segments(core, lanes) == set()


def test_pages_that_are_read_again_write_nothing(core, queue):
    lanes = fill(core, queue)
    assert len(pages_from(core, queue, page(core, queue)[1])) == PARTS - STEP
    finish_scans(core)
    before = core.rows("select xmin, * from queen.group_scans")
    assert page(core, queue)[0] == sorted(lanes)[:STEP]
    assert core.rows("select xmin, * from queen.group_scans") == before


def test_an_open_pop_of_the_group_does_not_stop_the_pages(core, connect, queue):
    lanes = fill(core, queue)
    session = connect(autocommit=False)
    pop(session, queue)
    core.rows("set lock_timeout = '30s'")
    names, after = page(core, queue)
    rest = pages_from(core, queue, after)
    session.conn.rollback()
    assert set(names) | set(rest) == set(lanes)


@pytest.mark.parametrize("change", ["expired", "clear", "seek to the end", "seek to the beginning", "delete the group", "delete the queue",
                                    "delete partitions", "new partitions"])
def test_a_change_between_two_pages_hides_nothing(core, queue, change):
    """After the last page, and what the change made the broker do, every message that is to be delivered has been found."""
    lanes = fill(core, queue, retentionEnabled=True, retentionSeconds=60)
    names, after = page(core, queue)

    def steps(function, **args):
        while True:
            (row,) = core.rows("select status, answer from queen.%s(%%s)" % function, json.dumps(args))
            if row.status != 0:
                assert row.status == 200, row
                return
            args = row.answer

    expected = set(lanes)
    if change == "expired":
        core.age(3600)
        sweep(core)
        expected = set()
    elif change == "clear":
        steps("clear_queue", queue=queue)
        expected = set()
    elif change == "seek to the end":
        steps("seek_group", group="g", queue=queue, body={"toEnd": True})
    elif change == "seek to the beginning":
        steps("seek_group", group="g", queue=queue, body={"timestamp": "2000-01-01T00:00:00Z"})
    elif change == "delete the group":
        steps("delete_group", group="g", queue=queue)
    elif change == "delete the queue":
        steps("delete_queue", queue=queue)
        lanes = fill(core, queue)
        expected = set(lanes)
    elif change == "delete partitions":
        gone = sorted(lanes)[STEP - 1:2 * STEP]
        core.rows("delete from queen.lanes where num = any (%s)", [lanes[n] for n in gone])
        expected -= set(gone)
    else:
        new = core.lanes((queue, "a"), (queue, "p00b"), (queue, "z"))
        stored(core, core.push([(n, ["m"]) for n, _ in new]))
        expected |= {"z"}  # the others come from the push, by the change feed

    found = set(pages_from(core, queue, after))
    if change in ("seek to the end", "seek to the beginning", "delete the group", "delete the queue"):
        # These notify the group: the broker reads all pages once more.
        first, after = page(core, queue)
        found |= set(first) | set(pages_from(core, queue, after))
        if change == "seek to the end":
            # Partitions that had no consumer yet begin where a new group begins, unless the seek has made their consumers.
            assert not set(names) & found
            expected -= set(names) | (expected - found)
    elif change not in ("expired", "clear"):
        found |= set(names)
    if expected:
        assert found >= expected
    for name in expected:
        lane = core.one("select l.num from queen.lanes l join queen.queues q on q.id = l.queue_id where q.name = %s and l.name = %s",
                        queue, name)
        assert core.one("select cursor_seq from queen.consumers c cross join lateral queen.latest_state(c.num) where c.lane = %s"
                        " and c.grp = 'g'", lane) == 0
    # Later messages are always found.
    lanes = dict(core.rows("select l.name::text, l.num from queen.lanes l join queen.queues q on q.id = l.queue_id where q.name = %s", queue))
    stored(core, core.push([(n, ["later"]) for n in lanes.values()]))
    first, after = page(core, queue)
    assert set(first) | set(pages_from(core, queue, after)) == set(lanes)
