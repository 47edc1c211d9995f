"""The first pop of a group on a queue with many partitions, while a partition on a later page is locked."""
import contextlib
import time

import pytest

from harness import Background, let_arrive, patience, wait_until

PARTS = 2600  # two pages


def fill(sql, broker, queue):
    broker.configure(queue)
    sql("insert into queen.lanes (queue_id, name, lease_seconds, limited, careful)"
        " select q.id, 'p' || lpad(i::text, 5, '0'), 300, false, false from queen.queues q, generate_series(1, %s) i where q.name = %s",
        PARTS, queue)


@contextlib.contextmanager
def locked(pg, text, *args):
    """Runs a statement in a transaction that stays open."""
    conn = pg.connect(autocommit=False)
    try:
        with conn.cursor() as cur:
            cur.execute(text, args)
        yield conn
    finally:
        conn.close()




@pytest.mark.parametrize("how", ["queue", "namespace"])
def test_a_waiting_pop_is_answered_at_its_timeout(broker, pg, sql, queue, group, how):
    """Its group's partitions are still being read then."""
    fill(sql, broker, queue)
    sql("update queen.queues set namespace = %s where name = %s", queue, queue)
    target = {"queue": queue} if how == "queue" else {"queue": None, "namespace": queue}
    with locked(pg, "select from queen.lanes l join queen.queues q on q.id = l.queue_id"
                    " where q.name = %s and l.name > 'p02100' for update of l", queue):
        first = Background(lambda: broker.take(target["queue"], consumerGroup=group, wait=True, timeout=1000,
                                               **{k: v for k, v in target.items() if k != "queue"}))
        assert first.result(60) == []
        assert first.seconds < 9  # the lock timeout is 10 s


def test_a_waiting_pop_gets_what_arrives_on_a_page_already_read(broker, broker2, pg, sql, queue, group):
    fill(sql, broker, queue)
    with locked(pg, "select from queen.lanes l join queen.queues q on q.id = l.queue_id"
                    " where q.name = %s and l.name > 'p02100' for update of l", queue):
        waiting = Background(lambda: broker.take(queue, consumerGroup=group, wait=True, timeout=60000, subscriptionMode="new"))
        wait_until(lambda: sql("select count(*) from queen.consumers where grp = %s", group)[0][0] >= 2000, 30, "the first page")
        broker2.put(queue, ["m"], partition="p00007")
        assert [m["data"] for m in waiting.result(60)] == ["m"]
        assert waiting.seconds < 9


def test_a_locked_partition_keeps_no_other_from_being_found(broker, pg, sql, queue, group):
    """Groups get consumers for new partitions while another session has locked one of them."""
    broker.put(queue, ["held"], partition="held")
    broker.put(queue, ["free"], partition="free")
    with locked(pg, "select from queen.lanes l join queen.queues q on q.id = l.queue_id"
                    " where q.name = %s and l.name = 'held' for update of l", queue) as conn:
        begin = time.monotonic()
        (m,) = broker.take(queue, consumerGroup=group, wait=True, timeout=20000)
        assert m["data"] == "free"
        broker.put(queue, ["new"], partition="new")
        assert [m["data"] for m in broker.take(queue, consumerGroup=group, wait=True, timeout=20000)] == ["new"]
        assert time.monotonic() - begin < patience(3), "waited for the lock"
        assert broker.take(queue, consumerGroup=group) == []
        waiting = Background(lambda: broker.take(queue, consumerGroup=group, wait=True, timeout=60000))
        let_arrive()
        conn.rollback()
        assert [m["data"] for m in waiting.result(60)] == ["held"]


def test_a_group_starts_at_the_place_of_its_subscription(core, queue):
    """Many partitions in one call: the cursor of each is the one that queen.start_cursor computes."""
    core.configure(queue)
    lanes = [n for n, _ in core.lanes(*[(queue, "p%d" % i) for i in range(6)])]
    for i in range(3):
        core.push([(n, ["m%d" % i]) for n in lanes[:5 - i]])
    core.rows("update queen.segments set created_at = now() - (3 - first_seq) * interval '1 hour' where lane = any (%s)", lanes)
    core.rows("update queen.segments set count = 0, keys = '', body = '' where lane = %s and first_seq = 3", lanes[0])
    for group, mode, start in (("all-" + queue, "", ""), ("new-" + queue, "new", ""), ("now-" + queue, "", "now"),
                               ("some-" + queue, "", core.one("select (now() - interval '90 minutes')::text"))):
        core.rows("select queen.subscribe(%s, %s, '', '', '', %s, %s)", group, queue, mode, start)
        made = core.consumers(group, *lanes)
        cursors = [core.state(c).cursor_seq for c in made]
        assert cursors == [core.one("select queen.start_cursor(%s, %s)", n, group) for n in lanes]
        expected = {"all": [0] * 6, "new": [3, 3, 3, 2, 1, 0], "now": [3, 3, 3, 2, 1, 0], "some": [1, 1, 1, 1, 1, 0]}
        assert cursors == expected[group.split("-")[0]]
