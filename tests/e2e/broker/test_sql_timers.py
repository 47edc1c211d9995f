"""Two sessions at once: retries, skipped places, age limits and clean-up (docs/internals/locking.md)."""
import json
import uuid

import pytest

from harness import Background, wait_until
from sqlcore import js, key

LATER = {"mode": "scheduled", "strategy": "fixed", "base": 30 * 86400, "maxAttempts": 5}  # a retry is due in 30 days


@pytest.fixture(autouse=True)
def leave_nothing(core, queue):
    """Other tests count what is in this database."""
    yield
    core.rows("delete from queen.queues where name = %s", queue)


@pytest.fixture
def begin(connect):
    """begin(): one more session, in a transaction that ends with commit()."""
    made = []

    def make():
        core = connect(autocommit=False)
        core.commit = core.conn.commit
        core.pid = core.conn.get_backend_pid()
        made.append(core.conn)
        return core
    yield make
    for conn in made:  # a test that failed may have left one waiting, and others waiting for it
        conn.cancel()
        conn.close()


def waits(core, other):
    """`other`, a session, waits for a lock."""
    return core.one("select count(*) from pg_locks where pid = %s and not granted", other.pid) > 0


def deliver(core, lane, group, batch=1):
    """Delivers messages of a lane to a group; the lease."""
    rows, lease = core.claim(core.consumers(group, lane[0]), batch=batch)
    assert rows[0].status == 0
    return lease


def fail(core, lane, group, txid, lease):
    (row,) = core.settle(lane[1], group, [txid], [1], [lease])
    assert row.why == 0
    return row


def failed(core, queue, group, *more, txid="t"):
    """A partition with a message that the group has failed, and `more` behind it; its retry waits.  (lane, retry lane number)"""
    core.configure(queue, retryPolicy=LATER)
    lane = core.lanes((queue, "p"))[0]
    core.push([(lane[0], [txid, *more])])
    fail(core, lane, group, txid, deliver(core, lane, group))
    return lane, retry_lane(core, lane, group)


def retry_lane(core, lane, group):
    rows = core.rows("select num from queen.lanes where origin = %s and name = %s", lane[0], group)
    return rows[0].num if rows else None


def waiting(core, lane):
    """Groups whose retry waits, of a partition."""
    return [r.grp for r in core.rows("select s.grp from queen.scheduled s join queen.lanes r on r.num = s.lane "
                                     "where r.origin = %s order by s.grp", lane[0])]


def letters(core, lane):
    return [r.consumer_group for r in core.rows("select consumer_group from queen.dead_letter_queue where partition_id = %s "
                                                "order by consumer_group", lane[1])]


def fire(core):
    """Fires everything that waits as if its time had come."""
    core.rows("update queen.scheduled set due_at = clock_timestamp()")
    core.rows("select * from queen.fire_scheduled(0, 1000, 0)")


def idle(core):
    core.rows("update queen.lanes set created_at = now() - interval '90 days', active_at = now() - interval '90 days'")
    core.rows("update queen.segments set created_at = created_at - interval '90 days'")
    core.rows("update queen.consumers set created_at = now() - interval '90 days'")
    core.rows("update queen.consumer_states set last_at = now() - interval '90 days'")


def tidy(core):
    core.rows("select * from queen.tidy(7, 7, 1000)")


# ---- clean-up of unused partitions ----

def test_clean_up_keeps_a_retry_lane_with_a_waiting_retry(core, queue, group):
    lane, retries = failed(core, queue, group)
    idle(core)
    tidy(core)
    assert retry_lane(core, lane, group) == retries and waiting(core, lane) == [group]


def test_clean_up_leaves_a_retry_lane_that_is_getting_a_retry(core, begin, queue, group):
    """The retry is not committed yet: clean-up cannot see it."""
    lane, retries = failed(core, queue, group)
    core.rows("delete from queen.scheduled where lane = %s", retries)
    core.push([(lane[0], ["u"])])
    lease = deliver(core, lane, group)
    idle(core)
    worker = begin()
    fail(worker, lane, group, "u", lease)
    tidy(core)
    worker.commit()
    assert waiting(core, lane) == [group] and retry_lane(core, lane, group) is not None


def test_a_retry_finds_a_new_lane_when_clean_up_has_just_removed_its_own(core, begin, queue, group):
    lane, retries = failed(core, queue, group)
    core.rows("delete from queen.scheduled where lane = %s", retries)
    core.push([(lane[0], ["u"])])
    lease = deliver(core, lane, group)
    core.rows("update queen.lanes set created_at = now() - interval '90 days', active_at = now() - interval '90 days' where num = %s", retries)
    core.rows("update queen.consumers set created_at = now() - interval '90 days' where lane = %s", retries)
    chore, worker = begin(), begin()
    tidy(chore)
    failing = Background(lambda: fail(worker, lane, group, "u", lease) and worker.commit())
    wait_until(lambda: failing.done or waits(core, worker), 10, "the failure waits for the clean-up")
    chore.commit()
    failing.result()
    assert waiting(core, lane) == [group] and retry_lane(core, lane, group) not in (None, retries)


# ---- options of a queue against skipped places ----

def careful(core, lane):
    return core.one("select careful from queen.lanes where num = %s", lane[0])


def with_a_skip(core, queue, group):
    """A partition in which a group passes a message over, the second of three."""
    core.configure(queue)
    lane = core.lanes((queue, "p"))[0]
    core.push([(lane[0], ["a", "b", "c"])])
    core.consumers(group, lane[0])
    js(core, "move_to_dlq", {"partitionId": str(lane[1]), "transactionId": "b", "body": {"consumerGroup": group}})
    assert careful(core, lane)
    return lane


def configure(admin, queue, **options):
    """As POST /configure does: in steps, until all partitions have the options."""
    queue_id = admin.configure(queue, **options).queue_id
    admin.commit()
    while admin.one("select status from queen.spread_queue(jsonb_build_object('queueId', %s::text))", str(queue_id)) == 0:
        admin.commit()
    admin.commit()


def test_an_option_reaches_a_partition_whose_last_skip_is_being_removed(core, begin, queue, group):
    lane = with_a_skip(core, queue, group)
    remover, admin = begin(), begin()
    remover.rows("select queen.drop_group_skips(%s, %s, null)", group, queue)
    configuring = Background(lambda: configure(admin, queue, delayedProcessing=3600))
    wait_until(lambda: configuring.done or waits(core, admin), 10, "configure waits for the partition")
    remover.commit()
    configuring.result()
    assert careful(core, lane), "delayedProcessing acts on every partition"


def test_removing_the_last_skip_waits_for_an_option_that_is_being_set(core, begin, queue, group):
    lane = with_a_skip(core, queue, group)
    remover, admin = begin(), begin()
    admin.configure(queue, delayedProcessing=3600)
    removing = Background(lambda: (remover.rows("select queen.drop_group_skips(%s, %s, null)", group, queue), remover.commit()))
    wait_until(lambda: removing.done or waits(core, remover), 10, "the removal waits for configure")
    admin.commit()
    removing.result()
    assert careful(core, lane), "delayedProcessing acts on every partition"


def test_retention_does_not_wait_for_a_held_partition_with_skipped_places(core, begin, queue, group):
    """A push to the partition is not committed: retention removes what is old and leaves the mark of the partition alone."""
    lane = with_a_skip(core, queue, group)
    core.push([(lane[0], ["d"])])
    core.configure(queue, ttl=60)
    core.rows("update queen.segments set created_at = created_at - interval '1 hour' where lane = %s and first_seq = 1", lane[0])
    holder, chore = begin(), begin()
    holder.push([(lane[0], ["e"])])
    sweeping = Background(lambda: (chore.rows("select * from queen.sweep(true, 1000, 1000, 0, 0, 0)"), chore.commit()))
    wait_until(lambda: sweeping.done or waits(core, chore), 10, "retention ends or waits")
    held = not sweeping.done
    holder.commit()
    sweeping.result()
    assert not held, "retention waited for the partition"
    assert core.one("select min(first_seq) from queen.segments where lane = %s", lane[0]) == 4


# ---- actions on a message against its retries ----

def act(core, function, lane, txid="t", **body):
    args = {"partitionId": str(lane[1]), "transactionId": txid, "body": body}
    return core.rows("select * from queen.%s(%%s::jsonb)" % function, json.dumps(args))[0]


def taken(core, lanes, group):
    """How many messages of these lanes a group is given now."""
    rows, _ = core.claim(core.consumers(group, *[n for n in lanes if n]), batch=10, parts=10, auto=True)
    return sum(r.take for r in rows if r.status == 0 and r.take)


def test_retrying_by_hand_leaves_the_retries_of_other_groups(core, queue, group):
    lane, _ = failed(core, queue, "a-" + group)
    lease = deliver(core, lane, "b-" + group)
    core.settle(lane[1], "b-" + group, ["t"], [2], [lease])
    assert (letters(core, lane), waiting(core, lane)) == (["b-" + group], ["a-" + group])
    assert act(core, "retry_message", lane).status == 200
    assert waiting(core, lane) == ["a-" + group], "this group has not given up"
    assert core.one("select count(*) from queen.attempts where lane = %s and grp = %s", lane[0], "a-" + group) == 1
    fire(core)
    for name in ("a-", "b-"):
        assert taken(core, [lane[0], retry_lane(core, lane, name + group)], name + group) == 1, "each group gets it once"


def test_moving_to_the_dead_letters_takes_the_waiting_retry_along(core, queue, group):
    lane, retries = failed(core, queue, group)
    assert act(core, "move_to_dlq", lane, consumerGroup=group, error="by hand").status == 200
    assert (letters(core, lane), waiting(core, lane)) == ([group], [])
    assert taken(core, [lane[0], retries], group) == 0
    assert [r.outcome for r in core.rows("select outcome from queen.attempts where lane = %s order by nth", lane[0])] == ["r", "d"]


def test_moving_to_the_dead_letters_takes_a_retry_that_is_due_along(core, queue, group):
    lane, retries = failed(core, queue, group)
    failed(core, queue, "other-" + group)
    fire(core)
    assert act(core, "move_to_dlq", lane, consumerGroup=group).status == 200
    assert letters(core, lane) == [group] and taken(core, [lane[0], retries], group) == 0
    assert taken(core, [retry_lane(core, lane, "other-" + group)], "other-" + group) == 1


def test_deleting_a_message_waits_for_a_retry_that_is_failing_again(core, begin, queue, group):
    """The next retry is written while the message is being deleted: it must go, too."""
    lane, retries = failed(core, queue, group)
    fire(core)
    retry = (retries, core.one("select id from queen.lanes where num = %s", retries))
    lease = deliver(core, retry, group)
    worker, admin = begin(), begin()
    fail(worker, retry, group, "t", lease)
    deleting = Background(lambda: (js(admin, "delete_message", {"partitionId": str(lane[1]), "transactionId": "t"}), admin.commit()))
    wait_until(lambda: deleting.done or waits(core, admin), 10, "the deletion waits for the failure")
    worker.commit()
    deleting.result()
    assert waiting(core, lane) == []


def test_deleting_a_message_cannot_deadlock_with_a_batch_of_acknowledgements(core, begin, queue, group):
    """The batch holds the consumer of a retry lane and wants that of another group on the partition, which is newer."""
    lane, retries = failed(core, queue, group)
    fire(core)
    retry = (retries, core.one("select id from queen.lanes where num = %s", retries))
    lease = deliver(core, retry, group)
    other = "other-" + group
    newer = core.consumers(other, lane[0])[0]
    worker, admin = begin(), begin()
    worker.settle(retry[1], group, ["t"], [0], [lease])
    deleting = Background(lambda: (js(admin, "delete_message", {"partitionId": str(lane[1]), "transactionId": "t"}), admin.commit()))
    wait_until(lambda: waits(core, admin), 10, "the deletion waits for the acknowledgement")
    worker.rows("set local lock_timeout = '5s'")
    worker.rows("select from queen.consumers where num = %s for no key update", newer)
    worker.commit()
    deleting.result()


def test_a_cancelled_retry_of_a_message_that_is_deleted_leaves_no_dead_letter(core, begin, queue, group):
    lane, _ = failed(core, queue, group, "u")
    canceller, admin = begin(), begin()
    canceller.rows("select * from queen.cancel_scheduled_where(%s::jsonb)", json.dumps({"queue": queue}))
    deleting = Background(lambda: (js(admin, "delete_message", {"partitionId": str(lane[1]), "transactionId": "t"}), admin.commit()))
    wait_until(lambda: waits(core, admin), 10, "the deletion waits for the cancellation")
    canceller.commit()
    deleting.result()
    assert (letters(core, lane), waiting(core, lane)) == ([], [])


def test_deleting_a_message_cannot_deadlock_with_another_that_fails(core, begin, queue, group):
    lane, _ = failed(core, queue, group, "u")
    lease = deliver(core, lane, group)
    worker, admin = begin(), begin()
    worker.rows("select from queen.consumers where lane = %s and grp = %s for no key update", lane[0], group)
    deleting = Background(lambda: (js(admin, "delete_message", {"partitionId": str(lane[1]), "transactionId": "t"}), admin.commit()))
    wait_until(lambda: waits(core, admin), 10, "the deletion waits for the acknowledgement")
    fail(worker, lane, group, "u", lease)
    worker.commit()
    deleting.result()
    assert waiting(core, lane) == [group], "that of the other message"


# ---- age limits ----

@pytest.fixture
def stop_at(core, connect):
    """stop_at(table, event): sessions that write this table wait in front of it until the value is called."""
    made = []

    def make(table, event):
        name = "stop_" + uuid.uuid4().hex[:8]
        number = uuid.uuid4().int >> 66
        core.rows("create function queen.%s() returns trigger language plpgsql as "
                  "$$ begin perform pg_advisory_xact_lock_shared(%d); return coalesce(new, old); end $$" % (name, number))
        core.rows("create trigger %s before %s on queen.%s for each row execute function queen.%s()" % (name, event, table, name))
        made.append(name)
        gate = connect()
        gate.rows("select pg_advisory_lock(%s)", number)
        return lambda: gate.rows("select pg_advisory_unlock(%s)", number)
    yield make
    for name in made:
        core.rows("drop function queen.%s() cascade" % name)


@pytest.mark.parametrize("option", [{"ttl": 60}, {"retentionSeconds": 60}, {"maxWaitTimeSeconds": 60}])
def test_a_push_during_the_sweep_of_an_empty_partition_is_not_forgotten(core, begin, stop_at, queue, group, option):
    core.configure(queue, **option)
    lane = core.lanes((queue, "p"))[0]
    evict = "retentionSeconds" not in option
    core.rows("delete from queen.lane_due")
    core.rows("select queen.note_ages(true)")
    core.rows("insert into queen.lane_due (lane, evict_at, retain_at) values (%s, %s, %s)", lane[0], *(
        ["2020-01-01", None] if evict else [None, "2020-01-01"]))
    sweeper = begin()  # not in the first step of its pass: others may enter new messages meanwhile
    go_on = stop_at("lane_due", "update")
    sweeping = Background(lambda: (sweeper.rows("select * from queen.sweep(%s, 1000, 1000, 1, 0, 0)", evict), sweeper.commit()))
    wait_until(lambda: waits(core, sweeper), 10, "the sweep has found the partition empty")
    pusher = begin()
    pushing = Background(lambda: (pusher.push([(lane[0], ["a"])]), pusher.commit()))
    wait_until(lambda: pushing.done or waits(core, pusher), 10, "the push ends or waits for the sweep")
    core.rows("select queen.note_ages(true)")
    go_on()
    sweeping.result()
    pushing.result()
    core.rows("update queen.segments set created_at = created_at - interval '1 hour' where lane = %s", lane[0])
    for _ in range(2):
        core.rows("select * from queen.sweep(%s, 1000, 1000, 0, 0, 0)", evict)
    assert core.one("select coalesce(sum(count), 0) from queen.segments where lane = %s", lane[0]) == 0, "it is too old"


# ---- streams acknowledge retries ----

def advance(core, lane, group, txid, lease, dead=False):
    (row,) = core.rows("select * from queen.advance(1, %s, %s, %s, %s, 1, %s, 'because', true)", lane, group, key(txid), lease, dead)
    assert (row.why, row.released) == (0, True)


def due_retry(core, queue, group, txid):
    """(partition, retry lane, lease) of a message that failed, came again, and was delivered."""
    lane, retries = failed(core, queue, group, txid=txid)
    fire(core)
    rows, lease = core.claim(core.rows("select num from queen.consumers where lane = %s", retries)[0])
    assert rows[0].status == 0
    return lane, retries, lease


def outcomes(core, lane):
    return [r.outcome for r in core.rows("select outcome from queen.attempts where lane = %s order by at, nth", lane[0])]


def test_a_stream_that_completes_retries_notes_it_and_leaves_one_segment(core, queue, group):
    for txid in ("t", "u", "v"):
        lane, retries, lease = due_retry(core, queue, group, txid)
        advance(core, retries, group, txid, lease)
    assert outcomes(core, lane) == ["r", "c"] * 3
    assert core.one("select count(*) from queen.segments where lane = %s", retries) == 1


def test_a_retry_failed_by_a_stream_is_a_dead_letter_of_the_partition(core, queue, group):
    lane, retries, lease = due_retry(core, queue, group, "t")
    advance(core, retries, group, "t", lease, dead=True)
    assert letters(core, lane) == [group] and outcomes(core, lane) == ["r", "d"]
    assert core.one("select lane from queen.dead_letter_queue where partition_id = %s", lane[1]) == lane[0]


def test_a_stream_that_completes_a_message_that_failed_in_order_notes_it(core, queue, group):
    core.configure(queue)
    lane = core.lanes((queue, "p"))[0]
    core.push([(lane[0], ["t"])])
    fail(core, lane, group, "t", deliver(core, lane, group))
    advance(core, lane[0], group, "t", deliver(core, lane, group))
    assert outcomes(core, lane) == ["i", "c"]


# ---- redrives ----

def dead(core, queue, group):
    """A partition with a dead letter of the group, and its retry lane, which was not used for long."""
    lane, retries = failed(core, queue, group)
    assert act(core, "move_to_dlq", lane, consumerGroup=group).status == 200
    idle(core)
    return lane, retries


def redrive(core, queue):
    return json.loads(core.rows("select answer from queen.redrive(%s::jsonb)", json.dumps({"body": {"queue": queue}}))[0].answer)


def test_clean_up_leaves_a_retry_lane_that_a_redrive_uses(core, begin, queue, group):
    lane, retries = dead(core, queue, group)
    redriver = begin()
    assert redrive(redriver, queue)["redriven"] == 1
    tidy(core)
    redriver.commit()
    assert (retry_lane(core, lane, group), waiting(core, lane)) == (retries, [group])


def test_deleting_a_message_that_is_being_redriven_takes_the_retry_along(core, begin, queue, group):
    lane, _ = dead(core, queue, group)
    redriver, admin = begin(), begin()
    redrive(redriver, queue)
    deleting = Background(lambda: (js(admin, "delete_message", {"partitionId": str(lane[1]), "transactionId": "t"}), admin.commit()))
    wait_until(lambda: waits(core, admin), 10, "the deletion waits for the redrive")
    redriver.commit()
    deleting.result()
    assert (letters(core, lane), waiting(core, lane)) == ([], [])


def test_a_redrive_of_a_message_that_is_being_deleted_finds_nothing(core, begin, queue, group):
    lane, _ = dead(core, queue, group)
    redriver, admin = begin(), begin()
    js(admin, "delete_message", {"partitionId": str(lane[1]), "transactionId": "t"})
    driving = Background(lambda: (redrive(redriver, queue), redriver.commit())[0])
    wait_until(lambda: waits(core, redriver), 10, "the redrive waits for the deletion")
    admin.commit()
    assert driving.result()["redriven"] == 0 and waiting(core, lane) == []


def test_two_redrives_at_once_deliver_every_letter_once(core, begin, queue, group):
    lane, _ = dead(core, queue, group)
    first, second = begin(), begin()
    assert redrive(first, queue)["redriven"] == 1
    driving = Background(lambda: (redrive(second, queue), second.commit())[0])
    wait_until(lambda: driving.done or waits(core, second), 10, "the second ends or waits")
    first.commit()
    assert driving.result()["redriven"] == 0 and waiting(core, lane) == [group]
