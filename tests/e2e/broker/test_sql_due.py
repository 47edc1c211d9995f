"""Two sessions at once: due messages, sessions that lock them, and the slices that store them (docs/internals/locking.md)."""
import json

from harness import Background, wait_until
from sqlcore import key, pack
from test_sql_timers import begin, leave_nothing, waits  # noqa: F401


# ---- what is due against sessions that hold it ----

def schedule(core, lane, txid, seconds=0):
    """One message of a lane that waits; its row."""
    (row,) = core.rows("select * from queen.schedule_messages(0, true, array[%s]::bigint[], array[%s]::uuid[], array[null]::bigint[], "
                       "array[%s]::bigint[], array[%s], array[null]::text[], array[%s::bytea], array[null]::int[])",
                       lane, key(txid), int(seconds * 1000000), txid, pack(txid))
    assert row.status == 0
    return row


def age_due(core, lanes, seconds):
    core.rows("update queen.scheduled set due_at = due_at - %s * interval '1 second' where lane = any (%s)", seconds, lanes)


def step(core, limit=100):
    """One call of fire_scheduled; (lanes that got something, the row about the step)."""
    rows = core.rows("select * from queen.fire_scheduled(0, %s, 0)", limit)
    return {r.lane for r in rows if r.lane}, rows[-1]


def test_held_partitions_do_not_keep_later_messages_of_others_back(core, begin, queue):
    """More partitions are held than one step delivers messages."""
    core.configure(queue)
    lanes = [n for n, _ in core.lanes(*[(queue, str(i)) for i in range(60)])]
    core.rows("select queen.schedule_messages(0, true, %s::bigint[], array_fill(%s::uuid, array[60]), array_fill(null::bigint, array[60]), "
              "array_fill(0::bigint, array[60]), array_fill('t'::text, array[60]), array_fill(null::text, array[60]), "
              "array_fill(%s::bytea, array[60]), array_fill(null::int, array[60]))", lanes, key("t"), pack("t"))
    age_due(core, lanes, 5)
    free = core.lanes((queue, "free"))[0][0]
    for i in range(3):
        schedule(core, free, "f%d" % i)
    holder, firer = begin(), begin()
    holder.rows("select from queen.lanes where num = any (%s) for no key update", lanes)
    firer.rows("set local lock_timeout = '5s'")
    got, last = step(firer, limit=10)
    assert got == {free} and last.busy and not last.more, "all that is due and free, in one step"
    assert core.one("select count(*) from queen.scheduled where lane = %s", free) == 3, "not committed"
    firer.commit()
    holder.commit()
    while step(core, limit=10)[1].more:
        pass
    assert core.one("select count(*) from queen.scheduled where lane = any (%s)", lanes) == 0


def test_a_held_message_is_tried_again_when_it_has_waited_a_quarter_longer(core, begin, queue):
    core.configure(queue)
    lane = core.lanes((queue, "p"))[0][0]
    schedule(core, lane, "t")
    holder = begin()
    holder.rows("select from queen.lanes where num = %s for no key update", lane)
    _, last = step(core)
    assert last.busy and last.through_us is None and 10000 <= last.wait_us <= 1000000
    age_due(core, [lane], 2)
    assert 400000 <= step(core)[1].wait_us <= 1000000
    age_due(core, [lane], 3600)
    assert step(core)[1].wait_us == 1000000
    holder.commit()
    got, last = step(core)
    assert got == {lane} and not last.busy and last.through_us is not None


def test_a_locked_schedule_does_not_cause_constant_polling(core, begin, queue):
    core.rows("insert into queen.schedules (name, queue_name, lane_name, cron, timezone, payload, missed, paused, next_at) "
              "values (%s, %s, 'p', '0 0 1 1 *', 'UTC', '1', 'skip', false, now())", queue, queue)
    admin = begin()
    admin.rows("select from queen.schedules where name = %s for update", queue)
    _, last = step(core)
    assert last.busy and last.wait_us >= 10000
    admin.commit()
    got, last = step(core)
    assert len(got) == 1 and not last.busy
    core.rows("delete from queen.schedules where name = %s", queue)


def test_firing_does_not_wait_for_a_message_that_is_being_cancelled(core, begin, queue):
    core.configure(queue)
    lane = core.lanes((queue, "p"))[0][0]
    for txid in ("a", "b"):
        schedule(core, lane, txid)
    canceller, firer = begin(), begin()
    canceller.rows("select * from queen.cancel_scheduled_where(%s::jsonb)", json.dumps({"queue": queue, "transactionIdPrefix": "a"}))
    firer.rows("set local lock_timeout = '5s'")
    got, last = step(firer)
    assert got == {lane} and last.busy
    firer.commit()
    canceller.conn.rollback()
    assert step(core)[0] == {lane}
    assert core.one("select sum(count) from queen.segments where lane = %s", lane) == 2


def test_a_message_that_is_cancelled_meanwhile_cannot_be_given_another_time(core, begin, queue):
    core.configure(queue)
    lane = core.lanes((queue, "p"))[0][0]
    waits_until = schedule(core, lane, "t", 3600)
    canceller, admin = begin(), begin()
    canceller.rows("select * from queen.cancel_scheduled_where(%s::jsonb)", json.dumps({"queue": queue}))
    args = json.dumps({"id": str(waits_until.id), "body": {"delaySeconds": 10}})
    changing = Background(lambda: (admin.rows("select * from queen.reschedule(%s::jsonb)", args), admin.commit())[0])
    wait_until(lambda: waits(core, admin), 10, "the change waits for the cancellation")
    canceller.commit()
    assert changing.result()[0].status == 404


# ---- slices ----

def relations(core, session):
    """Tables and indexes of queen.scheduled that a session has locked."""
    return core.one("select count(distinct l.relation) from pg_locks l join pg_class c on c.oid = l.relation "
                    "where l.pid = %s and c.relname like 'scheduled%%'", session.pid)


def test_slices_are_made_ahead_and_a_look_locks_few_of_them(core, begin, queue):
    core.configure(queue)
    lane = core.lanes((queue, "p"))[0][0]
    schedule(core, lane, "far", 7 * 86400)
    core.rows("select * from queen.maintain_slices()")
    assert core.one("select count(*) from queen.scheduled_slices") >= 26
    assert core.rows("select * from queen.maintain_slices()") == [(0, 0)]
    for txid, seconds in (("now", 0), ("soon", 1800), ("tomorrow", 86400)):
        schedule(core, lane, txid, seconds)
    kinds = dict(core.rows("select transaction_id, slice = queen.slice_at(due_at) from queen.scheduled where lane = %s", lane))
    assert kinds == {"far": False, "now": True, "soon": True, "tomorrow": True}
    for call in ("queen.next_due(0)", "queen.fire_scheduled(0, 100, 0)", "queen.scheduled_stats()"):
        session = begin()
        session.rows("select * from " + call)
        assert relations(core, session) <= 30, call
        session.commit()
    assert core.one("select count(*) from queen.scheduled where lane = %s and transaction_id = 'now'", lane) == 0


def test_storing_a_message_takes_no_lock_that_others_wait_for(core, begin, queue):
    core.configure(queue)
    lanes = [n for n, _ in core.lanes((queue, "a"), (queue, "b"))]
    first, second = begin(), begin()
    second.rows("set local lock_timeout = '5s'")
    for i, session in enumerate((first, second)):
        schedule(session, lanes[i], "t", (400 + 40 * i) * 86400)
    first.commit()
    second.commit()
    assert core.one("select count(*) from queen.scheduled where lane = any (%s)", lanes) == 2
    answer = core.rows("select * from queen.cancel_scheduled_where(%s::jsonb)", json.dumps({"queue": queue}))[0]
    assert answer.answer == {"cancelled": 2}


def test_a_slice_that_is_over_is_dropped_when_it_is_empty(core, begin, queue):
    core.configure(queue)
    lane = core.lanes((queue, "p"))[0][0]
    old = core.one("select queen.slice_at(now() - interval '1000 hours')")
    core.rows("create table queen.scheduled_old (like queen.scheduled including all)")
    core.rows("alter table queen.scheduled attach partition queen.scheduled_old for values in (%s)", old)
    core.rows("insert into queen.scheduled_slices values (%s, 'scheduled_old')", old)
    schedule(core, lane, "t")
    core.rows("update queen.scheduled set slice = %s, due_at = due_at - interval '1000 hours' where lane = %s", old, lane)
    there = lambda: core.one("select count(*) from queen.scheduled_slices where slice = %s", old)  # noqa: E731
    core.rows("select * from queen.maintain_slices()")
    assert there() == 1, "there is something in it"
    assert step(core)[0] == {lane}
    reader = begin()
    reader.rows("select count(*) from queen.scheduled")
    core.rows("select * from queen.maintain_slices()")
    assert there() == 1, "somebody reads the table"
    reader.commit()
    assert core.rows("select dropped from queen.maintain_slices()") == [(1,)] and there() == 0
