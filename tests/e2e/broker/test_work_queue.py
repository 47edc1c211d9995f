"""Work queues (ordering: none) over HTTP: many consumers on one partition, each message settled on its own."""
import random
import threading
import time

import pytest

from harness import Background, in_parallel, let_arrive, patience, unit_of_time, wait_until


@pytest.fixture
def jobs(broker, queue):
    broker.configure(queue, ordering="none", leaseTime=30)
    return queue


def data(messages):
    return [m["data"] for m in messages]


def test_configure_reports_the_ordering(broker, queue):
    assert broker.configure(queue, ordering="none")["options"]["ordering"] == "none"
    for wrong in ("sideways", 1, True, ["none"]):
        r = broker.post("/api/v1/configure", {"queue": queue, "options": {"ordering": wrong}}).expect(400)
        assert "ordering" in r.json["error"]
    assert "ordering" not in broker.configure(queue)["options"]


def test_consumers_share_one_partition(broker, jobs):
    broker.put(jobs, list(range(10)))
    first, second, third = (broker.take(jobs, batch=n) for n in (1, 3, 2))
    assert [data(m) for m in (first, second, third)] == [[0], [1, 2, 3], [4, 5]]
    # Settled one by one, the newest first.
    for m in reversed(first + second + third):
        assert broker.ack(m)["success"]
    assert data(broker.take(jobs, batch=100)) == [6, 7, 8, 9]


def test_the_ends_of_a_message(broker, jobs):
    broker.configure(jobs, ordering="none", retryLimit=1)
    broker.put(jobs, ["done", "fails", "back", "dead"])
    got = {m["data"]: m for m in broker.take(jobs, batch=4)}
    entries = [broker.ack_entry(got["done"]), broker.ack_entry(got["fails"], "failed", error="no"),
               broker.ack_entry(got["back"], "retry"), broker.ack_entry(got["dead"], "dlq", error="bad")]
    assert all(r["success"] for r in broker.ack_batch(entries))
    again = broker.take(jobs, batch=10)
    assert sorted((m["data"], m["retryCount"]) for m in again) == [("back", 0), ("fails", 1)]
    for m in again:  # the retry limit is reached
        assert broker.ack(m, "failed", error="again")["success"]
    (left,) = broker.take(jobs, batch=10)
    assert left["data"] == "back" and left["retryCount"] == 1
    letters = broker.get("/api/v1/dlq?queue=" + jobs).expect(200).json["messages"]
    assert sorted(l["data"] for l in letters) == ["dead", "fails"]


def test_a_repeated_acknowledgement_changes_nothing(broker, jobs):
    broker.put(jobs, [1, 2])
    one, two = broker.take(jobs, batch=2)
    for _ in range(2):
        assert broker.ack(one)["success"]
    assert broker.ack(two)["success"]
    assert broker.ack(two)["success"]
    assert broker.take(jobs, batch=5) == []


def test_waiting_consumers_are_woken_one_message_each(broker, jobs):
    calls = [Background(lambda: broker.take(jobs, wait=True, timeout=20000)) for _ in range(8)]
    let_arrive(0.5)
    broker.put(jobs, list(range(8)))
    got = [c.result(30) for c in calls]
    assert sorted(d for m in got for d in data(m)) == list(range(8))
    assert [len(m) for m in got] == [1] * 8


def test_a_returned_message_wakes_a_waiting_consumer(broker, jobs):
    broker.put(jobs, ["x"])
    (m,) = broker.take(jobs)
    call = Background(lambda: broker.take(jobs, wait=True, timeout=25000))
    let_arrive()
    assert not call.done
    begin = time.monotonic()
    broker.ack(m, "retry")
    assert data(call.result(30)) == ["x"]
    assert call.ended - begin < patience(3)


def test_an_expired_lease_returns_only_what_is_not_settled(broker, queue):
    broker.configure(queue, ordering="none", leaseTime=1)
    broker.put(queue, [1, 2, 3])
    first = broker.take(queue, batch=3)
    broker.configure(queue, ordering="none", leaseTime=60)  # of later leases
    broker.ack(first[1])
    broker.put(queue, [4])
    # The waiting consumer is woken when the lease ends, and the old messages come first.
    got = broker.take(queue, batch=10, wait=True, timeout=20000)
    if data(got) == [4]:
        got = got + broker.take(queue, batch=10, wait=True, timeout=20000)
    assert sorted(data(got)) == [1, 3, 4]
    r = broker.ack(first[0])
    assert not r["success"] and "lease" in r["error"]


def test_an_extended_lease_keeps_its_messages(broker, queue):
    unit = unit_of_time()
    broker.configure(queue, ordering="none", leaseTime=unit)
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    broker.extend(m["leaseId"], 60).expect(200)
    assert broker.take(queue, wait=True, timeout=2500 * unit) == []
    assert broker.ack(m)["success"]


def test_groups_are_independent(broker, jobs):
    broker.put(jobs, [1, 2])
    a = broker.take(jobs, batch=2, consumerGroup="a")
    b = broker.take(jobs, batch=1, consumerGroup="b")
    assert (data(a), data(b)) == ([1, 2], [1])


def test_scheduled_retries_go_through_the_retry_lane(broker, queue):
    broker.configure(queue, ordering="none", retryPolicy={"mode": "scheduled", "strategy": "fixed", "base": 1, "floor": 1, "maxAttempts": 3})
    broker.put(queue, ["a", "b"])
    a, b = broker.take(queue, batch=2)
    assert broker.ack(a, "failed", error="later")["success"]
    assert broker.ack(b)["success"]
    (again,) = broker.take(queue, wait=True, timeout=25000)
    assert again["data"] == "a" and again["attempt"] == 2
    assert broker.ack(again)["success"]
    assert broker.take(queue) == []


def test_auto_acknowledged_messages_are_gone(broker, jobs):
    broker.put(jobs, [1, 2, 3])
    assert data(broker.take(jobs, batch=2, autoAck=True)) == [1, 2]
    assert data(broker.take(jobs, batch=2, autoAck=True)) == [3]
    assert broker.take(jobs, batch=2, autoAck=True) == []


def test_a_transaction_acknowledges_and_pushes(broker, jobs):
    broker.put(jobs, [1, 2])
    one, two = broker.take(jobs, batch=2)
    r = broker.transaction([
        {"type": "ack", "transactionId": two["transactionId"], "partitionId": two["partitionId"], "status": "completed"},
        {"type": "push", "items": [{"queue": jobs, "payload": 3}]}], required=[two["leaseId"]])
    assert r["success"], r
    assert data(broker.take(jobs, batch=5)) == [3]
    assert broker.ack(one)["success"]


def test_many_consumers_settle_every_message_once(broker, jobs):
    """Random batches, failures and returns from many connections: every message is completed exactly once."""
    broker.configure(jobs, ordering="none", retryLimit=100, leaseTime=60)
    total, lock, done, held = 400, threading.Lock(), {}, set()
    for i in range(0, total, 50):
        broker.put(jobs, list(range(i, i + 50)))

    def consume(seed):
        rnd = random.Random(seed)
        while len(done) < total:
            for m in broker.take(jobs, batch=rnd.choice((1, 3, 10)), wait=True, timeout=500):
                with lock:
                    assert m["data"] not in held, "delivered while another lease holds it"
                    assert m["data"] not in done, "delivered after it was completed"
                    held.add(m["data"])
                status = rnd.choices(("completed", "failed", "retry"), (8, 1, 1))[0]
                with lock:
                    held.discard(m["data"])
                    if status == "completed":
                        done[m["data"]] = done.get(m["data"], 0) + 1
                r = broker.ack(m, status, **({"error": "x"} if status == "failed" else {}))
                assert r["success"], r

    in_parallel([lambda s=s: consume(s) for s in range(12)], timeout=patience(60))
    assert sorted(done) == list(range(total)) and set(done.values()) == {1}
    assert broker.take(jobs, batch=10) == []


def test_a_returned_message_waits_for_its_delay(broker, jobs):
    broker.put(jobs, ["later", "now"])
    later, now = broker.take(jobs, batch=2)
    begin = time.monotonic()
    assert broker.ack(later, "retry", retryAfter=2)["success"]
    assert broker.ack(now, "retry", retryAfter=0)["success"]
    assert data(broker.take(jobs, batch=5)) == ["now"]
    # A waiting consumer is woken when the time has come.
    assert data(broker.take(jobs, batch=5, wait=True, timeout=25000)) == ["later"]
    assert time.monotonic() - begin >= 2


def test_a_delay_must_make_sense(broker, jobs, queue):
    broker.put(jobs, [1])
    (m,) = broker.take(jobs)
    for more in ({"retryAfter": -1}, {"retryAfter": "soon"}, {"retryAfter": 1.5}, {"retryAfter": 604801}):
        r = broker.post("/api/v1/ack", broker.ack_entry(m, "retry", **more)).expect(400)
        assert "retryAfter" in r.json["error"]
    r = broker.post("/api/v1/ack", broker.ack_entry(m, "completed", retryAfter=1)).expect(400)
    assert "retryAfter" in r.json["error"]
    ordered = queue + "-ordered"
    broker.put(ordered, [1])
    (m,) = broker.take(ordered)
    r = broker.ack(m, "retry", retryAfter=5)
    assert not r["success"] and 'ordering "none"' in r["error"]
    assert broker.ack(m)["success"]


def test_one_message_of_a_lease_is_extended(broker, queue):
    broker.configure(queue, ordering="none", leaseTime=2)
    broker.put(queue, ["long", "short"])
    messages = {m["data"]: m for m in broker.take(queue, batch=2)}
    lease = messages["long"]["leaseId"]
    path = "/api/v1/lease/%s/extend" % lease
    broker.post(path, {"seconds": 60, "transactionId": messages["long"]["transactionId"]}).expect(200)
    broker.post(path, {"seconds": 60, "transactionId": "no such message"}).expect(404)
    broker.post(path, {"seconds": 60, "transactionId": 7}).expect(400)
    assert data(broker.take(queue, batch=5, wait=True, timeout=25000)) == ["short"]
    assert broker.ack(messages["long"])["success"]
    assert not broker.ack(messages["short"])["success"]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("status", ["completed", "failed", "retry", "dlq"])
def test_an_extended_message_is_settled_in_any_place(broker, jobs, place, status):
    broker.put(jobs, [0, 1, 2])
    messages = broker.take(jobs, batch=3)
    for seconds in (60, 120):
        broker.post("/api/v1/lease/%s/extend" % messages[0]["leaseId"],
                    {"seconds": seconds, "transactionId": messages[place]["transactionId"]}).expect(200)
    r = broker.ack(messages[place], status, **({"error": "x"} if status in ("failed", "dlq") else {}))
    assert r["success"] and not r["leaseReleased"], r
    again = broker.take(jobs, batch=5)
    assert data(again) == ([place] if status in ("failed", "retry") else [])
    assert all(r["success"] for r in broker.ack_batch(again + [m for m in messages if m["data"] != place]))
    assert broker.take(jobs, batch=5) == []


def status_of(broker, m):
    return broker.get("/api/v1/messages/%s/%s" % (m["partitionId"], m["transactionId"])).expect(200).json["status"]


def test_the_status_of_a_message_is_its_own(broker, jobs):
    """A held message is processing, and one settled before an older one is completed."""
    broker.put(jobs, list(range(5)))
    held, done, back, late = broker.take(jobs, batch=4)
    assert broker.ack(done)["success"] and broker.ack(back, "retry")["success"] and broker.ack(late, "retry", retryAfter=600)["success"]
    assert [status_of(broker, m) for m in (held, done, back, late)] == ["processing", "completed", "pending", "pending"]
    listed = broker.get("/api/v1/messages?queue=" + jobs).expect(200).json["messages"]
    assert {m["transactionId"]: m["status"] for m in listed if m["transactionId"] in (held["transactionId"], done["transactionId"])} == \
        {held["transactionId"]: "processing", done["transactionId"]: "completed"}

    def counted():
        totals = broker.get("/api/v1/resources/queues/" + jobs).expect(200).json["totals"]
        return (totals["pending"], totals["processing"]) == (3, 1)

    wait_until(counted, patience(20), "the figures of the queue")


def test_two_brokers_share_one_partition(broker, broker2, jobs):
    broker.put(jobs, list(range(20)))
    got = [m for i in range(10) for b in (broker, broker2) for m in b.take(jobs, wait=True, timeout=20000)]
    assert sorted(data(got)) == list(range(20))
    # Settled through the other broker.
    assert all(r["success"] for r in broker2.ack_batch(got))
    # A message that one broker gives back wakes a consumer of the other.
    broker.put(jobs, ["x"])
    (m,) = broker.take(jobs, wait=True, timeout=20000)
    call = Background(lambda: broker2.take(jobs, wait=True, timeout=25000))
    let_arrive(0.5)
    broker.ack(m, "retry")
    assert data(call.result(40)) == ["x"]


def test_an_open_sql_transaction_stops_only_its_own_partition(broker, jobs, db):
    broker.put(jobs, [1, 2], partition="a")
    broker.put(jobs, [3], partition="b")
    (m,) = broker.take(jobs, "a")
    db.autocommit = False
    try:
        with db.cursor() as cur:
            cur.execute("select queen.pop_unified_batch(%s::jsonb)",
                        ('[{"queue_name": "%s", "partition_name": "a", "batch_size": 1}]' % jobs,))
        assert data(broker.take(jobs, wait=True, timeout=20000)) == [3]
    finally:
        db.rollback()
        db.autocommit = True
    assert data(broker.take(jobs, wait=True, timeout=20000)) == [2]
    assert broker.ack(m)["success"]


def test_leases_survive_a_restart_of_postgresql(frail_pg, make_broker, queue):
    broker = make_broker(server=frail_pg)
    broker.configure(queue, ordering="none", leaseTime=60)
    broker.put(queue, [1, 2, 3])
    one, two = broker.take(queue, batch=2)
    frail_pg.halt()
    frail_pg.launch()

    def acked():
        r = broker.post("/api/v1/ack", broker.ack_entry(two))
        return r.status == 200 and r.json[0]["success"]

    wait_until(acked, patience(30), "an acknowledgement after the restart")
    assert data(broker.take(queue, batch=5, wait=True, timeout=20000)) == [3]
    assert broker.ack(one)["success"]
