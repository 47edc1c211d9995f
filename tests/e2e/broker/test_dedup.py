"""Exact deduplication: semantics 4, storage.md."""
import time
import uuid

import pytest

from harness import in_parallel, uuid7

MAKERS = {
    "uuid7": uuid7,
    "UUID7": lambda: uuid7().upper(),
    "old uuid7": lambda: uuid7(int(time.time() * 1000) - 86400_000),
    "uuid7 of 1970": lambda: uuid7(5),
    "uuid7 of the future": lambda: uuid7(int(time.time() * 1000) + 86400_000 * 365),
    "uuid7 of the end of time": lambda: uuid7((1 << 48) - 1),
    "uuid4": lambda: str(uuid.uuid4()),
    "uuid1": lambda: str(uuid.uuid1()),
    "free text": lambda: "order-%s" % uuid.uuid4().hex,
    "non-ascii": lambda: "bestellung-ü-%s" % uuid.uuid4().hex,
    "255 characters": lambda: (uuid.uuid4().hex * 8)[:255],
}


def item(queue, tx, payload=None, partition="p"):
    return {"queue": queue, "partition": partition, "payload": payload, "transactionId": tx}


@pytest.fixture(params=list(MAKERS))
def make_id(request):
    return MAKERS[request.param]


def test_the_second_push_is_a_duplicate_with_the_first_message_id(broker, broker2, queue, make_id):
    tx = make_id()
    (first,) = broker.push([item(queue, tx, "one")]).expect(201).json
    for b in (broker, broker2, broker):
        (again,) = b.push([item(queue, tx, "two")]).expect(201).json
        assert again["status"] == "duplicate"
        assert again["message_id"] == first["message_id"]
        assert again["transaction_id"] == tx and again["queueName"] == queue and again["index"] == 0
        assert "partition_id" not in again and "trace_id" not in again
    messages = broker.drain(queue)
    assert [(m["id"], m["data"]) for m in messages] == [(first["message_id"], "one")]


def test_a_duplicate_is_found_inside_one_request(broker, queue, make_id):
    a, b = make_id(), make_id()
    results = broker.push([item(queue, x, i) for i, x in enumerate([a, b, a, a, b])]).expect(201).json
    assert [r["status"] for r in results] == ["queued", "queued", "duplicate", "duplicate", "duplicate"]
    assert results[2]["message_id"] == results[3]["message_id"] == results[0]["message_id"]
    assert results[4]["message_id"] == results[1]["message_id"]
    assert [m["data"] for m in broker.drain(queue)] == [0, 1]


def test_the_same_id_in_another_partition_or_queue_is_another_message(broker, queue, make_id):
    tx = make_id()
    results = broker.push([item(queue, tx, 1, "a"), item(queue, tx, 2, "b"), item(queue + "x", tx, 3, "a")]).expect(201).json
    assert [r["status"] for r in results] == ["queued"] * 3
    assert len({r["message_id"] for r in results}) == 3


def test_a_duplicate_is_found_after_consumption(broker, queue, make_id):
    tx = make_id()
    (first,) = broker.push([item(queue, tx)]).expect(201).json
    assert len(broker.drain(queue)) == 1
    (again,) = broker.push([item(queue, tx)]).expect(201).json
    assert (again["status"], again["message_id"]) == ("duplicate", first["message_id"])
    assert broker.take(queue) == []


def test_of_eight_parallel_pushes_one_wins(broker, broker2, queue, make_id):
    for _ in range(3):
        tx = make_id()
        calls = [lambda b=b: b.push([item(queue, tx)]).expect(201).json[0] for b in [broker, broker2] * 4]
        results = in_parallel(calls)
        assert sorted(r["status"] for r in results) == ["duplicate"] * 7 + ["queued"]
        assert len({r["message_id"] for r in results}) == 1
    assert len(broker.drain(queue)) == 3


def test_ids_that_differ_in_case_or_spelling_are_different_ids(broker, queue):
    base = uuid7()
    ids = [base, base.upper(), base.replace("-", ""), "{%s}" % base, base + " ", "urn:uuid:" + base]
    assert [r["status"] for r in broker.push([item(queue, x) for x in ids]).expect(201).json] == ["queued"] * len(ids)
    assert [r["status"] for r in broker.push([item(queue, x) for x in ids]).expect(201).json] == ["duplicate"] * len(ids)
    assert [m["transactionId"] for m in broker.drain(queue)] == ids


def test_uuid7_ids_hours_apart_in_one_request_are_all_found_again(broker, queue):
    now = int(time.time() * 1000)
    ids = [uuid7(now - 30_000 * i * i) for i in range(60)] + [uuid7(now + 30_000 * i * i) for i in range(1, 60)]
    order = broker.push([item(queue, x, i) for i, x in enumerate(ids)]).expect(201).json
    assert {r["status"] for r in order} == {"queued"}
    again = broker.push([item(queue, x) for x in reversed(ids)]).expect(201).json
    assert {r["status"] for r in again} == {"duplicate"}
    assert [r["message_id"] for r in reversed(again)] == [r["message_id"] for r in order]
    assert [m["data"] for m in broker.drain(queue)] == list(range(len(ids)))


def test_old_ids_are_found_behind_many_later_pushes(broker, queue):
    early = [uuid7(), "early-" + queue, str(uuid.uuid4())]
    first = broker.push([item(queue, x) for x in early]).expect(201).json
    for i in range(60):
        broker.put(queue, [i], partition="p", ids=[uuid7() if i % 2 else "later-%d" % i])
    again = broker.push([item(queue, x) for x in early]).expect(201).json
    assert [(r["status"], r["message_id"]) for r in again] == [("duplicate", r["message_id"]) for r in first]


def test_mixed_requests_report_each_item_for_itself(broker, queue):
    broker.put(queue, [0, 1], partition="p", ids=["a", "b"])
    results = broker.push([item(queue, x, x) for x in ("x", "a", "y", "b", "x")]).expect(201).json
    assert [r["status"] for r in results] == ["queued", "duplicate", "queued", "duplicate", "duplicate"]
    assert [r["index"] for r in results] == list(range(5))
    assert [m["data"] for m in broker.drain(queue)] == [0, 1, "x", "y"]


def test_parallel_producers_with_overlapping_ids_on_two_brokers_store_each_id_once(broker, broker2, queue):
    ids = [uuid7() if i % 2 else "id-%d" % i for i in range(120)]

    def producer(k):
        def run():
            b, out = (broker, broker2)[k % 2], []
            mine = ids[k * 5:] + ids[:k * 5]
            for i in range(0, len(mine), 8):
                out += b.push([item(queue, x, x, "p%d" % (ids.index(x) % 3)) for x in mine[i:i + 8]]).expect(201).json
            return out
        return run
    results = [r for rs in in_parallel(producer(k) for k in range(8)) for r in rs]
    queued = [r for r in results if r["status"] == "queued"]
    assert sorted(r["transaction_id"] for r in queued) == sorted(ids)
    winner = {r["transaction_id"]: r["message_id"] for r in queued}
    assert all(winner[r["transaction_id"]] == r["message_id"] for r in results)
    assert sorted(m["data"] for m in broker.drain(queue)) == sorted(ids)


def test_a_duplicate_does_not_wake_a_window(broker, queue):
    """A duplicate does not count as activity: the quiet period is not restarted."""
    broker.configure(queue, windowBuffer=1)
    broker.push([item(queue, "only")]).expect(201)
    begin = time.monotonic()
    while time.monotonic() - begin < 1.3:
        broker.push([item(queue, "only")]).expect(201)
        time.sleep(0.1)
    assert len(broker.take(queue, "p")) == 1
