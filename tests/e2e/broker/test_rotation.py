"""Rotation empties the change feed: a broker that did not read it in time must not miss a change."""
import time

import pytest

from harness import Background, wait_until


def empty_the_feed(sql):
    """Switch slots and empty the old one; what was in it is gone."""
    done = []

    def turn():
        done.extend(r[0] for r in sql("select queen.rotate(1, 0)"))
        return "switched" in done and "emptied" in done[done.index("switched"):]
    wait_until(turn, 20, "a slot emptied", 0.3)


@pytest.mark.parametrize("partition", [None, "p"])
def test_a_push_by_another_broker_outlives_its_feed_row(broker, broker2, queue, sql, partition):
    broker.put(queue, ["first"], partition="p")
    assert [m["data"] for m in broker.take(queue, partition, autoAck=True)] == ["first"]
    assert broker.take(queue, partition) == []
    broker2.put(queue, ["second"], partition="p")
    empty_the_feed(sql)
    assert [m["data"] for m in broker.take(queue, partition)] == ["second"]


def test_a_parked_pop_sees_changes_of_an_emptied_feed(broker, broker2, queue, sql):
    """The pop parks before the push and polls rarely by then.  Rotation must not hide the push from it."""
    broker.put(queue, ["first"], partition="p")
    assert len(broker.take(queue, autoAck=True)) == 1
    parked = Background(lambda: broker.take(queue, wait=True, timeout=25000))
    time.sleep(0.3)
    broker2.put(queue, ["second"], partition="p")
    empty_the_feed(sql)
    assert [m["data"] for m in parked.result()] == ["second"]


CURSORS = "select c.num, st.cursor_seq from queen.consumers c cross join lateral queen.latest_state(c.num) st order by c.num"


def turn_until(sql, what):
    wait_until(lambda: sql("select queen.rotate(1, 0)")[0][0] == what, 20, what, 0.05)


def test_a_dump_that_begins_before_a_slot_is_emptied_has_every_cursor(pg, broker, queue, sql):
    """Like pg_dump: a snapshot first, the tables a moment later.  Older snapshots do not see rows removed by TRUNCATE, either."""
    broker.put(queue, ["one", "two"], partition="p")
    assert len(broker.take(queue, batch=2, autoAck=True)) == 2
    empty_the_feed(sql)  # from here on a whole turn
    turn_until(sql, "switched")
    turn_until(sql, "copied")
    with pg.connect(autocommit=False) as dump, dump.cursor() as then:
        dump.set_session(isolation_level="REPEATABLE READ")
        then.execute("select pg_current_snapshot()")
        before = sql(CURSORS)
        broker.put(queue, ["three"], partition="p")
        assert len(broker.take(queue, autoAck=True)) == 1
        turn_until(sql, "emptied")
        then.execute(CURSORS)
        assert then.fetchall() == before != sql(CURSORS)
    dump.close()


def test_a_slot_is_not_emptied_right_after_its_copy(sql, broker, queue):
    broker.put(queue, ["first"], partition="p")
    assert len(broker.take(queue, autoAck=True)) == 1
    empty_the_feed(sql)
    turn_until(sql, "switched")
    turn_until(sql, "copied")
    since, done = time.monotonic(), []
    while "emptied" not in done:
        done.append(sql("select queen.rotate(1, 0)")[0][0])
    assert time.monotonic() - since > 0.9 and set(done) == {"nothing", "emptied"}
