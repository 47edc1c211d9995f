"""Messages that are delivered again, moved or due while their queue is being deleted in steps (ADR 38): an answer counts only what was
delivered again, and nothing is left over."""
import json
import threading

import pytest

from sqlcore import stored
# The fixtures and helpers of the tests of steps, which load the SQL without a broker.
from test_sql_steps import PARTS, chore, connect, core, database, fill, nothing_is_left, steps, wait_until_blocked  # noqa: F401 pylint: disable=unused-import

ROWS = (1, 15)  # of a step: dead letters of a deleted partition are still there, or are not


class Session(threading.Thread):
    """Runs one statement in a session of its own."""

    def __init__(self, core, text, *args):
        super().__init__()
        self.core, self.text, self.args, self.got = core, text, args, None
        self.start()

    def run(self):
        try:
            self.got = self.core.rows(self.text, *self.args)
        except Exception as e:  # pylint: disable=broad-except
            self.got = e

    def result(self):
        self.join(30)
        assert not self.is_alive()
        if isinstance(self.got, Exception):
            raise self.got
        return self.got


def dead(core, queue):
    """PARTS partitions with a dead letter each; their numbers."""
    lanes = core.lanes(*[(queue, "p%d" % i) for i in range(PARTS)])
    stored(core, core.push([(n, ["m%d" % i]) for i, (n, _) in enumerate(lanes)]))
    core.claim_hot(core.consumers("g", *[n for n, _ in lanes]))
    for i, (_, lane_id) in enumerate(lanes):
        core.settle(lane_id, "g", ["m%d" % i], [2])
    assert core.one("select count(*) from queen.dead_letter_queue where lane = any (%s)", [n for n, _ in lanes]) == PARTS
    return lanes


def blocked_by_deletion(core, connect, queue, text, *args, rows=15):
    """Runs the statement up to the locks that the first step of a deletion holds, then lets both go on."""
    deleter, other = connect(autocommit=False), connect()
    deleter.rows("set queen.step_rows = %d" % rows)
    deleter.rows("select * from queen.delete_queue(%s::jsonb)", json.dumps({"queue": queue}))
    session = Session(other, text, *args)
    wait_until_blocked(core, other, session)
    deleter.conn.commit()
    return session.result()


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_redrive_counts_only_what_it_delivers(core, connect, queue, elsewhere, rows):
    """The partitions of the first step are gone when the redrive gets its locks; the others are still there."""
    target = queue + "-target"
    lanes = [n for n, _ in dead(core, queue)]
    body = {"queue": queue, **({"targetQueue": target} if elsewhere else {})}
    (row,) = blocked_by_deletion(core, connect, queue, "select answer from queen.redrive(%s::jsonb)", json.dumps({"body": body}),
                                 rows=rows)
    redriven = json.loads(row.answer)["redriven"]
    waiting = core.rows("select l.origin, q.name::text as queue from queen.scheduled s join queen.lanes l on l.num = s.lane"
                        " left join queen.queues q on q.id = l.queue_id")
    if elsewhere:
        assert [r.queue for r in waiting] == [target] * redriven
    else:
        assert len(waiting) == redriven and all(r.origin in lanes for r in waiting)
    assert 0 < redriven < PARTS
    steps(core, "delete_queue", queue=queue)
    chore(core)
    assert core.one("select count(*) from queen.scheduled") == (redriven if elsewhere else 0)
    steps(core, "delete_queue", queue=target)
    chore(core)
    nothing_is_left(core)


@pytest.mark.parametrize("action", ["retry_message", "move_to_dlq", "delete_message"])
@pytest.mark.parametrize("part", [0, PARTS - 1])
def test_a_message_is_changed_by_hand_while_its_queue_is_deleted(core, connect, queue, action, part):
    """A partition that is gone answers 404; one whose step has not come yet may answer 200, and is deleted with the others."""
    lanes = dead(core, queue)
    args = {"partitionId": str(lanes[part][1]), "transactionId": "m%d" % part, "body": {"consumerGroup": "h"}}
    text = "select status from queen.%s(%%s::jsonb)" % action
    if action == "delete_message":
        text = "select case when (queen.delete_message(%s::jsonb) ->> 'success')::boolean then 200 else 404 end as status"
    if part == 0:
        (row,) = blocked_by_deletion(core, connect, queue, text, json.dumps(args))
        assert row.status == 404
    else:
        core.rows("select * from queen.delete_queue(%s::jsonb)", json.dumps({"queue": queue}))
        (row,) = core.rows(text, json.dumps(args))
        assert row.status in (200, 404)
    steps(core, "delete_queue", queue=queue)
    chore(core)
    nothing_is_left(core)


@pytest.mark.parametrize("what", ["pushed for later", "retry"])
def test_due_messages_of_a_queue_under_deletion_are_deleted_with_it(core, connect, queue, what):
    other = queue + "-other"
    core.configure(queue, retryPolicy={"mode": "scheduled", "strategy": "list", "delays": [1]})
    lanes = core.lanes(*[(queue, "p%d" % i) for i in range(PARTS)])
    core.rows("select * from queen.push_messages_v2(%s::jsonb)", json.dumps(
        [{"queue": other, "payload": 1, "delaySeconds": 1}]
        + [{"queue": queue, "partition": "p%d" % i, "payload": 1, "transactionId": "m", "delaySeconds": 1} for i in range(PARTS)
           if what != "retry"]))
    if what == "retry":
        stored(core, core.push([(n, ["m"]) for n, _ in lanes]))
        core.claim_hot(core.consumers("g", *[n for n, _ in lanes]))
        for _, lane_id in lanes:
            core.settle(lane_id, "g", ["m"], [1])
    assert core.one("select count(*) from queen.scheduled") == PARTS + 1
    core.rows("select pg_sleep(1.1)")
    deleter = connect(autocommit=False)
    deleter.rows("select * from queen.delete_queue(%s::jsonb)", json.dumps({"queue": queue}))
    fired = core.rows("select * from queen.fire_scheduled(1, 100, 0)")  # the locked ones wait
    assert other in [r.queue_name for r in fired]
    deleter.conn.commit()
    for _ in range(3):
        core.rows("select * from queen.fire_scheduled(1, 100, 0)")
    assert core.one("select count(*) from queen.scheduled") == 0, "the timer does not meet them again and again"
    steps(core, "delete_queue", queue=queue)
    chore(core)
    assert core.one("select sum(s.count) from queen.segments s") == 1, "the message of the other queue"
    steps(core, "delete_queue", queue=other)
    chore(core)
    nothing_is_left(core)
