"""The checker: good histories pass, and each kind of violation is found in the smallest history that has it."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import report  # noqa: E402
from checker import Rules, check  # noqa: E402
from history import OK, REJECTED, UNKNOWN, Ack, Fault, Loss, LostPop, Pop, Push, Renew, Schedule, Settle, Take, Try, Txn, Verdict  # noqa: E402

RULES = Rules({"q": 3, "made": 3}, {"q": {"g": False}, "made": {"m": False}})
AUTO = Rules({"q": 3}, {"q": {"g": True}})


def mid(place):
    return place.to_bytes(16, "big")


def push(t, first, count=1, producer="a", broker=0, outcome=OK, stored="queued", ids=None, last=None):
    return Push("push", t, last or t + 0.1, "q", "p", producer, first, count, broker, outcome, stored, ids)


def pop(t, numbers, lease="l", producer="a", ids=None, auto=False, partition="p", queue="q", group="g", last=None):
    ids = ids or numbers
    return Pop("pop", t, last or t + 0.1, queue, partition, group, 0, lease, auto,
               [(producer, n, mid(i)) for n, i in zip(numbers, ids)])


def ack(t, through, lease="l", outcome=OK, ends=True):
    return Ack("ack", t, t + 0.1, "q", "p", "g", lease, None if through is None else mid(through), ends, outcome)


def rules_broken(events, rules=RULES):
    return {v.rule for v in check(sorted(events, key=lambda e: e.t0), rules)}


PUSHED = [push(0, 0, 4)]
GOOD = PUSHED + [pop(1, [0, 1]), ack(2, 1), pop(3, [2, 3], "k"), ack(4, 3, "k")]


def test_a_good_history_has_nothing_wrong():
    assert rules_broken(GOOD) == set()


def test_a_message_that_is_never_delivered_is_lost():
    assert rules_broken(PUSHED + [pop(1, [0, 1, 2]), ack(2, 2)]) == {"lost"}
    assert rules_broken([push(0, 0, 4, outcome=UNKNOWN, stored=""), pop(1, [0, 1, 2]), ack(2, 2)]) == set(), "was never answered"


def test_a_message_seen_only_by_another_group_is_lost():
    two = Rules({"q": 3}, {"q": {"g": False, "h": False}})
    events = [push(0, 0, 2, outcome=UNKNOWN, stored=""), pop(1, [0, 1]), ack(2, 1), pop(1, [0], "k", group="h")]
    assert rules_broken(events, two) == {"lost"}


def test_a_message_in_two_places_is_doubled():
    assert "doubled" in rules_broken(PUSHED + [pop(1, [0, 1, 2, 3, 0], ids=[0, 1, 2, 3, 4]), ack(2, 4)])
    repeated = push(0.5, 0, 4, ids=[mid(9 + i) for i in range(4)])
    assert "doubled" in rules_broken(GOOD + [repeated]), "the answer to a repeated push names other messages"


def test_a_message_that_was_never_pushed_is_forged():
    assert rules_broken(GOOD + [pop(5, [4], "j"), ack(6, 4, "j")]) == {"forged"}


def test_order_of_one_producer():
    swapped = [push(0, 0), push(1, 1), pop(2, [1, 0], ids=[0, 1]), ack(3, 1)]
    assert rules_broken(swapped) == {"reordered"}
    inside = [push(0, 0, 2), pop(2, [1, 0], ids=[0, 1]), ack(3, 1)]
    assert rules_broken(inside) == {"reordered"}


@pytest.mark.parametrize("brokers, stored, wrong", [
    ((0, 0), "buffered", {"reordered"}),  # behind what waits in the same buffer
    ((0, 1), "buffered", set()),          # another broker does not see that buffer
    ((0, 1), "queued", {"reordered"}),    # what is in the database is in front for everybody
])
def test_order_of_buffered_pushes(brokers, stored, wrong):
    events = [push(0, 0, broker=brokers[0], stored=stored), push(1, 1, broker=brokers[1]), pop(2, [1, 0], ids=[0, 1]), ack(3, 1)]
    assert rules_broken(events) == wrong


def test_a_push_tried_elsewhere_may_precede_buffered_messages():
    events = [push(0, 0, broker=0, stored="buffered"), push(1, 1, broker=1, outcome=UNKNOWN, stored=""), push(1.5, 1, broker=0),
              pop(2, [1, 0], ids=[0, 1]), ack(3, 1)]
    assert rules_broken(events) == set()


def test_nothing_comes_after_its_acknowledgement():
    again = [pop(5, [3], "j"), ack(6, 3, "j")]
    assert rules_broken(GOOD + again) == {"redelivered"}
    unknown = PUSHED + [pop(1, [0, 1, 2, 3]), ack(2, 3, outcome=UNKNOWN), pop(5, [0, 1, 2, 3], "j"), ack(6, 3, "j")]
    assert rules_broken(unknown) == set(), "an acknowledgement of unknown outcome promises nothing"
    racing = PUSHED + [pop(1, [0, 1, 2, 3]), ack(2, 3), pop(1.05, [0, 1, 2, 3], "j", last=3)]
    assert "redelivered" not in rules_broken(racing), "the pop began before the answer"


def test_a_cursor_overtakes_nothing():
    assert rules_broken(PUSHED + [pop(1, [0]), ack(2, 0), pop(3, [2, 3], "k"), ack(4, 3, "k"), pop(9, [1], "late", last=9)]) \
        >= {"overtaken"}
    assert rules_broken(PUSHED + [pop(1, [0, 2, 3]), ack(2, 3), pop(0.5, [1], "x", last=9)]) >= {"overtaken"}


def test_two_leases():
    both = PUSHED + [pop(1, [0, 1, 2, 3]), pop(2, [0, 1, 2, 3], "k"), ack(2.5, 3, "k")]
    assert rules_broken(both) == {"two leases"}
    after_expiry = PUSHED + [pop(1, [0, 1, 2, 3]), pop(4.1, [0, 1, 2, 3], "k"), ack(4.5, 3, "k")]
    assert rules_broken(after_expiry) == set()
    waited = PUSHED + [pop(1, [0, 1, 2, 3]), pop(2, [0, 1, 2, 3], "k", last=4.2), ack(4.5, 3, "k")]
    assert rules_broken(waited) == set(), "it may have been given out after the end"
    given_up = PUSHED + [pop(1, [0, 1, 2, 3]), ack(1.5, None), pop(2, [0, 1, 2, 3], "k"), ack(4.5, 3, "k")]
    assert rules_broken(given_up) == set(), "a failure ends the lease"
    part = PUSHED + [pop(1, [0, 1, 2, 3]), ack(1.5, 1, ends=False), pop(2, [2, 3], "k"), ack(2.5, 3, "k")]
    assert rules_broken(part) == {"two leases"}, "half of the batch does not"


def test_a_renewed_lease_lives_longer():
    events = PUSHED + [pop(1, [0, 1, 2, 3]), Renew("renew", 3, 3.1, "l", 5, OK), pop(5, [0, 1, 2, 3], "k"), ack(6, 3, "k")]
    assert rules_broken(events) == {"two leases"}


def test_a_lease_is_not_taken_away():
    assert rules_broken(PUSHED + [pop(1, [0, 1, 2, 3]), ack(2, 3, outcome=REJECTED), pop(5, [0, 1, 2, 3], "k"), ack(6, 3, "k")]) \
        == {"lease lost"}
    tried_twice = PUSHED + [pop(1, [0, 1, 2, 3]), ack(2, 3, outcome=UNKNOWN), ack(2.5, 3, outcome=REJECTED)]
    assert rules_broken(tried_twice) == set(), "the first try has ended it"
    late = PUSHED + [pop(1, [0, 1, 2, 3]), ack(4.5, 3, outcome=REJECTED), pop(5, [0, 1, 2, 3], "k"), ack(6, 3, "k")]
    assert rules_broken(late) == set()


def test_auto_ack_may_lose_messages_in_a_lost_answer():
    seen = PUSHED + [pop(1, [0, 1], "", auto=True)]
    assert rules_broken(seen, AUTO) == {"lost"}
    assert rules_broken(seen + [LostPop("lostpop", 2, 3, "q", "g", 0, True, 2)], AUTO) == set()
    assert rules_broken(seen + [LostPop("lostpop", 2, 3, "q", "g", 0, True, 1)], AUTO) == {"lost"}


def test_auto_ack_delivers_at_most_once():
    twice = PUSHED + [pop(1, [0, 1, 2, 3], "", auto=True), pop(2, [2, 3], "", auto=True)]
    assert rules_broken(twice, AUTO) == {"redelivered"}


def txn(t, outcome, n=0, lease="l", sources=(0,)):
    return Txn("txn", t, t + 0.1, "q", "p", "g", lease, [mid(s) for s in sources],
               [("made", "p", "x", n), ("made", "p2", "x", n)], outcome)


def made(t, n=0, partitions=("p", "p2")):
    return [pop(t, [n], "made" + p, "x", partition=p, queue="made", group="m") for p in partitions]


ONE = [push(0, 0), pop(1, [0])]


def test_transactions():
    assert rules_broken(ONE + [txn(2, OK)] + made(3)) == set()
    assert rules_broken(ONE + [txn(2, UNKNOWN)] + made(3)) == set()
    assert "torn" in rules_broken(ONE + [txn(2, UNKNOWN)] + made(3, partitions=["p"])), "half of it"
    assert "torn" in rules_broken(ONE + [txn(2, REJECTED)] + made(3)), "it happened though it was refused"
    assert "torn" in rules_broken(ONE + [txn(2, OK)]), "it did not happen though it was answered"
    twice = ONE + [txn(2, UNKNOWN), pop(5, [0], "k"), txn(6, OK, 1, "k")] + made(7) + made(7.5, 1)
    assert "torn" in rules_broken(twice), "one message, two transactions"


def test_a_scheduled_message_is_not_early():
    def scheduled(t):
        return [Schedule("schedule", 0, 0.1, "q", "p", "s", 0, 5, 0, OK), pop(t, [0], producer="s"), ack(t + 1, 0)]
    assert rules_broken(scheduled(5.1)) == set()
    assert rules_broken(scheduled(4.0)) == {"early"}


def test_scheduled_messages_lie_in_the_order_of_delivery_not_of_ids():
    events = [Schedule("schedule", 0, 0.1, "q", "p", "s", n, 5 - n, 0, OK) for n in range(2)]
    assert rules_broken(events + [pop(6, [1, 0], producer="s"), ack(7, 0)]) == set()
    assert rules_broken(events + [pop(6, [1], producer="s"), ack(7, 1), pop(8, [0], "k", producer="s"), ack(9, 0, "k"),
                                  pop(10, [1], "j", producer="s")]) == {"redelivered"}


RETRIED = Rules({}, {}, {"q": ("g", 1.0, 3)})


def attempt(t, k, failed, outcome=OK, dead=False):
    """Message 0 is delivered for the kth time and judged a little later."""
    return [Try("try", t, t + 0.1, "q", "p", "g", 0, "l%d" % k, [("a", 0, k)]),
            Verdict("verdict", t + 0.2, t + 0.3, "q", "p", "g", "l%d" % k, [("a", 0, k, failed, dead)], outcome)]


def test_each_failure_has_one_retry():
    first = [push(0, 0)]
    assert rules_broken(first + attempt(1, 1, True) + attempt(3, 2, False), RETRIED) == set()
    assert rules_broken(first + attempt(1, 1, True) + attempt(3, 2, True) + attempt(5, 3, True, dead=True), RETRIED) == set()
    assert rules_broken(first, RETRIED) == {"lost"}
    assert rules_broken(first + attempt(1, 1, True), RETRIED) == {"retries"}, "none"
    assert rules_broken(first + attempt(1, 1, True) + attempt(3, 2, False) + attempt(5, 2, False), RETRIED) == {"redelivered"}, "two"
    assert rules_broken(first + attempt(1, 1, False) + attempt(3, 2, False), RETRIED) == {"retries"}, "of a success"
    assert rules_broken(first + attempt(1, 1, True) + attempt(1.5, 2, False), RETRIED) == {"early"}
    unknown = attempt(1, 1, True, UNKNOWN)
    assert rules_broken(first + unknown + attempt(3, 2, False), RETRIED) == set()
    assert rules_broken(first + unknown + attempt(5, 1, False), RETRIED) == set(), "neither the failure nor its retry"


def test_the_story_of_a_violation_is_short():
    events = sorted(GOOD + [Fault("fault", 2.5, 2.6, "KillBroker", 0), pop(5, [3], "j")], key=lambda e: e.t0)
    (violation,) = check(events, RULES)
    lines = report.story(violation, events)
    assert len(lines) == 4 and "KillBroker" in lines[0] and "lease k" in lines[1] and "ack" in lines[2] and "lease j" in lines[3]


def test_recovery_times():
    pushes = [push(t / 10, t, 10, last=t / 10 + 0.05) for t in range(100) if not 20 <= t < 43]
    events = pushes + [Fault("fault", 2, 3.9, "KillBroker", 0)]
    ((name, times),) = report.recoveries(events, 100)
    assert name == "KillBroker" and round(times["push"], 2) == 0.45 and round(times["95 %"], 2) == 0.45
    assert times["pop"] is None


# --- the database lost the end of its commits -----------------------------------------------------------------------

LOSS = Loss("loss", 10, 12)


def test_messages_answered_during_a_loss_may_be_missing():
    assert rules_broken(GOOD + [push(11, 4, 2), LOSS]) == set()
    assert rules_broken(GOOD + [push(9.95, 4, 2), LOSS]) == set(), "answered when it had begun"
    assert rules_broken(GOOD + [push(11.95, 4, 2), LOSS]) == set(), "asked before it had ended"


def test_answers_before_and_requests_after_a_loss_must_hold():
    assert rules_broken(GOOD + [push(9.8, 4, 2), LOSS]) == {"lost"}
    assert rules_broken(GOOD + [push(12.1, 4, 2), LOSS]) == {"lost"}


def test_messages_seen_during_a_loss_may_be_missing_or_have_another_id():
    seen = GOOD + [push(10.1, 4, ids=[mid(4)]), pop(10.5, [4], "x"), ack(10.8, 4, "x"), LOSS]
    assert rules_broken(seen) == set()
    again = [push(13, 4, ids=[mid(7)]), pop(14, [4], "y", ids=[7]), ack(15, 7, "y")]
    assert rules_broken(seen + again) == set()
    assert rules_broken(seen + again[:1]) == {"lost"}
    assert rules_broken(seen + again + [pop(16, [4], "z", ids=[8])]) >= {"doubled"}


def test_an_acknowledgement_may_be_undone_by_a_loss_and_no_other():
    more = GOOD[:-1] + [ack(10.5, 3, "k"), LOSS]
    again = [pop(13, [2, 3], "m"), ack(14, 3, "m")]
    assert rules_broken(more + again) == set()
    assert rules_broken(GOOD + [LOSS] + again) == {"redelivered"}
    assert rules_broken(more + again + [pop(15, [2, 3], "n")]) == {"redelivered"}


def test_a_delivery_during_a_loss_is_one():
    """Whether its acknowledgement was undone or not: the client has the message."""
    assert rules_broken(PUSHED + [pop(10.1, [0, 1, 2, 3]), ack(10.5, 3), LOSS]) == set()
    assert rules_broken(PUSHED + [pop(10.1, [0, 1, 2]), ack(10.5, 2), LOSS]) == {"lost"}


def test_nothing_is_skipped_after_a_loss():
    more = PUSHED + [push(5, 4, 2), pop(10.1, [0, 1]), ack(10.5, 1), LOSS]
    assert rules_broken(more + [pop(13, [2, 3, 4, 5], "k"), ack(14, 5, "k")]) == set()
    assert rules_broken(more + [pop(13, [0, 1, 2, 3, 4, 5], "k"), ack(14, 5, "k")]) == set()
    assert "lost" in rules_broken(more + [pop(13, [3, 4, 5], "k"), ack(14, 5, "k")])


def test_a_lease_of_a_lost_claim_protects_nothing_and_others_do():
    lost_claim = PUSHED + [pop(11, [0, 1]), LOSS, pop(12.5, [0, 1], "k"), ack(12.7, 1, "l", REJECTED), ack(12.8, 1, "k"),
                           pop(13, [2, 3], "m"), ack(13.5, 3, "m")]
    assert rules_broken(lost_claim) == set()
    kept = PUSHED + [pop(9.5, [0, 1]), LOSS, pop(12.1, [0, 1], "k"), ack(12.2, 1, "k"), pop(13, [2, 3], "m"), ack(13.5, 3, "m")]
    assert rules_broken(kept) == {"two leases"}
    refused = PUSHED + [pop(9.5, [0, 1]), LOSS, ack(12.1, 1, "l", REJECTED), pop(13, [0, 1, 2, 3], "m"), ack(13.5, 3, "m")]
    assert rules_broken(refused) == {"lease lost"}


def books(t, ns, queue="made"):
    return pop(t, ns, "b%s" % t, "t", partition="p", queue=queue, group="m")


def transaction(t, sources, n, outcome=OK, lease="l"):
    return Txn("txn", t, t + 0.1, "q", "p", "g", lease, [mid(s) for s in sources], [("made", "p", "t", n)], outcome)


def test_a_transaction_may_be_undone_by_a_loss_and_is_not_torn():
    undone = [push(0, 0), pop(9, [0]), transaction(10.5, [0], 0), books(10.8, [0]), LOSS]
    redone = undone + [pop(13, [0], "k"), transaction(14, [0], 1, lease="k"), books(15, [1])]
    assert rules_broken(undone) == set()
    assert rules_broken(redone) == set()
    assert "torn" in rules_broken(undone + [pop(13, [0], "k"), transaction(14, [0], 1, lease="k"), books(15, [0]), books(16, [1])])


def test_a_retry_may_be_undone_by_a_loss():
    rules = Rules({"q": 3}, {}, {"q": ("g", 1.0, 4)})

    def attempt(t, n):
        return Try("try", t, t + 0.1, "q", "p", "g", 0, "l%s" % t, [("a", 0, n)])

    def verdict(t, n, failed):
        return Verdict("verdict", t, t + 0.1, "q", "p", "g", "l", [("a", 0, n, failed, False)], OK)

    begin = [push(0, 0), attempt(9, 1), verdict(10.1, 1, True), attempt(11.3, 2), verdict(11.5, 2, True), LOSS]
    assert rules_broken(begin + [attempt(13, 2), verdict(14, 2, False)], rules) == set()
    assert rules_broken(begin + [attempt(13, 1), verdict(14, 1, False)], rules) == set()
    assert "retries" in rules_broken(begin, rules)


WORK = Rules({"q": 3}, {}, {}, {"q": ("g", 3, 3, 0)})
KEYS = Rules({"q": 3}, {}, {}, {"q": ("g", 3, 0, 2)})


def take(t, numbers, lease="l"):
    return Take("take", t, t + 0.1, "q", "p", "g", 0, lease, [("a", n, mid(n)) for n in numbers])


def settle(t, *numbers, lease="l", status="completed", delay=0, outcome=OK):
    return Settle("settle", t, t + 0.1, "q", "p", "g", lease, [(mid(n), status, delay, outcome) for n in numbers])


def stretch(t, n, seconds=4, lease="l", outcome=OK):
    return Renew("renew", t, t + 0.1, (lease, mid(n)), seconds, outcome)


JOBS = [push(0, 0, 3)]


@pytest.mark.parametrize("events", [
    [take(1, [0, 1]), take(1, [2], "k"), settle(2, 1), settle(2, 2, lease="k"), settle(2.5, 0)],
    [take(1, [0, 1, 2]), settle(2, 0, 2), take(4.1, [1], "k"), settle(5, 1, lease="k")],                       # an expired lease
    [take(1, [0, 1, 2]), settle(2, 0, 2), settle(2, 1, status="failed"), take(2.05, [1], "k"), settle(3, 1, lease="k")],
    [take(1, [0, 1, 2]), settle(2, 0, 2), settle(2, 1, status="retry", delay=1), take(3, [1], "k"), settle(3.5, 1, lease="k")],
    [take(1, [0, 1, 2]), stretch(2, 1), settle(2, 0, 2), settle(5, 1)],                                       # one message has longer
    [take(1, [0, 1, 2]), settle(2, 0, 2), settle(2, 1, outcome=UNKNOWN), settle(2.5, 1, outcome=REJECTED), take(2.2, [1], "k"),
     settle(3, 1, lease="k")],
], ids=["any order", "expired", "failed", "delayed", "extended", "answered late"])
def test_a_good_history_of_a_work_queue(events):
    assert rules_broken(JOBS + events, WORK) == set()


@pytest.mark.parametrize("events, rule", [
    ([take(1, [0, 1, 2]), settle(2, 0, 2)], "lost"),
    ([take(1, [0, 1]), settle(2, 0, 1)], "lost"),
    ([take(1, [0, 1, 2]), settle(2, 0, 1), settle(2, 2, status="failed")], "lost"),
    ([take(1, [0, 1, 2]), settle(1.5, 0, 2), take(2, [1], "k"), settle(2.5, 1, lease="k")], "held twice"),
    ([take(1, [0, 1, 2]), stretch(2, 1), settle(2, 0, 2), take(5, [1], "k"), settle(5.5, 1, lease="k")], "held twice"),
    ([take(1, [0, 1, 2]), settle(2, 0, 1, 2), take(3, [1], "k")], "redelivered"),
    ([take(1, [0, 1, 2]), settle(2, 0, 2), settle(2, 1, outcome=REJECTED), take(4.5, [1], "k"), settle(5, 1, lease="k")], "lease lost"),
    ([take(1, [0, 1, 2]), settle(2, 0, 2), settle(2, 1, status="retry", delay=1), take(2.5, [1], "k"), settle(3.5, 1, lease="k")], "early"),
    ([push(0, 3), take(1, [0, 1]), take(1.2, [2, 3], "k"), settle(2, 0, 1), settle(2, 2, 3, lease="k")], "limit"),
], ids=["never delivered again", "never delivered", "failed and gone", "two leases", "though extended", "settled", "refused", "too early",
        "too many"])
def test_a_bad_history_of_a_work_queue(events, rule):
    assert rules_broken(JOBS + events, WORK) == {rule}


def test_a_loss_may_undo_a_lease_of_a_work_queue_and_a_settlement():
    events = JOBS + [take(10.5, [0, 1, 2]), settle(10.8, 0, 1, 2), LOSS, take(12.5, [0, 1, 2], "k"), settle(13, 0, 1, 2, lease="k")]
    assert rules_broken(events, WORK) == set()
    assert rules_broken(JOBS + [take(9, [0, 1, 2]), LOSS, take(11.95, [1], "k"), settle(12.2, 0, 1, 2)], WORK) == set()


def test_the_limit_of_a_key_includes_its_priorities():
    def taken(n, partition, lease, t=1):
        return take(t, [n], lease)._replace(partition=partition)

    def good(t, n, partition, lease):
        return settle(t, n, lease=lease)._replace(partition=partition)

    pushes = [push(0, n)._replace(partition=p) for n, p in enumerate(("a", "a~p5", "a", "b"))]
    ends = [good(2, 0, "a", "k"), good(2, 1, "a~p5", "l"), good(2, 3, "b", "n")]
    two = [taken(0, "a", "k"), taken(1, "a~p5", "l"), taken(3, "b", "n")]
    assert rules_broken(pushes + two + ends + [taken(2, "a", "m", 2.2), good(3, 2, "a", "m")], KEYS) == set()
    assert rules_broken(pushes + two + ends + [taken(2, "a", "m", 1.2), good(3, 2, "a", "m")], KEYS) == {"key limit"}
