"""Many producers and consumers at once; every id is checked for loss, repetition and order."""
import random
import threading
import time

import pytest

from harness import TIME_FACTOR, in_parallel

LIMIT = 60 * max(1, TIME_FACTOR)


def check_order(delivered, name="partition"):
    """Ids rise within each partition, in the order of delivery."""
    last = {}
    for m in delivered:
        assert m["id"] > last.get(m[name], ""), "out of order in %s" % m[name]
        last[m[name]] = m["id"]


def check_producers(delivered):
    """The messages of one producer in one partition come in the order in which it pushed them."""
    last = {}
    for m in delivered:
        who, n = m["data"]
        key = (m["partition"], who)
        assert n > last.get(key, -1), "producer %s: %d after %d in %s" % (who, n, last[key], m["partition"])
        last[key] = n


def producer(broker, queue, who, count, partitions, seed):
    def run():
        rng, n = random.Random(seed), 0
        while n < count:
            size = min(rng.choice([1, 1, 1, 5, 20]), count - n)
            items = [{"queue": queue, "partition": "p%d" % rng.randrange(partitions), "payload": [who, n + i],
                      "transactionId": "%s-%d" % (who, n + i)} for i in range(size)]
            results = broker.push(items).expect(201).json
            assert all(r["status"] == "queued" for r in results)
            n += size
    return run


class Collector:
    """Consumers until `total` messages have come or nothing came for a while."""

    def __init__(self, total):
        self.total, self.lock, self.delivered = total, threading.Lock(), []
        self.deadline = time.monotonic() + LIMIT

    def consumer(self, broker, queue, batch, partitions=1, auto=False, form=None, **params):
        def run():
            while True:
                with self.lock:
                    if len(self.delivered) >= self.total or time.monotonic() > self.deadline:
                        return
                messages = broker.take(queue, form, batch=batch, partitions=partitions, wait=True, timeout=500, autoAck=auto,
                                       **params)
                if not messages:
                    continue
                with self.lock:
                    self.delivered += messages
                if not auto:
                    results = broker.ack_batch(messages, params.get("consumerGroup"))
                    assert all(r["success"] for r in results), results
        return run

    def check(self, expected):
        ids = [m["id"] for m in self.delivered]
        assert len(ids) == len(set(ids)), "%d messages came twice" % (len(ids) - len(set(ids)))
        missing = set(expected) - {m["transactionId"] for m in self.delivered}
        assert not missing, "%d accepted messages were never delivered" % len(missing)
        assert len(ids) == len(expected)


@pytest.mark.parametrize("brokers", [1, 2])
@pytest.mark.parametrize("auto", [False, True], ids=["ack", "autoAck"])
def test_producers_and_consumers_on_shared_partitions(broker, broker2, queue, brokers, auto):
    nodes = (broker, broker2)[:brokers]
    each, producers = 250, 6
    expected = ["w%d-%d" % (w, n) for w in range(producers) for n in range(each)]
    c = Collector(len(expected))
    in_parallel([producer(nodes[w % brokers], queue, "w%d" % w, each, 4, w) for w in range(producers)]
                + [c.consumer(nodes[i % brokers], queue, batch=7 + i, partitions=1 + i % 3, auto=auto) for i in range(4)],
                LIMIT + 10)
    c.check(expected)
    if not auto:
        # a lease is acked before the partition is offered again, so the list is in the order of each partition
        check_order(c.delivered)
        check_producers(c.delivered)
    assert broker.take(queue) == []


@pytest.mark.parametrize("round", range(3))
def test_several_producers_on_one_partition_while_it_is_consumed_lose_nothing(broker, broker2, queue, round):
    """The reference lets the cursor overtake a commit that is still under way: 0.1-0.5 % of the messages are lost."""
    each, producers = 300, 8
    expected = ["w%d-%d" % (w, n) for w in range(producers) for n in range(each)]
    c = Collector(len(expected))
    in_parallel([producer((broker, broker2)[w % 2], queue, "w%d" % w, each, 1, 100 * round + w) for w in range(producers)]
                + [c.consumer(broker if round else broker2, queue, 5, auto=True, form="p0" if round == 1 else None)],
                LIMIT + 10)
    c.check(expected)
    check_order(c.delivered)
    check_producers(c.delivered)


def test_a_slow_sql_transaction_is_not_overtaken(pg, broker, queue):
    """A push whose transaction commits late must still be delivered, and in its place."""
    import json
    broker.put(queue, ["first"], partition="p")
    conn = pg.connect(autocommit=False)
    with conn.cursor() as cur:
        cur.execute("select queen.push_messages_v2(%s::jsonb)", (json.dumps([{"queue": queue, "partition": "p", "payload": "slow"}]),))
        pushing = threading.Thread(target=lambda: broker.put(queue, ["later"], partition="p"))
        pushing.start()
        seen = []
        for _ in range(5):
            seen += [m["data"] for m in broker.take(queue, autoAck=True, batch=9)]
            time.sleep(0.05)
    conn.commit()
    conn.close()
    pushing.join(10)
    seen += [m["data"] for m in broker.take(queue, autoAck=True, batch=9, wait=True, timeout=6000)]
    seen += [m["data"] for m in broker.take(queue, autoAck=True, batch=9)]
    assert seen == ["first", "slow", "later"]


def test_ten_workers_over_many_partitions_see_each_message_once_and_in_order(broker, broker2, queue):
    partitions, each = 25, 30
    for p in range(partitions):
        broker.put(queue, [["w", i] for i in range(each)], partition="p%d" % p, ids=["p%d-%d" % (p, i) for i in range(each)])
    c = Collector(partitions * each)
    in_parallel([c.consumer((broker, broker2)[i % 2], queue, batch=1 + i % 4 * 5) for i in range(10)], LIMIT + 10)
    c.check(["p%d-%d" % (p, i) for p in range(partitions) for i in range(each)])
    check_order(c.delivered)
    check_producers(c.delivered)


def test_one_partition_is_consumed_in_global_order_by_many_workers(broker, queue):
    total = 1500
    for at in range(0, total, 100):
        broker.put(queue, [["w", at + i] for i in range(100)], ids=["m%d" % (at + i) for i in range(100)])
    c = Collector(total)
    in_parallel([c.consumer(broker, queue, batch=40) for _ in range(10)], LIMIT + 10)
    c.check(["m%d" % i for i in range(total)])
    assert [m["data"][1] for m in c.delivered] == list(range(total))


def test_groups_fan_out_under_load(broker, broker2, queue):
    each, producers, groups = 150, 4, 3
    expected = ["w%d-%d" % (w, n) for w in range(producers) for n in range(each)]
    collectors = [Collector(len(expected)) for _ in range(groups)]
    in_parallel([producer((broker, broker2)[w % 2], queue, "w%d" % w, each, 3, w) for w in range(producers)]
                + [c.consumer((broker, broker2)[k % 2], queue, 10, 3, consumerGroup="g%d" % g)
                   for g, c in enumerate(collectors) for k in range(2)], LIMIT + 10)
    for c in collectors:
        c.check(expected)
        check_order(c.delivered)
        check_producers(c.delivered)


def test_two_hundred_concurrent_pushes_that_create_partitions_do_not_deadlock(broker, broker2, queue):
    names = ["p%03d" % i for i in range(60)]

    def one(i):
        def run():
            rng = random.Random(i)
            out = []
            for k in range(4):
                picked = rng.sample(names, 12)
                items = [{"queue": queue + str(rng.randrange(2)), "partition": p, "payload": i} for p in picked]
                out.append((broker, broker2)[i % 2].push(items))
            return out
        return run
    answers = [r for rs in in_parallel([one(i) for i in range(50)], LIMIT) for r in rs]
    assert len(answers) == 200
    assert all(r.status == 201 and all(x["status"] == "queued" for x in r.json) for r in answers), \
        [r for r in answers if r.status != 201][:3]
    by_name = {}
    total = 0
    for q in "01":
        messages = broker.drain(queue + q)
        total += len(messages)
        for m in messages:
            by_name.setdefault((q, m["partition"]), set()).add(m["partitionId"])
    assert total == 200 * 12
    assert all(len(ids) == 1 for ids in by_name.values()), "two partitions of one name"


def test_parallel_first_pushes_create_one_queue(broker, broker2, queue, sql):
    in_parallel([lambda i=i: (broker, broker2)[i % 2].put(queue, [i]) for i in range(30)])
    assert sql("select count(*) from queen.queues where name = %s", queue) == [(1,)]
    assert sorted(m["data"] for m in broker.drain(queue)) == list(range(30))


def test_parallel_configures_and_pushes_agree_on_one_queue(broker, broker2, queue):
    calls = [lambda i=i: (broker, broker2)[i % 2].configure(queue, leaseTime=10 + i)["queueId"] for i in range(10)]
    calls += [lambda i=i: (broker, broker2)[i % 2].put(queue, [i])[0]["partition_id"] for i in range(10)]
    ids = in_parallel(calls)
    assert len(set(ids[:10])) == 1 and len(set(ids[10:])) == 1


def test_redelivery_under_load_loses_nothing(broker, broker2, queue):
    """A fifth of the batches fail or are given back; with retries left everything is completed in the end."""
    broker.configure(queue, retryLimit=1000)
    total, partitions = 400, 8
    for p in range(partitions):
        broker.put(queue, [[p, i] for i in range(total // partitions)], partition="p%d" % p)
    lock, completed = threading.Lock(), []
    deadline = time.monotonic() + LIMIT

    def worker(k):
        def run():
            rng, b = random.Random(k), (broker, broker2)[k % 2]
            while time.monotonic() < deadline:
                with lock:
                    if len(completed) >= total:
                        return
                messages = b.take(queue, batch=6, partitions=2, wait=True, timeout=300)
                statuses = {}
                for m in messages:
                    statuses.setdefault(m["partition"], rng.choice(["completed"] * 4 + ["failed", "retry"]))
                if messages:
                    # under the lock, so that the list has the order of the acknowledgements
                    with lock:
                        results = b.ack_batch([b.ack_entry(m, statuses[m["partition"]]) for m in messages])
                        assert all(r["success"] and not r["dlq"] for r in results), results
                        completed.extend(m for m in messages if statuses[m["partition"]] == "completed")
        return run
    in_parallel([worker(k) for k in range(6)], LIMIT + 10)
    assert len(completed) == total and len({m["id"] for m in completed}) == total
    check_order(completed)


def test_ten_thousand_partitions_keep_their_order(broker, queue):
    """Where the reference deadlocks while filling and breaks the order while draining."""
    n, rounds = 10000, 2
    in_parallel([lambda r=r, lo=lo: broker.push(
        [{"queue": queue, "partition": "p%d" % p, "payload": [p, r]} for p in range(lo, lo + 1000)]).expect(201)
        for lo in range(0, n, 1000) for r in [0]], 60)
    for lo in range(0, n, 1000):
        broker.push([{"queue": queue, "partition": "p%d" % p, "payload": [p, 1]} for p in range(lo, lo + 1000)]).expect(201)
    seen, lock = {}, threading.Lock()

    def drain():
        while True:
            messages = broker.take(queue, batch=500, partitions=250, autoAck=True)
            if not messages:
                return
            with lock:
                for m in messages:
                    p, r = m["data"]
                    seen.setdefault(p, []).append(r)
    in_parallel([drain] * 4, 60)
    assert len(seen) == n and all(got == list(range(rounds)) for got in seen.values())
