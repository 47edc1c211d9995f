"""The options of a queue with many partitions change in steps of bounded size (ADR 38)."""
import json
import time

import pytest

from harness import Background, wait_until
from sqlcore import stored

PARTS = 8


@pytest.fixture
def small_steps(connect):
    """Connections whose steps take three partitions each."""
    def make(autocommit=True):
        core = connect(autocommit)
        core.rows("set queen.step_lanes = 3")
        if not autocommit:
            core.conn.commit()
        return core
    return make


@pytest.fixture
def core(small_steps):
    return small_steps()


def fill(core, queue):
    core.configure(queue)
    return [n for n, _ in core.lanes(*[(queue, "p%d" % i) for i in range(PARTS)])]


def careful(core, lanes):
    """The number of partitions with the delay."""
    return core.one("select count(*) from queen.lanes where num = any (%s) and careful and lease_seconds = 7", lanes)


def step(core, queue_id):
    return core.one("select status from queen.spread_queue(%s)", json.dumps({"queueId": str(queue_id)}))


def chore(core):
    for n in range(500):
        if not core.one("select queen.spread_more()"):
            return n
    raise AssertionError("queen.spread_more() does not end")


def test_a_change_goes_in_steps_of_bounded_size(core, queue):
    lanes = fill(core, queue)
    stored(core, core.push([(lanes[1], ["m"]), (lanes[5], ["m"])]))
    seen = core.one("select pg_current_snapshot()::text")
    r = core.configure(queue, delayedProcessing=60, leaseTime=7, retentionSeconds=90)
    assert r.unfinished and careful(core, lanes) <= 3
    n = 1
    while step(core, r.queue_id) == 0:
        n += 1
        assert careful(core, lanes) <= 3 * n
    assert n >= 2 and careful(core, lanes) == PARTS
    assert core.one("select count(*) from queen.configuring where queue_id = %s", r.queue_id) == 0
    # Work follows what is there: only partitions with messages are looked at by brokers and by the next sweep.
    assert core.one("select array_agg(lane order by lane) from queen.lane_due where lane = any (%s)", lanes) == [lanes[1], lanes[5]]
    told = core.rows("select lane from queen.changes_since(%s, 1) where lane = any (%s)", seen, lanes)
    assert {t.lane for t in told} == {lanes[1], lanes[5]}


def test_options_that_stay_the_same_cost_nothing(core, queue):
    fill(core, queue)
    while step(core, core.configure(queue, leaseTime=7).queue_id) == 0:
        pass
    assert core.configure(queue, leaseTime=7).unfinished is False


@pytest.mark.parametrize("how", ["configure", "update"])
def test_the_chore_finishes_an_interrupted_change(core, queue, how):
    lanes = fill(core, queue)
    if how == "configure":
        core.configure(queue, delayedProcessing=60, leaseTime=7)
    else:
        core.rows("update queen.queues set delayed_processing = 60, lease_time = 7 where name = %s", queue)
    assert careful(core, lanes) <= 3
    assert chore(core) >= 2 and careful(core, lanes) == PARTS


def test_a_change_during_a_change_wins_everywhere(core, queue):
    lanes = fill(core, queue)
    core.configure(queue, delayedProcessing=60, leaseTime=7, maxSize=10)
    core.rows("select queen.spread_more()")
    r = core.configure(queue, delayedProcessing=60, leaseTime=7)
    while step(core, r.queue_id) == 0:
        pass
    assert careful(core, lanes) == PARTS
    assert core.one("select count(*) from queen.lanes where num = any (%s) and limited", lanes) == 0


def test_a_step_does_not_write_options_of_before(core, small_steps, queue):
    """A change that is not committed holds back the steps of the change before."""
    lanes = fill(core, queue)
    first = core.configure(queue, maxSize=10)
    second = small_steps(autocommit=False)
    second.configure(queue, delayedProcessing=60, leaseTime=7)
    running = Background(lambda: step(core, first.queue_id))
    pid = core.conn.info.backend_pid
    wait_until(lambda: second.one("select cardinality(pg_blocking_pids(%s)) > 0", pid), 30, "the step waits")
    second.conn.commit()
    running.result()
    while step(core, first.queue_id) == 0:
        pass
    assert careful(core, lanes) == PARTS
    assert core.one("select count(*) from queen.lanes where num = any (%s) and limited", lanes) == 0


def test_a_locked_partition_keeps_only_itself_waiting(core, small_steps, queue):
    lanes = fill(core, queue)
    holder = small_steps(autocommit=False)
    stored(holder, holder.push([(lanes[1], ["held"])]))
    core.rows("set lock_timeout = '50ms'")
    r = core.configure(queue, delayedProcessing=60, leaseTime=7)
    chore(core)
    assert careful(core, lanes) == PARTS - 1 and chore(core) == 0
    with pytest.raises(Exception, match="lock timeout"):
        step(core, r.queue_id)
    holder.conn.commit()
    while step(core, r.queue_id) == 0:
        pass
    assert careful(core, lanes) == PARTS


def test_a_queue_that_is_deleted_meanwhile(core, queue):
    fill(core, queue)
    r = core.configure(queue, leaseTime=7)
    core.rows("delete from queen.queues where id = %s", r.queue_id)
    assert step(core, r.queue_id) == 200
    assert core.one("select count(*) from queen.configuring where queue_id = %s", r.queue_id) == 0


def test_the_answer_means_that_all_partitions_have_the_options(broker, broker2, pg, sql, queue):
    broker.configure(queue)
    sql("""with made as (
               insert into queen.lanes (queue_id, name, lease_seconds, limited, careful)
               select q.id, 'p' || i, 300, false, false from queen.queues q, generate_series(1, 4500) i where q.name = %s
               returning num)
           insert into queen.segments (lane, first_seq, created_at, count, keys, body)
           select num, 1, now(), 1, uuid_send(gen_random_uuid()), '\\x01000000000131' from made where num %% 1000 = 0""", queue)
    broker.configure(queue, delayedProcessing=600)
    assert sql("select count(*) from queen.lanes l join queen.queues q on q.id = l.queue_id"
               " where q.name = %s and not l.careful", queue)[0][0] == 0
    assert broker.take(queue) == broker2.take(queue) == []
    waiting = Background(lambda: broker2.take(queue, wait="true", timeout=60000, batch=10))
    time.sleep(1)  # until it waits, most likely
    broker.configure(queue)
    assert waiting.result(60)


def test_an_open_transaction_delays_the_answer_and_nothing_else(broker, pg, sql, queue):
    broker.configure(queue)
    broker.put(queue, ["a"], partition="held")
    broker.put(queue, ["b"], partition="free")
    conn = pg.connect(autocommit=False)
    try:
        with conn.cursor() as cur:
            cur.execute("select from queen.lanes l join queen.queues q on q.id = l.queue_id where q.name = %s and l.name = 'held'"
                        " for no key update of l", [queue])
        waiting = Background(lambda: broker.configure(queue, leaseTime=7))
        wait_until(lambda: sql("select count(*) from queen.lanes l join queen.queues q on q.id = l.queue_id"
                               " where q.name = %s and l.name = 'free' and l.lease_seconds = 7", queue)[0][0] == 1,
                   30, "the free partition has its option")
        broker.put(queue, ["c"], partition="free")
        broker.put(queue, ["d"], partition="new")
        assert not waiting.done
        conn.rollback()
        waiting.result()
    finally:
        conn.close()
    assert sql("select count(*) from queen.lanes l join queen.queues q on q.id = l.queue_id"
               " where q.name = %s and l.lease_seconds = 7", queue)[0][0] == 4
