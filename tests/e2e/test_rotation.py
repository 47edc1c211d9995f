"""Rotation empties the change feed: a broker that did not look in time must not miss what was in it."""
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


def test_a_parked_pop_finds_what_the_emptied_feed_told(broker, broker2, queue, sql):
    """The pop parks before the push and looks seldom by then; rotation must not hide the push from it."""
    broker.put(queue, ["first"], partition="p")
    assert len(broker.take(queue, autoAck=True)) == 1
    parked = Background(lambda: broker.take(queue, wait=True, timeout=25000))
    time.sleep(0.3)
    broker2.put(queue, ["second"], partition="p")
    empty_the_feed(sql)
    assert [m["data"] for m in parked.result()] == ["second"]
