"""The scenarios of the existing clients' own test suites, with the requests that these clients send.

`consume` below follows client-expectations.md section 4: pop, handle, ack with what the message carried; an empty answer
counts as idle; only `messages` is read of an answer.
"""
import json
import threading
import time

import pytest

from harness import TIME_FACTOR, in_parallel, uuid7, wait_until


def create(broker, queue, **options):
    """As JS and Python configure: every option is sent, with the client's defaults."""
    defaults = {"leaseTime": 300, "retryLimit": 3, "priority": 0, "delayedProcessing": 0, "windowBuffer": 0, "maxSize": 0,
                "retentionSeconds": 0, "completedRetentionSeconds": 0, "encryptionEnabled": False}
    sent = {**defaults, **options}
    answer = broker.post("/api/v1/configure", {"queue": queue, "options": sent}).json
    assert answer["configured"] is True
    assert {k: answer["options"][k] for k in sent} == sent
    return answer


def push(broker, queue, payloads, partition=None, ids=None):
    items = [{"queue": queue, **({"partition": partition} if partition else {}), "payload": p,
              "transactionId": ids[i] if ids else str(uuid7())} for i, p in enumerate(payloads)]
    results = broker.post("/api/v1/push", {"items": items}).json
    assert len(results) == len(items)
    return results


def pop(broker, queue, partition=None, **params):
    """`pop()` of the clients: no list, no matter what was answered, is an empty list."""
    path = "/api/v1/pop/queue/" + queue + ("/partition/" + partition if partition else "")
    query = {"batch": 1, "wait": "false", "timeout": 30000, **params}
    answer = broker.get(path + "?" + "&".join("%s=%s" % (k, str(v).lower() if isinstance(v, bool) else v)
                                              for k, v in query.items()))
    return answer.json["messages"] if answer.status == 200 else []


def ack(broker, messages, status="completed", group=None, error=None):
    """One: POST /ack; several: POST /ack/batch with the group at the top."""
    def entry(m):
        return {"transactionId": m["transactionId"], "partitionId": m["partitionId"], "status": status, "error": error,
                **({"leaseId": m["leaseId"]} if m["leaseId"] else {})}
    if len(messages) == 1:
        return broker.post("/api/v1/ack", {**entry(messages[0]), "consumerGroup": group}).json
    return broker.post("/api/v1/ack/batch", {"acknowledgments": [entry(m) for m in messages], "consumerGroup": group}).json


def consume(broker, queue, handler, limit=None, idle_ms=1000, batch=1, group=None, each=False, partition=None, **params):
    """Handles messages until `limit` have come or nothing came for `idle_ms`."""
    done, last = 0, time.monotonic()
    if group:
        params["consumerGroup"] = group
    while limit is None or done < limit:
        messages = pop(broker, queue, partition, batch=batch, **params)
        if not messages:
            if (time.monotonic() - last) * 1000 > idle_ms * max(1, TIME_FACTOR):
                break
            time.sleep(0.1)  # what the clients do between pops that do not wait
            continue
        last = time.monotonic()
        for part in ([m] for m in messages) if each else [messages]:
            done += len(part)
            try:
                handler(part)
            except RuntimeError as e:
                ack(broker, part, "failed", group, str(e))
            else:
                ack(broker, part, "completed", group)
    return done


def dlq(broker, queue):
    return broker.get("/api/v1/dlq?queue=%s&limit=100&offset=0" % queue).json


# ---- queues and pushes -----------------------------------------------------------------------

def test_a_queue_is_made_and_deleted(broker, queue):
    create(broker, queue)
    create(broker, queue, leaseTime=60, retryLimit=5, priority=9, delayedProcessing=1, windowBuffer=2, maxSize=1000,
           retentionEnabled=True, retentionSeconds=3600, completedRetentionSeconds=600, maxWaitTimeSeconds=99,
           encryptionEnabled=True)
    assert broker.request("DELETE", "/api/v1/resources/queues/" + queue).json["deleted"] is True


def test_a_queue_without_a_name_can_be_configured(broker):
    assert broker.post("/api/v1/configure", {"queue": "", "options": {}}).json["configured"] is True


@pytest.mark.parametrize("payload", [None, {}, [], "", 0, False, "text", {"deep": {"list": [1, {"a": None}]}},
                                     [{"id": i, "name": "item-%d" % i, "value": "x" * 70} for i in range(10000)]],
                         ids=lambda p: json.dumps(p)[:12])
def test_a_payload_comes_back_as_it_was(broker, queue, payload):
    create(broker, queue)
    assert push(broker, queue, [payload])[0]["status"] == "queued"
    assert pop(broker, queue)[0]["data"] == payload


def test_duplicates(broker, queue):
    create(broker, queue)
    first = push(broker, queue, [1], ids=["same"])[0]
    again = push(broker, queue, [2, 3, 4], ids=["same", "other", "other"])
    assert [r["status"] for r in again] == ["duplicate", "queued", "duplicate"]
    assert again[0]["message_id"] == first["message_id"] and again[2]["message_id"] == again[1]["message_id"]
    assert [r["transaction_id"] for r in again] == ["same", "other", "other"]
    assert push(broker, queue, [5], "elsewhere", ["same"])[0]["status"] == "queued"


def test_eight_pushes_of_one_id_at_once(broker, queue):
    create(broker, queue)
    results = []
    in_parallel([lambda: results.extend(push(broker, queue, ["x"], ids=["one"])) for _ in range(8)])
    assert sorted(r["status"] for r in results) == ["duplicate"] * 7 + ["queued"]
    assert len({r["message_id"] for r in results}) == 1


def test_nothing_to_push(broker):
    assert broker.post("/api/v1/push", {"items": []}).json == []


@pytest.mark.parametrize("option", ["delayedProcessing", "windowBuffer"])
def test_messages_that_come_later(broker, queue, option):
    create(broker, queue, **{option: 2})
    for i in range(3):
        push(broker, queue, [i])
    assert pop(broker, queue, batch=10) == []
    seen = []
    wait_until(lambda: seen.extend(m["data"] for m in pop(broker, queue, batch=10, autoAck=True)) or len(seen) >= 3, 10, "all three")
    assert seen == [0, 1, 2]


# ---- consumers -------------------------------------------------------------------------------

def test_a_wait_ends_when_a_message_comes(broker, queue):
    create(broker, queue)
    begun = time.monotonic()
    timer = threading.Timer(0.3, push, (broker, queue, ["late"]))
    timer.start()
    assert [m["data"] for m in pop(broker, queue, wait=True, timeout=20000)] == ["late"]
    assert time.monotonic() - begun >= 0.3
    timer.join()


def test_ten_workers_over_many_partitions(broker, queue):
    create(broker, queue)
    for p in range(20):
        push(broker, queue, [[p, i] for i in range(50)], "p%d" % p)
    seen, lock = [], threading.Lock()

    def handle(messages):
        with lock:
            seen.extend(m["data"] for m in messages)
    in_parallel([lambda: consume(broker, queue, handle, batch=10) for _ in range(10)], timeout=120)
    assert sorted(seen) == [[p, i] for p in range(20) for i in range(50)]
    for p in range(20):
        assert [i for q, i in seen if q == p] == list(range(50))


def test_two_groups_get_everything(broker, queue):
    create(broker, queue)
    push(broker, queue, list(range(200)))
    for group in ("one", "two"):
        seen = []
        consume(broker, queue, lambda ms: seen.extend(m["data"] for m in ms), limit=200, batch=50, group=group)
        assert seen == list(range(200))


def test_a_lease_of_one_second(broker, queue):
    create(broker, queue, leaseTime=1)
    push(broker, queue, ["x"])
    first = pop(broker, queue)[0]
    assert pop(broker, queue) == []
    again = []
    wait_until(lambda: again.extend(pop(broker, queue)) or again, 10, "its return")
    assert again[0]["id"] == first["id"] and again[0]["leaseId"] != first["leaseId"]


def test_several_partitions_in_one_pop(broker, queue):
    create(broker, queue)
    for p in range(4):
        push(broker, queue, [[p, i] for i in range(3)], "p%d" % p)
    assert len({m["partitionId"] for m in pop(broker, queue, batch=10, consumerGroup="a")}) == 1
    many = pop(broker, queue, batch=8, partitions=3, consumerGroup="b")
    assert len(many) == 8 and len({m["partitionId"] for m in many}) == 3 and len({m["leaseId"] for m in many}) == 1
    renewed = broker.post("/api/v1/lease/%s/extend" % many[0]["leaseId"], {"seconds": 60})
    assert renewed.status == 200 and renewed.json["newExpiresAt"]
    assert all(r["success"] for r in ack(broker, many, group="b"))


# ---- failures --------------------------------------------------------------------------------

def test_a_batch_that_fails_twice(broker, queue):
    create(broker, queue, retryLimit=3)
    push(broker, queue, list(range(100)))
    rounds = []

    def handle(messages):
        rounds.append([m["data"] for m in messages])
        if len(rounds) < 3:
            raise RuntimeError("not yet")
    consume(broker, queue, handle, limit=300, batch=100)
    assert rounds == [list(range(100))] * 3
    assert dlq(broker, queue)["total"] == 0


def test_a_message_that_always_fails(broker, queue):
    create(broker, queue, retryLimit=1)
    push(broker, queue, [{"job": 7}])

    def handle(messages):
        raise RuntimeError("this one is broken")
    assert consume(broker, queue, handle, limit=2, each=True) == 2
    letters = dlq(broker, queue)
    assert letters["total"] == 1
    assert "this one is broken" in letters["messages"][0]["errorMessage"]
    assert letters["messages"][0]["data"] == {"job": 7}
    assert pop(broker, queue) == []


def test_each_continues_after_a_failure(broker, queue):
    """Acks after a failed one are rejected, because its lease has ended.  Messages without an ack are delivered again."""
    create(broker, queue)
    push(broker, queue, list(range(5)))
    seen = []

    def handle(messages):
        seen.append(messages[0]["data"])
        if messages[0]["data"] == 2 and seen.count(2) == 1:
            raise RuntimeError("once")
    consume(broker, queue, handle, batch=5, each=True)
    assert seen == [0, 1, 2, 3, 4, 2, 3, 4]


# ---- subscriptions ---------------------------------------------------------------------------

def test_where_a_new_group_begins(broker, queue):
    create(broker, queue)
    push(broker, queue, ["old-%d" % i for i in range(5)])
    between = pop(broker, queue, consumerGroup="peek")[0]["createdAt"]

    def take(group, **how):
        return [m["data"] for m in pop(broker, queue, batch=100, consumerGroup=group, autoAck=True, **how)]
    assert take("new", subscriptionMode="new") == []
    assert take("now", subscriptionFrom="now") == []
    assert len(take("all", subscriptionMode="all")) == 5
    push(broker, queue, ["young"])
    assert take("new", subscriptionMode="new") == ["young"]
    assert take("now", subscriptionFrom="now") == ["young"]
    assert take("all", subscriptionMode="all") == ["young"]
    assert len(take("since", subscriptionFrom=between)) == 6


# ---- transactions ----------------------------------------------------------------------------

def test_ack_and_push_are_one(broker, queue):
    create(broker, queue)
    create(broker, queue + "-b")
    push(broker, queue, [1, 2])
    taken = pop(broker, queue, batch=2)
    operations = [{"type": "ack", "transactionId": m["transactionId"], "partitionId": m["partitionId"],
                   "status": "completed", "consumerGroup": None} for m in taken]
    operations += [{"type": "push", "items": [{"queue": queue + "-b", "partition": "p%d" % i, "payload": i,
                                               "transactionId": str(uuid7())} for i in range(3)]}]
    leases = sorted({m["leaseId"] for m in taken})
    bad = operations + [{"type": "ack", "transactionId": "nobody", "partitionId": taken[0]["partitionId"],
                         "status": "completed"}]
    failed = broker.post("/api/v1/transaction", {"operations": bad, "requiredLeases": leases}).json
    assert failed["success"] is False and failed["error"]
    assert pop(broker, queue + "-b") == []
    done = broker.post("/api/v1/transaction", {"operations": operations, "requiredLeases": leases}).json
    assert done["success"] is True and done["transactionId"]
    assert sorted(m["data"] for m in pop(broker, queue + "-b", batch=10, partitions=10)) == [0, 1, 2]
    assert pop(broker, queue, batch=10) == []


# ---- load ------------------------------------------------------------------------------------

@pytest.mark.parametrize("partitions", [1, 100])
def test_a_hundred_thousand(broker, queue, partitions):
    """Pushed a hundred at a time, taken by ten workers that do not wait: once each, and in order."""
    total = int(100_000 // max(1, TIME_FACTOR))
    create(broker, queue)
    for i in range(0, total, 100):
        push(broker, queue, list(range(i, i + 100)), None if partitions == 1 else "p%d" % (i // 100 % partitions))
    seen, lock = {}, threading.Lock()

    def handle(messages):
        with lock:
            seen.setdefault(messages[0]["partition"], []).extend(m["data"] for m in messages)
    # One partition is one lease: who does not hold it finds nothing, for as long as the others are quick.
    in_parallel([lambda: consume(broker, queue, handle, limit=total // 10, batch=100, idle_ms=30000) for _ in range(10)],
                timeout=300)
    assert sum(map(len, seen.values())) == total
    assert sorted(n for numbers in seen.values() for n in numbers) == list(range(total))
    for numbers in seen.values():
        assert numbers == sorted(numbers)


def test_a_group_that_finds_five_thousand_partitions(broker, queue):
    create(broker, queue)
    for first in range(0, 5000, 500):
        items = [{"queue": queue, "partition": "p%d" % (first + i), "payload": first + i} for i in range(500)]
        assert {r["status"] for r in broker.post("/api/v1/push", {"items": items}).json} == {"queued"}
    seen = []
    while True:
        messages = pop(broker, queue, batch=1000, partitions=1000, consumerGroup="late", subscriptionMode="all", autoAck=True)
        if not messages:
            break
        seen.extend(m["data"] for m in messages)
    assert sorted(seen) == list(range(5000))


# ---- SQL -------------------------------------------------------------------------------------

def test_queues_are_deleted_by_sql_and_used_again(broker, queue, sql):
    create(broker, queue)
    push(broker, queue, [1], ids=["a"])
    sql("delete from queen.queues where name like %s", queue + "%")
    assert pop(broker, queue) == []
    assert push(broker, queue, [2], ids=["a"])[0]["status"] == "queued"
    assert [m["data"] for m in pop(broker, queue)] == [2]
