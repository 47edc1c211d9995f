"""Deliveries that end without an acknowledgement: they count, and maxDeliveries ends them."""
import json

import pytest

from harness import wait_until


class Sql:
    """Pops by SQL, with the answers of HTTP pops."""
    def __init__(self, sql):
        self.sql = sql

    def take(self, queue, partition=None, batch=1):
        request = {"idx": 0, "queue_name": queue, "partition_name": partition, "batch_size": batch}
        (row,) = self.sql("select queen.pop_unified_batch(%s::jsonb)", json.dumps([request]))
        result = row[0]
        result = json.loads(result) if isinstance(result, str) else result
        return result[0]["result"]["messages"]


def expire(sql, queue):
    """Ends the leases of the queue as their expiry would."""
    for slot in "ab":
        sql("""update queen.consumer_states_%s s set lease_until = clock_timestamp() - interval '1 ms'
                where s.lease_until > clock_timestamp() and s.consumer in (
                      select c.num from queen.consumers c join queen.lanes l on l.num = c.lane
                        join queen.queues q on q.id = coalesce(l.origin_queue, l.queue_id) where q.name = '%s')""" % (slot, queue))


def deliver(take, queue, partition=None, batch=1):
    got = []
    wait_until(lambda: got.extend(m["data"] for m in take(queue, partition, batch=batch)) or got, 30, "a delivery")
    return got


def crash(take, sql, queue, batch, poison, limit=60, complete=None, partition=None):
    """Consumers that crash, without an acknowledgement, whenever they get the poison; the deliveries."""
    seen = []
    for _ in range(limit):
        messages = take(queue, partition, batch=batch)
        seen.append([m["data"] for m in messages])
        if poison in seen[-1]:
            expire(sql, queue)
        elif messages:
            complete(messages)
        else:
            return seen
    raise AssertionError(seen)


def dead(broker, queue):
    return [(m["data"], m["errorMessage"]) for m in broker.get("/api/v1/dlq?queue=" + queue).expect(200).json["messages"]]


@pytest.fixture
def short(broker, queue):
    """Configures the queue so that brokers look at expired leases again at once."""
    def configure(**options):
        broker.configure(queue, leaseTime=1, **options)
    return configure


@pytest.fixture(params=["http", "wildcard", "sql"])
def way(request, broker, sql):
    if request.param == "sql":
        return Sql(sql).take, "p"
    return (lambda queue, partition, batch: broker.take(queue, partition, batch=batch, wait=True, timeout=5000)
            ), "p" if request.param == "http" else None


def complete_with(broker):
    return lambda messages: [broker.ack(m) for m in messages]


def test_a_message_that_is_never_acknowledged_becomes_a_dead_letter(broker, sql, queue, short, way):
    take, partition = way
    short(maxDeliveries=3)
    broker.put(queue, ["poison", "next"], partition="p")
    for _ in range(3):
        assert deliver(take, queue, partition) == ["poison"]
        expire(sql, queue)
    assert deliver(take, queue, partition) == ["next"]
    assert dead(broker, queue) == [("poison", "delivery limit")]


def test_without_a_limit_it_is_delivered_for_ever(broker, sql, queue, short):
    short(retryLimit=3)
    broker.put(queue, ["poison"], partition="p")
    for _ in range(12):
        assert deliver(broker.take, queue, "p") == ["poison"]
        expire(sql, queue)
    assert dead(broker, queue) == []


@pytest.mark.parametrize("limit, poison, batch", [(2, 0, 5), (4, 3, 10), (5, 9, 10), (20, 4, 7), (3, 6, 4)])
def test_neighbours_of_a_message_that_crashes_its_consumer_are_completed(broker, sql, queue, short, limit, poison, batch):
    short(maxDeliveries=limit)
    broker.put(queue, list(range(15)), partition="p")
    done = []

    def complete(messages):
        done.extend(m["data"] for m in messages)
        for r in broker.ack_batch([broker.ack_entry(m) for m in messages]):
            assert r["success"], r

    take = lambda queue, partition, batch: broker.take(queue, partition, batch=batch, wait=True, timeout=1500)
    seen = crash(take, sql, queue, batch, poison, complete=complete, partition="p")
    assert sorted(done) == [i for i in range(15) if i != poison]
    assert dead(broker, queue) == [(poison, "delivery limit")]
    assert sum(poison in s for s in seen) == limit
    assert [poison] in seen or limit == 1
    # Afterwards batches are whole again.
    broker.put(queue, list(range(100, 130)), partition="p")
    assert len(deliver(broker.take, queue, "p", batch=30)) == 30


def test_a_limit_of_one_means_one_delivery(broker, sql, queue, short):
    short(maxDeliveries=1)
    broker.put(queue, [0, 1, 2, 3], partition="p")
    assert deliver(broker.take, queue, "p", batch=3) == [0, 1, 2]
    expire(sql, queue)
    assert deliver(broker.take, queue, "p", batch=3) == [3]
    assert sorted(dead(broker, queue)) == [(i, "delivery limit") for i in range(3)]


def test_a_large_lease_that_reaches_the_limit_does_not_block_its_partition(broker, sql, queue):
    """All of its messages become dead letters in one pop, within the statement timeout."""
    broker.configure(queue, maxDeliveries=1)
    for part in range(0, 10000, 5000):
        broker.put(queue, list(range(part, part + 5000)), partition="p")
    assert len(broker.take(queue, "p", batch=10000)) == 10000
    broker.put(queue, ["next"], partition="p")
    expire(sql, queue)
    got = []
    wait_until(lambda: got.extend(m["data"] for m in broker.take(queue, "p", batch=9)) or got, 90, "the message behind them")
    assert got == ["next"]
    (row,) = sql("select count(*), count(distinct d.seq), min(d.retry_count), max(d.retry_count) from queen.dead_letter_queue d "
                 "join queen.lanes l on l.num = d.lane join queen.queues q on q.id = l.queue_id where q.name = %s", queue)
    assert row == (10000, 10000, 1, 1)


def test_what_was_acknowledged_before_the_crash_stays_so(broker, sql, queue, short):
    short(maxDeliveries=2)
    broker.put(queue, list(range(6)), partition="p")
    messages = broker.take(queue, "p", batch=6)
    assert broker.ack(messages[1])["success"]  # and with it message 0
    expire(sql, queue)
    assert deliver(broker.take, queue, "p", batch=6) == [2]  # half of the deliveries: alone
    expire(sql, queue)
    assert deliver(broker.take, queue, "p", batch=6) == [3]
    assert dead(broker, queue) == [(2, "delivery limit")]


def test_a_retry_that_crashes_its_consumer_becomes_a_dead_letter(broker, sql, queue):
    broker.configure(queue, leaseTime=1, maxDeliveries=2,
                     retryPolicy={"mode": "scheduled", "strategy": "fixed", "base": 0.001, "maxAttempts": 5})
    broker.put(queue, ["poison"], partition="p")
    (m,) = broker.take(queue, "p")
    assert broker.ack(m, "failed")["success"]
    take = lambda queue, partition, batch: broker.take(queue, partition, batch=batch, wait=True, timeout=5000)
    for _ in range(2):
        assert deliver(take, queue, "p") == ["poison"]
        expire(sql, queue)
    wait_until(lambda: broker.take(queue, "p") or dead(broker, queue), 30, "the dead letter")
    assert dead(broker, queue) == [("poison", "delivery limit")]


def test_the_timeline_shows_the_expired_deliveries(broker, sql, queue, short):
    short(maxDeliveries=3)
    broker.put(queue, ["poison"], partition="p", ids=["x"])
    for _ in range(3):
        assert deliver(broker.take, queue, "p") == ["poison"]
        expire(sql, queue)
    assert broker.take(queue, "p") == []
    line = broker.get("/api/v1/messages/timeline?transactionId=x&queue=" + queue).expect(200).json
    assert line["status"] == "FAILED"
    (m,) = line["messages"]
    (expired,) = [e for e in m["events"] if e["event"] == "leaseExpired"]
    assert expired["times"] == 3
    assert [e["error"] for e in m["events"] if e["event"] == "failed"] == ["delivery limit"]


def test_a_lost_owner_counts_and_a_release_does_not(broker, sql, queue, group):
    broker.configure(queue, partitions=1, maxDeliveries=2)
    broker.put(queue, ["poison", "next"], partition="0")
    owners = "/api/v1/consumer-groups/%s/queues/%s/owners/" % (group, queue)

    def own(name, epoch, release):
        (r,) = broker.post(owners + "claim", {"owner": name, "partitions": [{"partition": "0", "epoch": epoch}],
                                              "steal": True}).expect(200).json["results"]
        got = [m["data"] for m in broker.take(queue, "0", consumerGroup=group, owner=name, epoch=r["epoch"])]
        if release:
            broker.post(owners + "release", {"owner": name, "partitions": [{"partition": "0", "epoch": r["epoch"]}]}).expect(200)
            return got, r["epoch"] + 1
        return got, r["epoch"]

    got, epoch = own("a", 0, True)
    for name in "bc":
        assert got == ["poison"]
        got, epoch = own(name, epoch, False)
    assert got == ["poison"]
    got, epoch = own("d", epoch, False)
    assert got == ["next"]


@pytest.mark.one_broker
def test_one_expiry_does_not_make_a_partition_slow_for_ever(broker, sql, queue, short):
    """After the careful claim that follows an expired lease the state is plain again."""
    short(maxDeliveries=4)
    broker.put(queue, list(range(4)), partition="p")
    deliver(broker.take, queue, "p", batch=2)
    expire(sql, queue)
    for m in broker.take(queue, "p", batch=4, wait=True, timeout=5000):
        assert broker.ack(m)["success"]
    broker.put(queue, [9], partition="p")
    (m,) = broker.take(queue, "p", wait=True, timeout=5000)
    (row,) = sql("""select s.suspects_to, s.expired from queen.lanes l join queen.queues q on q.id = l.queue_id
                      join queen.consumers c on c.lane = l.num cross join lateral queen.latest_state(c.num) s
                     where q.name = %s and l.name = 'p'""", queue)
    assert row == (None, None)


# ---- what an operator sees ----

def figure(broker, name):
    for line in broker.get("/metrics/prometheus").expect(200).text.splitlines():
        if line.startswith(name + " "):
            return int(float(line.split()[1]))
    raise AssertionError(name)


@pytest.mark.one_broker
@pytest.mark.parametrize("how", ["retries exhausted", "requested", "delivery limit", "transaction"])
def test_a_new_dead_letter_is_logged_and_counted(broker, sql, queue, short, how):
    short(maxDeliveries=1, retryLimit=0)
    before = figure(broker, "queen_dead_letters_total")

    def one():
        broker.put(queue, [1], partition="p")
        got = []
        wait_until(lambda: got.extend(broker.take(queue, "p")) or got, 30, "the message")
        (m,) = got
        if how == "transaction":
            broker.transaction([{"type": "ack", "transactionId": m["transactionId"], "partitionId": m["partitionId"], "status": "dlq"}])
        elif how == "delivery limit":
            expire(sql, queue)
            wait_until(lambda: not broker.take(queue, "p") and len(dead(broker, queue)) > 0, 30, "the dead letter")
        else:
            assert broker.ack(m, "failed" if how == "retries exhausted" else "dlq")["dlq"] is True
        lines = [line for line in broker.log_text().splitlines() if "event=dlq.added" in line and queue in line]
        return lines

    # A line a second at most: another test may have had this one.
    lines = wait_until(one, 30, "the line", interval=1.1)
    reason = "requested" if how == "transaction" else how
    assert 'reason="%s"' % reason in lines[0] and 'partition="p"' in lines[0]
    assert figure(broker, "queen_dead_letters_total") > before
