"""A message that cannot be read never blocks its neighbours: it becomes a dead letter, the others are delivered."""
import json

import pytest
from harness import QUEUE_MODE, wait_until

EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
EVENT_TYPE = {"Content-Type": "application/cloudevents+json"}


def post_event(broker, queue, **attributes):
    return broker.post("/api/v1/push/queue/" + queue, json.dumps({**EVENT, **attributes, "data": 1}), headers=EVENT_TYPE)


def test_attributes_that_do_not_fit_with_the_correlation_id_are_refused(broker, queue):
    """The object that is stored holds the attributes and the correlation id once more."""
    refused = 0
    for pad in range(65000, 65600, 100):
        r = post_event(broker, queue, id=str(pad), correlationid="c" * 255, pad="x" * (pad - 255))
        assert r.status in (201, 400), r
        refused += r.status == 400
        if r.status == 400:
            assert "longer than 65535 bytes" in r.json["error"]
    assert 0 < refused < 6
    good = post_event(broker, queue, id="good").expect(201).json
    delivered = broker.take(queue, batch=100, autoAck=True)
    assert len(delivered) == 6 - refused + 1 and delivered[-1]["id"] == good[0]["messageId"]


def cut_meta(sql, queue, where):
    """Stores segments as the broker once wrote them: the length of `meta` without its upper bits."""
    changed = sql("""update queen.segments s set body = '\\x01'::bytea || '\\x2000050000'::bytea || substr(s.body, 2)
                      from queen.lanes l join queen.queues q on q.id = l.queue_id
                     where s.lane = l.num and q.name = %s and s.first_seq = %s returning s.count""", queue, where)
    assert len(changed) == 1, changed
    return changed[0][0]


def letters(broker, queue):
    return broker.get("/api/v1/dlq?queue=" + queue).expect(200).json["messages"]


def fill(broker, queue):
    """Three segments of one partition: [0], [1, 2, 3], [4]."""
    broker.configure(queue)
    broker.put(queue, [0], ids=["a-0"])
    broker.put(queue, [1, 2, 3], ids=["a-1", "a-2", "a-3"])
    broker.put(queue, [4], ids=["a-4"])


@pytest.mark.parametrize("accept", [None, "application/cloudevents-batch+json"])
@pytest.mark.parametrize("auto", [True, False])
def test_the_neighbours_of_a_damaged_segment_are_delivered(broker, sql, queue, auto, accept):
    fill(broker, queue)
    assert cut_meta(sql, queue, 2) == 3
    r = broker.get("/api/v1/pop/queue/%s?batch=10&autoAck=%s" % (queue, str(auto).lower()),
                   headers={"Accept": accept} if accept else None).expect(200).json
    messages = r if accept else r["messages"]
    assert [m["data"] for m in messages] == [0, 4]
    dead = letters(broker, queue)
    assert len(dead) == 3 and {m["errorMessage"] for m in dead} == {"damaged: the stored message cannot be read"}
    assert {m["data"] for m in dead} == {None}
    if not auto and not accept:
        assert [a["success"] for a in broker.ack_batch(messages)] == [True, True]
        state = sql("""select st.lease, st.cursor_seq from queen.consumers c join queen.lanes l on l.num = c.lane
                         join queen.queues q on q.id = l.queue_id cross join lateral queen.latest_state(c.num) st
                        where q.name = %s and c.grp = %s""", queue, QUEUE_MODE)
        assert state == [(None, 5)], "the lease has ended and the cursor is behind the last message"
    if auto or not accept:
        assert broker.take(queue, batch=10) == []
        broker.put(queue, ["later"])
        assert [m["data"] for m in broker.take(queue, batch=10)] == ["later"]


def test_only_damaged_messages_are_204_and_are_not_redelivered(broker, sql, queue):
    fill(broker, queue)
    cut_meta(sql, queue, 2)
    assert broker.take(queue, batch=1, autoAck=True)[0]["data"] == 0
    assert broker.take(queue, batch=2) == []
    # The broker learns from the change feed that the lease has ended; a pop before that finds nothing.
    got = wait_until(lambda: broker.take(queue, batch=1), 30, "the message behind the damaged ones")
    assert [m["data"] for m in got] == [4]
    assert len(letters(broker, queue)) == 3


@pytest.mark.parametrize("accept", [None, "application/cloudevents-batch+json"])
@pytest.mark.parametrize("auto", [True, False])
def test_a_partition_of_damaged_ones_alone_does_not_spoil_the_next_partition(broker, sql, queue, auto, accept):
    """A pop that gets only damaged messages of one partition must not add another partition to the same answer."""
    broker.configure(queue)
    broker.put(queue, ["lost"], partition="first")
    cut_meta(sql, queue, 1)
    broker.put(queue, ["kept"], partition="second")
    seen = []
    for _ in range(3):
        r = broker.get("/api/v1/pop/queue/%s?batch=10&autoAck=%s" % (queue, str(auto).lower()),
                       headers={"Accept": accept} if accept else None)
        if r.status != 204:
            seen += [m["data"] for m in (r.expect(200).json if accept else r.expect(200).json["messages"])]
    assert seen == ["kept"]
    assert len(letters(broker, queue)) == 1
    leases = sql("""select l.name, st.lease is not null from queen.consumers c join queen.lanes l on l.num = c.lane
                      join queen.queues q on q.id = l.queue_id cross join lateral queen.latest_state(c.num) st
                     where q.name = %s and c.grp = %s and l.name in ('first', 'second') order by l.name""", queue, QUEUE_MODE)
    assert leases == [("first", False), ("second", not auto)], "no lease is left on what cannot be read"


def test_an_unacknowledged_neighbour_in_front_is_delivered_again(broker, sql, queue):
    fill(broker, queue)
    cut_meta(sql, queue, 2)
    broker.configure(queue, leaseTime=1)
    first = broker.take(queue, batch=10)
    assert [m["data"] for m in first] == [0, 4]
    again = broker.take(queue, batch=10, wait=True, timeout=15000)
    assert [m["data"] for m in again] == [0, 4]
    assert len(letters(broker, queue)) == 3


def test_reports_and_actions_survive_damage(broker, sql, queue):
    fill(broker, queue)
    cut_meta(sql, queue, 2)
    broker.take(queue, batch=10, autoAck=True)
    letter = letters(broker, queue)[0]
    place = "/api/v1/messages/%s/a-2" % letter["partitionId"]
    assert broker.get(place).expect(200).json["payload"] is None
    assert broker.get("/api/v1/messages?queue=" + queue).expect(200).json["messages"]
    assert broker.post("/api/v1/dlq/redrive", {"queue": queue}).expect(200).json["redriven"] == 0
    assert "damaged" in broker.post(place + "/retry").expect(409).json["error"]
    assert len(letters(broker, queue)) == 3


@pytest.mark.parametrize("consumed", [True, False])
def test_a_damaged_message_can_be_deleted(broker, sql, queue, consumed):
    fill(broker, queue)
    cut_meta(sql, queue, 2)
    partition = sql("select p.id::text from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = %s"
                    " and p.name = 'Default'", queue)[0][0]
    if consumed:
        assert [m["data"] for m in broker.take(queue, batch=10, autoAck=True)] == [0, 4]
    for name in ("a-3", "a-1", "a-2"):
        answer = broker.request("DELETE", "/api/v1/messages/%s/%s" % (partition, name)).expect(200).json
        assert answer["success"] is True
        assert broker.get("/api/v1/messages/%s/%s" % (partition, name)).status == 404
    assert letters(broker, queue) == []
    if not consumed:
        assert [m["data"] for m in broker.drain(queue)] == [0, 4]
    assert letters(broker, queue) == []
    broker.put(queue, [5, 6], ids=["a-1", "a-2"])
    assert [m["data"] for m in broker.take(queue, batch=10, autoAck=True)] == [5, 6], "the ids are free again"


def test_a_pop_by_sql_sets_them_aside_as_well(broker, sql, queue):
    fill(broker, queue)
    cut_meta(sql, queue, 2)
    rows = sql("select queen.pop_unified_batch(%s::jsonb)",
               json.dumps([{"idx": 0, "queue_name": queue, "consumer_group": QUEUE_MODE, "batch_size": 10}]))
    result = rows[0][0] if not isinstance(rows[0][0], str) else json.loads(rows[0][0])
    assert [m["data"] for m in result[0]["result"]["messages"]] == [0, 4]
    assert len(letters(broker, queue)) == 3
