"""Retention, eviction, ttl, unused partitions and what is left of them: semantics 16, docs/operations/retention.md.

Time passes by moving the stored times back; the sweeping broker comes every 300 ms.
"""
import base64
import datetime
import os
import re
import time

import pytest

import harness
from harness import TIME_FACTOR, wait_until


@pytest.fixture(scope="module")
def sweeper(pg, broker):
    """A broker that only sweeps, and often."""
    b = harness.begin({**pg.env(), "SIDECAR_POOL_SIZE": "4", "RETENTION_INTERVAL": "300", "EVICTION_INTERVAL": "300"})
    yield b
    harness.end(b, clean_exit=True)


@pytest.fixture
def lab(broker, sweeper, queue, sql):
    return Lab(broker, queue, sql)


class Lab:
    def __init__(self, broker, queue, sql):
        self.broker, self.queue, self.sql = broker, queue, sql

    def stored(self):
        return [r[0] for r in self.sql(
            "select m.payload::text from queen.messages m join queen.partitions p on p.id = m.partition_id "
            "join queen.queues q on q.id = p.queue_id where q.name = %s order by p.name, m.id", self.queue)]

    def age(self, seconds, queue=None):
        """All messages of the queue become older, and fall due earlier."""
        lanes = "(select l.num from queen.lanes l join queen.queues q on q.id = l.queue_id where q.name = %s)"
        self.sql("update queen.segments set created_at = created_at - %s * interval '1 s' where lane in " + lanes,
                 seconds, queue or self.queue)
        self.sql("insert into queen.lane_due select l.num, now(), now() from queen.lanes l join queen.queues q on q.id = l.queue_id "
                 "where q.name = %s on conflict (lane) do update set evict_at = now(), retain_at = now()", queue or self.queue)

    def history(self):
        return dict(self.sql(
            "select h.retention_type, sum(h.messages_deleted)::int from queen.retention_history h join queen.partitions p "
            "on p.id = h.partition_id join queen.queues q on q.id = p.queue_id where q.name = %s group by 1", self.queue))

    def wait_stored(self, what):
        wait_until(lambda: self.stored() == what, 10 * TIME_FACTOR, "stored %s, there is %s" % (what, self.stored()), 0.05)

    def settled(self):
        """Two passes go by: for what must not happen there is nothing to wait for."""
        time.sleep(0.9)


def test_retention_removes_old_messages_consumed_or_not(lab):
    lab.broker.configure(lab.queue, retentionEnabled=True, retentionSeconds=60)
    lab.broker.put(lab.queue, [1, 2], partition="a", ids=["x", "y"])
    lab.broker.put(lab.queue, [3], partition="b")
    assert len(lab.broker.take(lab.queue, "a", batch=2, autoAck=True)) == 2
    lab.settled()
    assert lab.stored() == ["1", "2", "3"]
    lab.age(61)
    lab.broker.put(lab.queue, [4], partition="a")
    lab.wait_stored(["4"])
    assert lab.history() == {"retention": 3}
    lab.broker.put(lab.queue, [5], partition="a", ids=["x"])  # deduplication ends with the message
    assert [m["data"] for m in lab.broker.take(lab.queue, "a", batch=9)] == [4, 5]
    assert lab.sql("select count(*) from queen.message_keys k join queen.lanes l on l.num = k.lane join queen.queues q "
                   "on q.id = l.queue_id where q.name = %s", lab.queue) == [(1,)]


def test_retention_without_the_flag_is_switched_on_and_with_false_is_off(lab):
    assert lab.broker.configure(lab.queue, retentionSeconds=60)["options"]["retentionEnabled"] is True
    lab.broker.configure(lab.queue, retentionSeconds=60, completedRetentionSeconds=5, retentionEnabled=False)
    lab.broker.put(lab.queue, [1])
    lab.age(100)
    lab.settled()
    assert lab.stored() == ["1"] and lab.history() == {}
    lab.broker.configure(lab.queue, retentionSeconds=60)
    lab.wait_stored([])


def test_an_option_set_later_applies_to_stored_messages(lab):
    lab.broker.put(lab.queue, [1], partition="a")
    lab.broker.put(lab.queue, [2], partition="b")
    lab.sql("update queen.segments set created_at = created_at - interval '100 s' where lane in (select l.num from queen.lanes l "
            "join queen.queues q on q.id = l.queue_id where q.name = %s)", lab.queue)
    lab.settled()
    assert lab.stored() == ["1", "2"]
    lab.broker.configure(lab.queue, ttl=50)
    lab.wait_stored([])
    assert lab.history() == {"ttl": 2}


def test_completed_retention_waits_for_every_group(lab):
    b = lab.broker
    b.configure(lab.queue, retentionEnabled=True, completedRetentionSeconds=60)
    b.put(lab.queue, [1], partition="p")
    b.put(lab.queue, [2], partition="p")
    lab.age(61)
    lab.settled()
    assert lab.stored() == ["1", "2"], "no group: nobody has consumed it"
    assert len(b.take(lab.queue, "p", consumerGroup="g1", batch=2, autoAck=True)) == 2
    assert len(b.take(lab.queue, "p", consumerGroup="g2", batch=1)) == 1
    lab.age(0)
    lab.settled()
    assert lab.stored() == ["1", "2"], "the second group has no cursor yet"


def test_completed_retention_removes_messages_consumed_by_all(lab):
    b = lab.broker
    b.configure(lab.queue, retentionEnabled=True, completedRetentionSeconds=60)
    for i in range(4):
        b.put(lab.queue, [i], partition="p")
    assert len(b.take(lab.queue, "p", consumerGroup="fast", batch=4, autoAck=True)) == 4
    assert len(b.take(lab.queue, "p", consumerGroup="slow", batch=2, autoAck=True)) == 2
    lab.settled()
    assert len(lab.stored()) == 4, "young"
    lab.age(61)
    lab.wait_stored(["2", "3"])
    assert lab.history() == {"completed_retention": 2}
    # It is checked again by itself, at growing intervals.
    assert [m["data"] for m in b.take(lab.queue, "p", consumerGroup="slow", batch=9, autoAck=True)] == [2, 3]
    lab.wait_stored([])
    assert lab.history() == {"completed_retention": 4}


def test_a_half_consumed_segment_stays_whole(lab):
    b = lab.broker
    b.configure(lab.queue, retentionEnabled=True, completedRetentionSeconds=60)
    b.put(lab.queue, [1, 2, 3], partition="p")
    assert len(b.take(lab.queue, "p", batch=2, autoAck=True)) == 2
    lab.age(61)
    lab.settled()
    assert lab.stored() == ["1", "2", "3"]
    assert [m["data"] for m in b.take(lab.queue, "p", batch=9, autoAck=True)] == [3]
    lab.wait_stored([])


@pytest.mark.parametrize("groups", [[], ["ahead"]])
def test_eviction_removes_messages_not_consumed_by_some_group(lab, groups):
    b = lab.broker
    b.configure(lab.queue, maxWaitTimeSeconds=60)
    b.put(lab.queue, [1], partition="p")
    b.put(lab.queue, [2], partition="p")
    for g in groups:
        assert len(b.take(lab.queue, "p", consumerGroup=g, batch=1, autoAck=True)) == 1
    lab.age(61)
    b.put(lab.queue, [3], partition="p")
    lab.wait_stored(["3"])
    assert lab.history() == {"max_wait_time_eviction": 2}
    assert lab.sql("select count(*) from queen.dead_letter_queue d join queen.partitions p on p.id = d.partition_id join "
                   "queen.queues q on q.id = p.queue_id where q.name = %s", lab.queue) == [(0,)], "not dead-lettered"
    for g in groups + [None]:
        assert [m["data"] for m in b.take(lab.queue, "p", consumerGroup=g, batch=9)] == [3]


def test_eviction_keeps_messages_consumed_by_all_groups(lab):
    b = lab.broker
    b.configure(lab.queue, maxWaitTimeSeconds=60)
    b.put(lab.queue, [1, 2], partition="p")
    assert len(b.take(lab.queue, "p", consumerGroup="g", batch=2, autoAck=True)) == 2
    lab.age(61)
    lab.settled()
    assert lab.stored() == ["1", "2"] and lab.history() == {}
    b.put(lab.queue, [3], partition="p")  # and a later one is still noticed
    lab.settled()
    lab.age(61)
    lab.wait_stored([])


def test_dead_letters_and_traces_go_with_their_message(lab):
    b = lab.broker
    b.configure(lab.queue, retentionSeconds=60, retryLimit=0)
    b.put(lab.queue, [1], partition="p")
    (m,) = b.take(lab.queue)
    assert b.ack(m, "failed")["dlq"] is True
    dead = "select count(*) from queen.dead_letter_queue where message_id = %s"
    assert lab.sql(dead, m["id"]) == [(1,)]
    lab.age(61)
    lab.wait_stored([])
    assert lab.sql(dead, m["id"]) == [(0,)]


@pytest.mark.parametrize("options", [{"retentionSeconds": 60}, {"ttl": 60}, {"maxWaitTimeSeconds": 60}])
def test_an_emptied_partition_continues_its_numbering(lab, broker2, options):
    b = lab.broker
    b.configure(lab.queue, **options)
    b.put(lab.queue, [1, 2, 3], partition="p")
    assert len(b.take(lab.queue, "p", consumerGroup="g", batch=2, autoAck=True)) == 2
    for turn in range(2):
        lab.age(61)
        lab.wait_stored([])
        assert b.take(lab.queue, "p", consumerGroup="g") == [] == b.take(lab.queue, consumerGroup="g")
        broker2.put(lab.queue, ["a%d" % turn, "b%d" % turn], partition="p")
        for group in ("g", "late%d" % turn):
            assert [m["data"] for m in b.take(lab.queue, "p", consumerGroup=group, batch=9, autoAck=True)] == \
                ["a%d" % turn, "b%d" % turn]
        if "maxWaitTimeSeconds" in options:
            b.take(lab.queue, "p", batch=1, consumerGroup="other%d" % turn)  # a group that has not consumed it


def test_brokers_share_the_lanes_and_count_each_message_once(lab, make_broker, sql):
    lab.broker.configure(lab.queue, retentionSeconds=60)
    for i in range(40):
        lab.broker.push([{"queue": lab.queue, "partition": "p%d" % (i * 10 + k), "payload": k} for k in range(10)]).expect(201)
    more = [make_broker(RETENTION_INTERVAL=200, RETENTION_BATCH_SIZE=7, EVICTION_INTERVAL=200) for _ in range(2)]
    lab.age(61)
    lab.wait_stored([])
    assert lab.history() == {"retention": 400}
    assert sql("select count(*) from queen.lane_due d join queen.lanes l on l.num = d.lane join queen.queues q "
               "on q.id = l.queue_id where q.name = %s and retain_at is not null", lab.queue) == [(0,)]
    assert all(b.alive and "chores." not in b.log_text() for b in more)


def test_pushes_continue_while_their_partition_is_swept(lab, sql):
    """Every message is delivered exactly once or removed, in order, and none is numbered twice."""
    b = lab.broker
    b.configure(lab.queue, ttl=60)
    seen = []
    for i in range(30):
        b.put(lab.queue, [i], partition="p")
        if i % 3 == 0:
            seen += [m["data"] for m in b.take(lab.queue, "p", batch=5, autoAck=True)]
            sql("update queen.segments set created_at = created_at - interval '61 s' where lane in (select l.num from queen.lanes l "
                "join queen.queues q on q.id = l.queue_id where q.name = %s)", lab.queue)
            lab.age(0)
        time.sleep(0.05)
    assert seen == sorted(set(seen))
    ((low, high),) = sql("select min(first_seq), max(first_seq + greatest(count, 1)) from queen.segments where lane in (select l.num "
                         "from queen.lanes l join queen.queues q on q.id = l.queue_id where q.name = %s)", lab.queue)
    assert high == 31


def test_an_idle_queue_is_not_polled(lab, sql):
    """Messages that are not due cost nothing: no row makes retention check them early."""
    lab.broker.configure(lab.queue, retentionSeconds=3600, completedRetentionSeconds=1800, ttl=4000)
    lab.broker.push([{"queue": lab.queue, "partition": "p%d" % i, "payload": i} for i in range(20)]).expect(201)
    due = ("select count(*), min(d.retain_at) > now() + interval '29 minutes', min(d.evict_at) > now() + interval '66 minutes' "
           "from queen.lane_due d join queen.lanes l on l.num = d.lane join queen.queues q on q.id = l.queue_id where q.name = %s")
    wait_until(lambda: sql(due, lab.queue) == [(20, True, True)], 5 * TIME_FACTOR, "twenty lanes noted")


def test_rotation_keeps_future_due_times(lab, sql):
    lab.broker.configure(lab.queue, retentionSeconds=3600)
    lab.broker.put(lab.queue, [1], partition="p")
    done = []

    def turn():
        done.extend(r[0] for r in sql("select queen.rotate(1, 0)"))
        return "switched" in done and "emptied" in done[done.index("switched"):]
    wait_until(turn, 20, "a slot emptied", 0.3)
    assert sql("select count(*) from queen.lane_due d join queen.lanes l on l.num = d.lane join queen.queues q "
               "on q.id = l.queue_id where q.name = %s", lab.queue) == [(1,)]


# --- unused partitions ----------------------------------------------------------------------------------------------

def unused_for(sql, queue, days, names):
    sql("update queen.lanes l set created_at = l.created_at - %s * interval '1 day', active_at = l.active_at - %s * interval '1 day' "
        "from queen.queues q where q.id = l.queue_id and q.name = %s and l.name = any (%s)", days, days, queue, names)


def partitions(sql, queue):
    return [r[0] for r in sql("select p.name from queen.partitions p join queen.queues q on q.id = p.queue_id "
                              "where q.name = %s order by 1", queue)]


def test_unused_partitions_are_removed(lab, broker2, sql):
    b = lab.broker
    b.configure(lab.queue, ttl=60)
    for name in ("empty", "emptied", "full", "served", "young"):
        b.put(lab.queue, [name], partition=name)
    assert len(b.take(lab.queue, "emptied", consumerGroup="g", autoAck=True)) == 1
    assert len(b.take(lab.queue, "served", consumerGroup="g", autoAck=True)) == 1
    assert broker2.take(lab.queue, "emptied", consumerGroup="g") == []
    lab.age(61)
    lab.wait_stored([])
    b.configure(lab.queue)
    b.put(lab.queue, ["full"], partition="full")
    sql("update queen.segments set created_at = created_at - interval '31 days' where lane in (select l.num from queen.lanes l "
        "join queen.queues q on q.id = l.queue_id where q.name = %s)", lab.queue)
    for table in ("consumer_states_a", "consumer_states_b"):
        sql("update queen." + table + " t set last_at = t.last_at - interval '31 days' from queen.consumers c, queen.lanes l, "
            "queen.queues q where c.num = t.consumer and l.num = c.lane and q.id = l.queue_id and q.name = %s and l.name <> 'served'",
            lab.queue)
    sql("update queen.consumers c set created_at = c.created_at - interval '31 days' from queen.lanes l, queen.queues q "
        "where l.num = c.lane and q.id = l.queue_id and q.name = %s", lab.queue)
    unused_for(sql, lab.queue, 31, ["Default", "empty", "emptied", "full", "served"])
    wait_until(lambda: partitions(sql, lab.queue) == ["full", "served", "young"], 8 * TIME_FACTOR, "unused ones removed", 0.1)
    assert sql("select count(*) from queen.consumers c where not exists (select from queen.lanes l where l.num = c.lane)") == [(0,)]
    assert sql("select count(*) from queen.lanes l join queen.queues q on q.id = l.queue_id where q.name = %s and "
               "l.active_at < now() - interval '1 day'", lab.queue) == [(0,)], "those in use are not looked at again soon"

    # Brokers that had cached them continue: a push creates the partition again, for consumers of all brokers.
    b.put(lab.queue, ["back"], partition="emptied")
    for client in (b, broker2):
        assert [m["data"] for m in client.take(lab.queue, "emptied", consumerGroup="g", batch=9, autoAck=True)] == \
            (["back"] if client is b else [])
    broker2.put(lab.queue, ["again"], partition="emptied")
    assert [m["data"] for m in wait_until(lambda: b.take(lab.queue, consumerGroup="g", partition="emptied"), 5, "again")] == ["again"]


def test_history_ends_after_its_days(lab, sql):
    lab.broker.configure(lab.queue, ttl=60)
    lab.broker.put(lab.queue, [1])
    lab.age(61)
    lab.wait_stored([])
    assert lab.history() == {"ttl": 1}
    sql("update queen.retention_history set executed_at = executed_at - interval '91 days' where partition_id in (select p.id from "
        "queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = %s)", lab.queue)
    wait_until(lambda: lab.history() == {}, 8 * TIME_FACTOR, "old history removed", 0.1)


# --- disk space -----------------------------------------------------------------------------------------------------

def test_space_is_used_again_also_after_a_transaction_held_it(lab, pg, sql):
    """The short form of docs/operations/retention.md: rounds of pushes that expire do not make the table grow."""
    lab.broker.configure(lab.queue, retentionSeconds=60)

    def round_trip():
        for _ in range(6):
            lab.broker.push([{"queue": lab.queue, "partition": "p%d" % (i % 10), "payload": base64.b64encode(os.urandom(300)).decode()}
                             for i in range(500)]).expect(201)
        lab.age(61)
        wait_until(lambda: lab.sql("select coalesce(sum(count), 0)::int from queen.segments s join queen.lanes l on l.num = s.lane join "
                                   "queen.queues q on q.id = l.queue_id where q.name = %s", lab.queue) == [(0,)],
                   10 * TIME_FACTOR, "swept", 0.05)
        sql("vacuum queen.segments")
        return sql("select pg_total_relation_size('queen.segments')")[0][0]
    holder = pg.connect(autocommit=False)
    holder.set_session(isolation_level="REPEATABLE READ")
    round_trip()
    before = round_trip()
    holder.cursor().execute("select count(*) from queen.queues")
    grown = round_trip()
    holder.rollback()
    holder.close()
    sizes = [round_trip() for _ in range(3)]
    assert sizes[-1] <= sizes[0] * 1.05 and sizes[0] <= before + grown + 1000000, (before, grown, sizes)


# --- the report -----------------------------------------------------------------------------------------------------

FIVE = {"retentionMsgs", "completedRetentionMsgs", "evictionMsgs", "totalMsgs", "eventCount"}


def test_the_report_sums_removed_messages(lab, sql):
    lab.broker.put(lab.queue, [1])
    (pid,) = sql("select p.id::text from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = %s", lab.queue)[0]
    for at, n, what in (("2001-02-03T04:00:10Z", 40, "completed_retention"), ("2001-02-03T04:00:50Z", 2, "retention"),
                        ("2001-02-03T04:07:00Z", 3, "max_wait_time_eviction"), ("2001-02-03T04:07:01Z", 4, "ttl"),
                        ("2001-02-03T05:30:00Z", 9, "retention")):
        sql("insert into queen.retention_history (partition_id, messages_deleted, retention_type, executed_at) values (%s, %s, %s, %s)",
            pid, n, what, at)
    get = lambda q: lab.broker.get("/api/v1/analytics/retention?" + q).expect(200).json
    r = get("from=2001-02-03T04:00:00Z&to=2001-02-03T05:00:00Z")
    assert r == {
        "timeRange": {"from": "2001-02-03T04:00:00.000Z", "to": "2001-02-03T05:00:00.000Z"}, "bucketMinutes": 1,
        "series": [
            {"bucket": "2001-02-03T04:00:00Z", "retentionMsgs": 2, "completedRetentionMsgs": 40, "evictionMsgs": 0, "totalMsgs": 42,
             "eventCount": 2},
            {"bucket": "2001-02-03T04:07:00Z", "retentionMsgs": 0, "completedRetentionMsgs": 0, "evictionMsgs": 7, "totalMsgs": 7,
             "eventCount": 2}],
        "totals": {"retentionMsgs": 2, "completedRetentionMsgs": 40, "evictionMsgs": 7, "totalMsgs": 49, "eventCount": 4}}
    for hours, minutes in ((1.1, 5), (6, 5), (7, 15), (24, 15), (25, 60), (168, 60), (169, 360)):
        to = datetime.datetime(2001, 2, 3, 4) + datetime.timedelta(hours=hours)
        assert get("from=2001-02-03T04:00:00Z&to=%sZ" % to.isoformat())["bucketMinutes"] == minutes


def test_the_report_of_the_last_hour_and_of_a_bad_time(lab):
    r = lab.broker.get("/api/v1/analytics/retention").expect(200).json
    assert r["bucketMinutes"] == 1 and set(r["totals"]) == FIVE
    times = [datetime.datetime.fromisoformat(r["timeRange"][k].replace("Z", "+00:00")) for k in ("from", "to")]
    assert times[1] - times[0] == datetime.timedelta(hours=1)
    assert all(set(s) == FIVE | {"bucket"} and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:00Z", s["bucket"]) for s in r["series"])
    assert "from" in lab.broker.get("/api/v1/analytics/retention?from=yesterdayish").expect(400).json["error"]
