"""A processor whose handler gets whole batches and answers later (on_events): the guarantees of on_event, and moving events."""
import signal
import time

import pytest

import harness
from harness import patience, wait_until
from test_processor import PARTITIONS, crew, in_order  # noqa: F401 (a fixture)


def dead(crew):
    return crew.broker.get("/api/v1/dlq?queue=%s" % crew.queue).json


def test_batches_come_in_order_and_each_event_once(crew):
    crew.push(300)
    w = crew.start("a", mode="batch")
    crew.wait_all()
    assert in_order(w.events()) and len(w.events()) == 300
    assert any(int(line.split()[2]) > 5 for _, line in w.lines if line.startswith("batch ")), "many at once"
    crew.push(100)
    crew.wait_all()
    assert in_order(w.events()) and len(w.events()) == 400


def test_only_failed_events_are_retried_and_then_dead_lettered(crew):
    w = crew.start("a", mode="batch")
    key = {"queue": crew.queue, "partitionKey": "k1"}
    crew.broker.push([{**key, "payload": {"n": i, "do": do}} for i, do in
                      enumerate(["", "fail", "fail once", "hopeless", ""])])
    crew.n = 5
    crew.wait_all()
    tries = {}
    for _, _, tried, data in w.events():
        tries.setdefault(data["n"], []).append(tried)
    assert tries == {0: [0], 1: [0, 1, 2, 3], 2: [0, 1], 3: [0], 4: [0]}
    wait_until(lambda: dead(crew)["total"] == 2, 5, "two dead letters")
    assert {(m["data"]["n"], m["errorMessage"]) for m in dead(crew)["messages"]} == {(1, "as told"), (3, "no hope")}


def test_a_moved_event_is_in_the_other_queue_and_gone_from_its_own(crew):
    w = crew.start("a", mode="batch")
    crew.push(10)
    crew.push(10, do="move")
    crew.push(5, do="hopeless")
    crew.push(10)
    crew.wait_all()
    assert len(w.events()) == 35
    moved, place = [], "%s.moved" % crew.queue
    for partition in sorted({e[1] for e in w.events() if "move" in e[3].get("do", "")}):
        r = crew.broker.get("/api/v1/pop/queue/%s/partition/%s?batch=100&autoAck=true" % (place, partition))
        got = [m["data"]["n"] for m in r.json["messages"]] if r.status == 200 else []
        assert got == sorted(got), "in order"
        moved += got
    assert sorted(moved) == list(range(10, 20))
    assert dead(crew)["total"] == 5


def test_events_without_an_outcome_are_delivered_again_with_later_ones(crew):
    """The first three times the worker forgets to answer; what is moved behind that must not be moved then."""
    key = {"queue": crew.queue, "partitionKey": "k1"}
    crew.broker.push([{**key, "payload": {"n": i, "do": do}} for i, do in enumerate(["move", "forget", "move", "", "hopeless"])])
    crew.n = 5
    w = crew.start("a", mode="batch", expiry=30)  # a claim that ran out on a busy machine would deliver them once more
    crew.wait_all()
    assert sorted(e[3]["n"] for e in w.events()) == [0] + [1] * 4 + [2] * 4 + [3] + [4] * 4, "handled once, the others again"
    assert {e[2] for e in w.events()} == {0}, "without counting"
    wait_until(lambda: crew.broker.get("/api/v1/resources/queues/%s.moved" % crew.queue).json["totals"]["total"] == 2,
               10 * harness.TIME_FACTOR, "two events were moved")
    assert dead(crew)["total"] == 1


def test_a_second_gets_its_share_and_nothing_is_handled_twice(crew):
    a = crew.start("a", mode="batch")
    wait_until(lambda: len(a.owned()) == PARTITIONS, 10, "a has all")
    b = crew.start("b", mode="batch")
    for _ in range(15):
        crew.push(20)
        time.sleep(0.1)
    wait_until(lambda: len(b.owned()) == PARTITIONS // 2, 15, "b has its half")
    crew.wait_all()
    assert len(a.events()) + len(b.events()) == crew.n, "handed over between batches"
    assert in_order(a.events()) and in_order(b.events())


def test_a_stop_waits_for_the_batch_and_returns_unstarted_events(crew):
    a = crew.start("a", expiry=60, mode="batch")
    wait_until(lambda: len(a.owned()) == PARTITIONS, 10, "a has all")
    crew.push(80, do="slow")
    wait_until(lambda: len(a.events()) >= PARTITIONS, 10, "it works")
    begin = time.monotonic()
    a.stop()
    assert time.monotonic() - begin < patience(2)
    b = crew.start("b", mode="batch")
    crew.wait_all(30)
    assert len(a.events()) + len(b.events()) == 80, "nothing twice"


def test_an_owner_that_slept_past_its_expiry_is_fenced(crew):
    a = crew.start("a", mode="batch")
    wait_until(lambda: len(a.owned()) == PARTITIONS, 10, "a has all")
    crew.push(40, do="slow move")
    wait_until(lambda: len(a.events()) >= 4, 10, "a is in the middle")
    a.signal(signal.SIGSTOP)
    b = crew.start("b", mode="batch")
    wait_until(lambda: len(b.owned()) == PARTITIONS, 15, "b has all")
    a.signal(signal.SIGCONT)
    wait_until(lambda: a.has("lost"), 10, "a finds out")
    crew.wait_all(30)
    moved = crew.broker.get("/api/v1/resources/queues/%s.moved" % crew.queue).json["totals"]["total"]
    assert moved == 40, "what a moved late was refused together with its acknowledgements"


def test_everything_after_a_manual_checkpoint_is_redelivered(crew):
    key = {"queue": crew.queue, "partitionKey": "k0"}
    crew.broker.push([{**key, "payload": {"n": i, "do": do}} for i, do in enumerate(["checkpoint", "", ""])])
    crew.n = 3
    a = crew.start("a", mode="batch manual")
    crew.wait_all()
    time.sleep(0.3)
    a.stop()
    b = crew.start("b", mode="batch manual")
    wait_until(lambda: [e[3]["n"] for e in b.events()] == [1, 2], 10, "the two behind the checkpoint")


@pytest.mark.parametrize("mode", ["plain", "batch"])
def test_an_error_text_of_any_bytes_does_not_stop_its_partition(crew, mode):
    """The text is cut between two characters, and bytes that are not UTF-8 are replaced: the broker would refuse the whole
    acknowledgement, again and again."""
    key = {"queue": crew.queue, "partitionKey": "k1"}
    crew.broker.push([{**key, "payload": {"n": i, "do": do}} for i, do in enumerate(["", "babel", ""])])
    crew.n = 3
    w = crew.start("a", mode=mode, expiry=30)
    crew.wait_all()
    assert len(w.events()) == 3 and not w.has("error refused")
    letters = dead(crew)
    assert letters["total"] == 1 and letters["messages"][0]["errorMessage"].startswith("? \u0436\u0436")
