"""Requests as large as a client may make them: answered in time that follows their size, in bounded memory."""
import gzip
import json
import re
import resource
import time
import uuid

import pytest
from harness import Background, patience


def delays_while(broker, call):
    """The result of the call, and the longest time that another request had to wait meanwhile."""
    running, worst = Background(call), 0.0
    while not running.done:
        begin = time.monotonic()
        broker.get("/live").expect(200)
        worst = max(worst, time.monotonic() - begin)
        time.sleep(0.01)
    return running.result(200), worst


# ---- acknowledgements ----

@pytest.mark.parametrize("kind", ["dlq", "lease"])
def test_a_large_mixed_acknowledgement_batch_is_answered(broker, queue, kind):
    """12,000 entries took longer than the database's 30 s and were sent again five times."""
    n = 12000
    broker.configure(queue, leaseTime=600)
    broker.put(queue, list(range(n)))
    messages = broker.take(queue, batch=n)
    assert len(messages) == n
    entries = [broker.ack_entry(m, "dlq" if kind == "dlq" and i % 10 == 0 else "completed", lease=kind == "dlq" or i % 2 == 0)
               for i, m in enumerate(messages)]
    results = broker.post("/api/v1/ack/batch", {"acknowledgments": entries}, timeout=250).expect(200).json
    assert [r["transactionId"] for r in results] == [m["transactionId"] for m in messages]
    assert all(r["success"] for r in results)
    assert sum(r["dlq"] for r in results) == (n / 10 if kind == "dlq" else 0)
    assert results[-1]["leaseReleased"] and broker.take(queue) == []


def test_acknowledgements_for_very_many_partitions_are_answered(broker):
    """20,000 groups of one entry: grouping and settling both looked at all of them for each."""
    entries = [{"transactionId": "t%d" % i, "partitionId": str(uuid.uuid4()), "status": "failed" if i % 2 else "completed"}
               for i in range(20000)]
    r, _ = delays_while(broker, lambda: broker.post("/api/v1/ack/batch", {"acknowledgments": entries}, timeout=250))
    assert {x["error"] for x in r.expect(200).json} == {"Message not found"}


def test_entries_of_one_partition_find_their_way_back_from_any_order(broker, queue):
    """Rows come in the order of the log, entries in that of the request."""
    broker.put(queue, list(range(50)))
    messages = broker.take(queue, batch=50)
    backwards = list(reversed(messages))
    entries = [broker.ack_entry(m, "dlq" if m["data"] % 7 == 0 else "completed") for m in backwards]
    results = broker.post("/api/v1/ack/batch", {"acknowledgments": entries}).expect(200).json
    assert [r["transactionId"] for r in results] == [m["transactionId"] for m in backwards]
    assert [r["dlq"] for r in results] == [m["data"] % 7 == 0 for m in backwards]


# ---- partition keys ----

@pytest.mark.one_broker
def test_a_push_that_names_very_many_queues_by_key_does_not_hold_up_others(make_broker):
    """60,000 names were compared with each other: 16 s in which nothing else was served."""
    broker = make_broker(NUM_WORKERS=1)
    body = json.dumps({"items": [{"queue": "k%d" % i, "partitionKey": "x", "payload": 1} for i in range(60000)]})
    r, worst = delays_while(broker, lambda: broker.post("/api/v1/push", body, timeout=250))
    assert "item 0: partitionKey is for queues with a fixed set" in r.expect(400).json["error"]
    assert worst < patience(3)


def test_one_request_may_name_more_fixed_queues_than_are_cached(broker, sql, queue):
    """The memory for 10,000 queues was emptied while the request that filled it still needed it."""
    n = 10050
    sql("""insert into queen.queues (name, partitions) select %s || '-' || i, 4 from generate_series(1, %s) i""", queue, n)
    try:
        items = [{"queue": "%s-%d" % (queue, i), "partitionKey": "x", "payload": 1} for i in range(1, n + 1)]
        items.append({"queue": queue + "-none", "partitionKey": "x", "payload": 1})
        r = broker.push(items, timeout=120).expect(400)
        assert r.json["error"].startswith("item %d: partitionKey" % n)
    finally:
        sql("delete from queen.queues where name like %s", queue + "-%")


# ---- memory ----

def peak(broker):
    """Most memory that the process has had so far, in MB."""
    with open("/proc/%d/status" % broker.process.pid) as f:
        return int(re.search(r"VmHWM:\s+(\d+) kB", f.read()).group(1)) / 1024


@pytest.fixture(scope="module")
def small(pg):
    """A broker that may have 1.5 GB of address space, as a process under a memory limit."""
    import harness
    broker = harness.Broker({**pg.env(), "SIDECAR_POOL_SIZE": "4", "NUM_WORKERS": "1"})
    harness.living.append(broker)
    broker.start()
    if "asan" not in harness.BIN:
        resource.prlimit(broker.process.pid, resource.RLIMIT_AS, (1500 << 20, 1500 << 20))
    yield broker
    harness.end(broker, clean_exit=True)


PUSH = b'{"queue":"q"}'
HOSTILE = {
    "push": ("/api/v1/push", b'{"items":[', PUSH, b"]}"),
    "ack": ("/api/v1/ack/batch", b'{"acknowledgments":[', b'{"transactionId":"","partitionId":""}', b"]}"),
    "transaction": ("/api/v1/transaction", b'{"operations":[', b'{"type":"push","queue":"q"}', b"]}"),
    "items of a transaction": ("/api/v1/transaction", b'{"operations":[{"type":"push","items":[', PUSH, b"]}]}"),
    "required leases": ("/api/v1/transaction", b'{"operations":[],"requiredLeases":[', b'"x"', b"]}"),
    "cycle": ("/streams/v1/cycle", b'{"query_id":"%s","partition_id":"%s","push_items":[' % ((str(uuid.UUID(int=1)).encode(),) * 2),
              PUSH, b"]}"),
}


@pytest.mark.one_broker
@pytest.mark.parametrize("name", HOSTILE)
def test_millions_of_elements_are_refused_in_bounded_memory(small, name):
    """A push of 198 KB had 7.3 million items and took 3 GB; under a memory limit the process ended."""
    path, head, element, tail = HOSTILE[name]
    n = ((60 if name == "push" else 8) << 20) // (len(element) + 1)
    body = gzip.compress(head + b",".join([element] * n) + tail, 1)
    r = small.post(path, body, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"}, timeout=120)
    assert "more than 100000 elements" in r.expect(413).json["error"]
    assert small.alive and peak(small) < 700
    small.get("/ready").expect(200)


@pytest.mark.one_broker
def test_the_limits_are_settings(make_broker, queue):
    b = make_broker(QUEEN_MAX_REQUEST_ITEMS=10, QUEEN_MAX_REQUEST_MEMORY=1 << 20)
    b.put(queue, list(range(10)))
    r = b.push([{"queue": queue, "payload": i} for i in range(11)]).expect(413)
    assert "more than 10 elements" in r.json["error"]
    text = "\\n" * 1000000  # a text with escapes is copied
    r = b.post("/api/v1/push", '{"items":[{"queue":"%s","payload":1,"transactionId":"%s"}]}' % (queue, text)).expect(413)
    assert "bytes of memory" in r.json["error"]
    assert len(b.drain(queue)) == 10


@pytest.mark.one_broker
def test_more_failures_than_the_database_can_settle_in_time_are_refused(make_broker, queue):
    b = make_broker(DB_STATEMENT_TIMEOUT=5000)
    (pushed,) = b.put(queue, [1], partition="p", ids=["m"])
    (m,) = b.take(queue, "p")
    ghosts = [{"transactionId": "ghost", "partitionId": m["partitionId"], "status": "failed"}] * 10000
    r = b.post("/api/v1/ack/batch", {"acknowledgments": [b.ack_entry(m), *ghosts, ghosts[0]]}).expect(413)
    assert "more than 10000 acknowledgements other than completed" in r.json["error"]
    assert b.take(queue, "p") == [], "nothing was changed: the lease goes on"
    r = b.post("/api/v1/transaction", {"operations": [{"type": "ack", **g} for g in [*ghosts, ghosts[0]]]}).expect(413)
    assert "acknowledgements other than completed" in r.json["error"]
    results = b.post("/api/v1/ack/batch", {"acknowledgments": [b.ack_entry(m), *ghosts]}).expect(200).json
    assert results[0]["success"] is True and len(results) == 10001
