"""The effect of each option of configure: decisions.md, semantics 14-16."""
import time

import pytest

from harness import TIME_FACTOR, in_parallel, unit_of_time, wait_until


# --- leaseTime ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("sent,seconds", [(None, 300), (45, 45), (0, 60), (1, 1)])
def test_the_lease_lasts_as_configured(broker, queue, sql, sent, seconds):
    if sent is not None:
        broker.configure(queue, leaseTime=sent)
    broker.put(queue, [1], partition="p")
    (m,) = broker.take(queue)
    ((length,),) = sql("select extract(epoch from lease_expires_at - lease_acquired_at)::float8 from queen.partition_consumers "
                       "where partition_id = %s", m["partitionId"])
    assert abs(length - seconds) < 0.1


# --- retryDelay -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("form", [None, "p"])
def test_after_a_failure_the_partition_waits_for_the_retry_delay(broker, broker2, queue, form):
    broker.configure(queue, retryDelay=700)
    broker.put(queue, [1, 2], partition="p")
    (m,) = broker.take(queue)
    broker.ack(m, "failed")
    begin = time.monotonic()
    assert broker.take(queue, form) == [] and broker2.take(queue, form) == []
    assert broker.take(queue, form, consumerGroup="other")[0]["data"] == 1, "other groups are not held up"
    (again,) = wait_until(lambda: broker.take(queue, form), 3, "redelivery")
    assert again["data"] == 1 and again["retryCount"] == 1
    assert time.monotonic() - begin > 0.6
    assert broker.ack(again)["success"] is True
    assert broker.take(queue, form)[0]["data"] == 2, "a success ends the delay"


@pytest.mark.parametrize("options", [{}, {"retryDelay": 0}])
def test_without_an_explicit_retry_delay_redelivery_is_immediate(broker, queue, options):
    assert broker.configure(queue, **options)["options"]["retryDelay"] == options.get("retryDelay", 1000)
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    broker.ack(m, "failed")
    assert len(broker.take(queue)) == 1


def test_configuring_without_the_retry_delay_switches_it_off_again(broker, queue):
    broker.configure(queue, retryDelay=60000)
    broker.configure(queue)
    broker.put(queue, [1])
    broker.ack(broker.take(queue)[0], "failed")
    assert len(broker.take(queue)) == 1


# --- maxSize --------------------------------------------------------------------------------------------------------

def full(r, queue):
    assert queue in r.expect(429).json["error"], "the text names the queue"


def test_a_push_beyond_max_size_is_refused_whole_and_stores_nothing(broker, broker2, queue):
    broker.configure(queue, maxSize=3)
    broker.put(queue, [1, 2], partition="a")
    for b in (broker, broker2):
        full(b.push([{"queue": queue, "partition": "a", "payload": 3}, {"queue": queue, "partition": "b", "payload": 4}]), queue)
    broker.put(queue, [3], partition="b")
    full(broker.push([{"queue": queue, "payload": 5}]), queue)
    assert sorted(m["data"] for m in broker.drain(queue)) == [1, 2, 3]


def test_a_full_queue_refuses_the_items_of_other_queues_in_the_same_request(broker, queue):
    broker.configure(queue, maxSize=1)
    broker.put(queue, [1])
    full(broker.push([{"queue": queue + "-other", "payload": 1}, {"queue": queue, "payload": 2}]), queue)
    assert broker.take(queue + "-other") == []


def test_a_request_larger_than_max_size_is_refused(broker, queue):
    broker.configure(queue, maxSize=3)
    full(broker.push([{"queue": queue, "payload": i} for i in range(4)]), queue)
    broker.put(queue, [1, 2, 3])


def test_consuming_makes_room(broker, queue):
    broker.configure(queue, maxSize=2)
    broker.put(queue, [1, 2])
    full(broker.push([{"queue": queue}]), queue)
    assert len(broker.take(queue, batch=2, autoAck=True)) == 2
    broker.put(queue, [3, 4])
    messages = broker.take(queue, batch=2)  # whether leased ones still count is left open
    assert all(r["success"] for r in broker.ack_batch(messages))
    broker.put(queue, [5])


@pytest.mark.parametrize("options", [{}, {"maxSize": 0}])
def test_without_max_size_a_queue_is_unlimited(broker, queue, options):
    broker.configure(queue, maxSize=1)
    broker.configure(queue, **options)
    broker.put(queue, list(range(50)))


def test_parallel_pushes_never_exceed_max_size(broker, broker2, queue):
    broker.configure(queue, maxSize=7)
    statuses = in_parallel([lambda i=i: (broker, broker2)[i % 2].push(
        [{"queue": queue, "partition": "p%d" % (i % 3), "payload": i}]).status for i in range(24)])
    assert sorted(set(statuses)) == [201, 429] and statuses.count(201) == 7
    assert len(broker.drain(queue)) == 7


def test_a_full_queue_does_not_disturb_pushes_to_others(broker, queue):
    broker.configure(queue, maxSize=1)
    broker.put(queue, [0])
    statuses = in_parallel([lambda i=i: broker.push([{"queue": queue if i % 2 else queue + "x", "payload": i}]).status
                            for i in range(16)])
    assert statuses == [429 if i % 2 else 201 for i in range(16)]


# --- ttl and maxWaitTimeSeconds -------------------------------------------------------------------------------------

@pytest.mark.parametrize("option", ["ttl", "maxWaitTimeSeconds"])
@pytest.mark.parametrize("form", [None, "p"])
def test_an_over_age_message_is_not_delivered(broker, queue, option, form):
    broker.configure(queue, **{option: 1})
    broker.put(queue, ["old1", "old2"], partition="p")
    assert broker.take(queue, form, consumerGroup="early")[0]["data"] == "old1", "young enough so far"
    time.sleep(1.1)
    assert broker.take(queue, form) == []
    broker.put(queue, ["young"], partition="p")
    assert [m["data"] for m in broker.take(queue, form, batch=10)] == ["young"]


@pytest.mark.parametrize("options", [{}, {"ttl": 0, "maxWaitTimeSeconds": 0}, {"ttl": 3600, "maxWaitTimeSeconds": 3600}])
def test_a_message_that_is_not_over_age_is_delivered(broker, queue, options):
    broker.configure(queue, **options)
    broker.put(queue, ["old"])
    time.sleep(1.1)
    assert [m["data"] for m in broker.take(queue)] == ["old"]


def test_an_over_age_message_is_skipped_among_several_partitions(broker, queue):
    broker.configure(queue, ttl=1)
    for p in range(5):
        broker.put(queue, ["old"], partition="p%d" % p)
    time.sleep(1.1)
    broker.put(queue, ["young"], partition="p9")
    assert [m["data"] for m in broker.take(queue)] == ["young"]


@pytest.mark.parametrize("option", ["ttl", "maxWaitTimeSeconds"])
def test_an_over_age_message_is_removed(make_broker, queue, sql, option):
    b = make_broker(RETENTION_INTERVAL=300, EVICTION_INTERVAL=300)
    b.configure(queue, **{option: 1})
    b.put(queue, ["old"], partition="p", ids=["tx"])
    count = ("select count(*) from queen.messages m join queen.partitions p on p.id = m.partition_id "
             "join queen.queues q on q.id = p.queue_id where q.name = %s")
    assert sql(count, queue) == [(1,)]
    wait_until(lambda: sql(count, queue) == [(0,)], 8 * TIME_FACTOR, "the over-age message removed", 0.1)
    (again,) = b.push([{"queue": queue, "partition": "p", "transactionId": "tx", "payload": "again"}]).expect(201).json
    assert again["status"] == "queued", "deduplication ends with the message"
    assert [m["data"] for m in b.take(queue)] == ["again"]


# --- priority -------------------------------------------------------------------------------------------------------

def test_a_namespace_pop_visits_queues_by_priority(broker, queue):
    for priority in (1, 10, 5, 0):
        broker.configure("%s.q%d" % (queue, priority), namespace=queue, priority=priority)
        broker.put("%s.q%d" % (queue, priority), [priority] * 2)
    seen = [broker.take(namespace=queue, batch=1, autoAck=True)[0]["data"] for _ in range(8)]
    assert seen == [10, 10, 5, 5, 1, 1, 0, 0]


def test_several_partitions_of_a_namespace_pop_come_by_priority(broker, queue):
    for priority in (1, 3, 2):
        broker.configure("%s.q%d" % (queue, priority), namespace=queue, priority=priority)
        broker.put("%s.q%d" % (queue, priority), [priority])
    assert [m["data"] for m in broker.take(namespace=queue, batch=10, partitions=10)] == [3, 2, 1]


# --- delayedProcessing and windowBuffer -----------------------------------------------------------------------------

@pytest.mark.parametrize("form", [None, "p"])
def test_a_delayed_message_is_invisible_until_its_time(broker, queue, form):
    unit = unit_of_time()
    broker.configure(queue, delayedProcessing=unit)
    broker.put(queue, [1], partition="p")
    time.sleep(0.5 * unit)
    broker.put(queue, [2], partition="p")
    assert broker.take(queue, form, batch=9) == []
    time.sleep(0.6 * unit)
    first = broker.take(queue, form, batch=9)
    assert [m["data"] for m in first] == [1], "per message"
    assert broker.ack(first[0])["success"] is True
    assert [m["data"] for m in wait_until(lambda: broker.take(queue, form, batch=9), 3 * unit, "the second")] == [2]


@pytest.mark.parametrize("form", [None, "p"])
def test_a_window_hides_the_partition_until_it_is_quiet(broker, queue, form):
    unit = unit_of_time()
    broker.configure(queue, windowBuffer=unit)
    for i in range(3):
        broker.put(queue, [i], partition="p")
        assert broker.take(queue, form, batch=10) == []
        time.sleep(0.4 * unit)
    assert broker.take(queue, form, batch=10) == [], "every push restarts the window"
    time.sleep(0.8 * unit)
    assert [m["data"] for m in broker.take(queue, form, batch=10)] == [0, 1, 2]


def test_a_window_holds_up_only_its_partition(broker, queue):
    unit = unit_of_time()
    broker.configure(queue, windowBuffer=unit)
    broker.put(queue, ["quiet"], partition="quiet")
    time.sleep(1.1 * unit)
    broker.put(queue, ["busy"], partition="busy")
    assert [m["data"] for m in broker.take(queue, batch=9, partitions=9)] == ["quiet"]


def test_delay_and_window_apply_to_stored_messages(broker, queue):
    broker.put(queue, [1])
    broker.configure(queue, delayedProcessing=60)
    assert broker.take(queue) == []
    broker.configure(queue, windowBuffer=60)
    assert broker.take(queue) == []
    broker.configure(queue)
    assert [m["data"] for m in broker.take(queue)] == [1]


def test_dead_letters_do_not_depend_on_the_two_flags(broker, queue, sql):
    for flags in ({"deadLetterQueue": False, "dlqAfterMaxRetries": False}, {"deadLetterQueue": True, "dlqAfterMaxRetries": True}):
        broker.configure(queue, retryLimit=0, **flags)
        broker.put(queue, [1], partition=str(flags["deadLetterQueue"]))
        (m,) = broker.take(queue)
        assert broker.ack(m, "failed")["dlq"] is True
        assert sql("select count(*) from queen.dead_letter_queue where message_id = %s", m["id"]) == [(1,)]
