"""Rows of queen.consumers that hold no position are removed when nobody uses them."""
import json
import time

import pytest

from harness import Background, wait_until
from sqlcore import stored


def old(core, *lanes):
    core.rows("update queen.consumers set created_at = now() - interval '40 days' where lane = any (%s)", list(lanes))
    core.rows("update queen.consumer_watermarks set updated_at = now() - interval '40 days'")


def walk(core, limit=3):
    """The whole walk of a chore; (steps, rows removed)."""
    after, steps, removed = 0, 0, 0
    while True:
        (r,) = core.rows("select * from queen.forget_consumers(%s, 30, %s)", after, limit)
        after, steps, removed = r.next, steps + 1, removed + r.removed
        if after == 0:
            return steps, removed


def groups(core, lane):
    return {r.grp for r in core.rows("select grp from queen.consumers where lane = %s", lane)}


def page(core, queue, group, mode=""):
    return core.rows("select * from queen.discover_page(%s, null, %s, '', '', %s, '', null)", queue, group, mode)


def test_names_that_were_used_once_go(core, queue):
    core.configure(queue)
    lanes = [n for n, _ in core.lanes(*[(queue, "p%d" % i) for i in range(4)])]
    for i in range(5):
        page(core, queue, "once-%d" % i)
    page(core, queue, "__QUEUE_MODE__")
    assert walk(core)[1] == 0, "they are young"
    old(core, *lanes)
    core.rows("update queen.consumer_watermarks set updated_at = now() where consumer_group = 'once-4'")
    steps, removed = walk(core)
    assert steps > 3 and removed == 5 * 4
    assert all(groups(core, n) == {"once-4"} for n in lanes)
    assert core.one("select count(*) from queen.consumer_states t where not exists"
                    " (select from queen.consumers c where c.num = t.consumer)") == 0
    walk(core, 2000)  # earlier tests left old watermarks, too
    assert core.rows("select consumer_group from queen.consumer_watermarks where queue_name = %s", queue) == [("once-4",)]


def test_a_position_that_means_something_stays(core, queue):
    core.configure(queue, retryPolicy={"mode": "scheduled"})
    (lane, lane_id), (other, _) = core.lanes((queue, "p"), (queue, "other"))
    stored(core, core.push([(lane, ["a"])]))
    for group in ("pending", "consumed", "leased", "seeked", "failed", "new", "idle"):
        core.consumers(group, other)
    for group in ("pending", "consumed", "failed"):
        core.consumers(group, lane)
    core.settle(lane_id, "consumed", ["a"], [0])
    core.claim(core.consumers("leased", lane))
    core.consumers("seeked", lane)
    core.rows("select * from queen.seek_group(%s)", json.dumps({"group": "seeked", "queue": queue, "body": {"toEnd": True}}))
    core.settle(lane_id, "failed", ["a"], [1])
    page(core, queue, "new", "new")
    old(core, lane, other)
    walk(core)
    assert groups(core, lane) == {"pending", "consumed", "leased", "seeked", "failed"}
    # The cursor of "seeked" was moved on the other partition, too; the other groups have nothing there.
    assert groups(core, other) == {"seeked"}


def test_a_group_that_comes_back_starts_where_it_would_have_started(core, queue):
    core.configure(queue)
    ((lane, _),) = core.lanes((queue, "p"))
    stored(core, core.push([(lane, ["before"])]))
    assert page(core, queue, "new-" + queue, "new") == []
    old(core, lane)
    assert walk(core)[1] == 1
    stored(core, core.push([(lane, ["after"])]))
    (found,) = page(core, queue, "new-" + queue, "new")
    assert core.state(found.consumer).cursor_seq == 1


def test_a_consumer_that_another_session_holds_stays(core, connect, queue):
    core.configure(queue)
    ((lane, _),) = core.lanes((queue, "p"))
    consumer, = core.consumers("g", lane)
    old(core, lane)
    holder = connect(autocommit=False)
    holder.rows("select from queen.consumers where num = %s for no key update", consumer)
    core.rows("set lock_timeout = '50ms'")
    walk(core)
    assert groups(core, lane) == {"g"}
    holder.conn.rollback()
    walk(core)
    assert groups(core, lane) == set()


@pytest.mark.parametrize("partition", [None, "p"])
def test_a_pop_that_waits_gets_its_message_though_its_row_is_gone(broker, sql, queue, group, partition):
    broker.put(queue, ["a"], partition="p")
    sql("update queen.segments set created_at = created_at - interval '1 hour' where lane in (select l.num from queen.lanes l"
        " join queen.queues q on q.id = l.queue_id where q.name = %s)", queue)
    waiting = Background(lambda: broker.take(queue, partition, consumerGroup=group, wait=True, timeout=60000, subscriptionMode="new"))
    wait_until(lambda: sql("select count(*) from queen.consumers where grp = %s", group)[0][0] > 0, 30, "its rows")
    time.sleep(0.3)
    sql("update queen.consumers set created_at = now() - interval '40 days' where grp = %s", group)
    sql("update queen.consumer_watermarks set updated_at = now() - interval '40 days' where consumer_group = %s", group)
    assert sql("select removed from queen.forget_consumers(0, 30, 1000000)")[0][0] > 0
    assert sql("select count(*) from queen.consumers where grp = %s", group)[0][0] == 0
    broker.put(queue, ["b"], partition="p")
    assert [m["data"] for m in waiting.result(60)] == ["b"]


def test_the_chore_of_a_broker_removes_them(make_broker, pg):
    database = pg.create_database("unused")
    b = make_broker(database=database, RETENTION_INTERVAL=200, NUM_WORKERS=1)
    b.put("q", [1])
    b.take("q", autoAck=True)
    for i in range(3):
        assert len(b.take("q", consumerGroup="g%d" % i, subscriptionMode="new")) == 0
    with pg.connect(database=database) as conn, conn.cursor() as cur:
        def rows():
            cur.execute("select count(*) from queen.consumers")
            count = cur.fetchone()[0]
            conn.commit()
            return count
        assert rows() >= 4
        cur.execute("update queen.consumers set created_at = now() - interval '40 days'")
        cur.execute("update queen.consumer_watermarks set updated_at = now() - interval '40 days'")
        conn.commit()
        wait_until(lambda: rows() == 1, 30, "only the consumer with a position is left")
