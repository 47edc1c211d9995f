"""A SQL session that has pushed and not committed: only requests for that partition wait."""
import json
import time

import pytest

from harness import TIME_FACTOR, Background, in_parallel, wait_until

PROMPT = 2.5 * max(1, TIME_FACTOR)  # far below the lock timeout (10 s), far above what a batch takes


class Holder:
    """A SQL session that pushes and leaves its transaction open."""

    def __init__(self, pg, *items, database=None):
        self.conn = pg.connect(autocommit=False, database=database)
        with self.conn.cursor() as cur:
            cur.execute("select queen.push_messages_v2(%s::jsonb)", [json.dumps([
                {"queue": q, "partition": p, "payload": "from SQL", "transactionId": "sql-" + p} for q, p in items])])

    def commit(self):
        self.conn.commit()

    def rollback(self):
        self.conn.rollback()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.conn.rollback()
        self.conn.close()


def push(b, queue, partition, payload):
    return b.push([{"queue": queue, "partition": partition, "payload": payload}], timeout=60).expect(201).json


def timed(function):
    def run():
        begin = time.monotonic()
        function()
        return time.monotonic() - begin
    return run


def prompt(functions):
    """All of them at once; each is answered long before a lock timeout."""
    slowest = max(in_parallel([timed(f) for f in functions], timeout=90))
    assert slowest < PROMPT, "%.1f s" % slowest


@pytest.fixture
def quiet(make_broker):
    """One worker, so that all requests meet in one batch."""
    return make_broker(NUM_WORKERS="1")


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_strangers_do_not_wait_and_the_partition_keeps_its_order(quiet, pg, queue, end):
    b, other = quiet, queue + "-other"
    for i in range(40):
        push(b, queue, "p%d" % i, "before")
    b.put(other, ["x"] * 3)
    message = b.take(other, batch=1)[0]
    with Holder(pg, (queue, "p0")) as holder:
        waiting = []
        for i in range(5):
            waiting.append(Background(lambda i=i: push(b, queue, "p0", i)))
            time.sleep(0.02)
        prompt([lambda i=i: push(b, queue, "p%d" % i, "free") for i in range(1, 40)])
        # One request for several partitions waits for its held part; others in them do not wait for it.
        both = Background(lambda: b.push([{"queue": queue, "partition": "p%d" % i, "payload": "both"} for i in (1, 0, 2)],
                                         timeout=60).expect(201).json)
        prompt([lambda i=i: push(b, queue, "p%d" % i, "free") for i in range(1, 20)] +
               [lambda i=i: push(b, queue + "-new-%d" % i, "p", 1) for i in range(10)] +
               [lambda i=i: push(b, queue, "new-%d" % i, 1) for i in range(9)] +
               [lambda: b.take(queue, "p7", batch=10), lambda: b.ack(message)])
        assert not any(w.done for w in waiting) and not both.done
        getattr(holder, end)()
        for w in waiting:
            assert w.result(PROMPT)[0]["status"] == "queued"
        assert [x["status"] for x in both.result(PROMPT)] == ["queued"] * 3
    want = ["before"] + (["from SQL"] if end == "commit" else []) + [0, 1, 2, 3, 4, "both"]
    assert [m["data"] for m in b.take(queue, "p0", batch=50)] == want
    assert [m["data"] for m in b.take(queue, "p1", batch=50)] == ["before", "free", "both", "free"]


def test_a_name_that_is_being_created_elsewhere_waits_alone(quiet, pg, queue):
    b = quiet
    push(b, queue, "known", 0)
    with Holder(pg, (queue, "made by SQL"), (queue + "-sql", "p")) as holder:
        waiting = [Background(lambda: push(b, queue, "made by SQL", 1)), Background(lambda: push(b, queue + "-sql", "p", 1))]
        prompt([lambda i=i: push(b, queue, "new-%d" % i, 1) for i in range(20)] +
               [lambda i=i: push(b, queue + "-new-%d" % i, "p", 1) for i in range(20)])
        prompt([lambda i=i: push(b, queue, "newer-%d" % i, 1) for i in range(20)])
        assert not any(w.done for w in waiting)
        holder.commit()
        for w in waiting:
            assert w.result(PROMPT)[0]["status"] == "queued"
    assert [m["data"] for m in b.take(queue, "made by SQL", batch=10)] == ["from SQL", 1]
    assert [m["data"] for m in b.take(queue + "-sql", "p", batch=10)] == ["from SQL", 1]


def test_transactions_cycles_and_delayed_pushes_elsewhere_do_not_wait(quiet, pg, queue):
    b = quiet
    for i in range(12):
        push(b, queue, "p%d" % i, "before")

    def transaction(i):
        r = b.transaction([{"type": "push", "items": [{"queue": queue, "partition": "p%d" % i, "payload": "t"}]}])
        assert r["success"], r

    def delayed(i):
        b.push([{"queue": queue, "partition": "p%d" % i, "payload": "d", "delaySeconds": 3600}], timeout=60).expect(201)

    with Holder(pg, (queue, "p0")) as holder:
        waiting = [Background(lambda: transaction(0)) for _ in range(10)] + [Background(lambda: delayed(0)) for _ in range(3)]
        prompt([lambda i=i: transaction(i) for i in range(1, 12)] + [lambda i=i: delayed(i) for i in range(1, 12)])
        prompt([lambda i=i: transaction(i) for i in range(1, 12)] + [lambda i=i: delayed(i) for i in range(1, 12)])
        assert not any(w.done for w in waiting)
        holder.commit()
        for w in waiting:
            w.result(PROMPT)


def test_a_quiet_broker_does_not_take_a_lock_for_a_dead_database(quiet, pg, queue):
    b = quiet
    push(b, queue, "p", 0)
    with Holder(pg, (queue, "p")) as holder:
        waiting = Background(lambda: push(b, queue, "p", 1))
        time.sleep(4)
        assert not waiting.done
        holder.commit()
        assert waiting.result(PROMPT)[0]["status"] == "queued"
    assert "pg.stalled" not in b.log_text()


def test_a_prepared_transaction_that_is_never_ended(quiet, pg, queue):
    b = quiet
    push(b, queue, "p", 0)
    with Holder(pg, (queue, "p"), (queue, "made by SQL")) as holder:
        with holder.conn.cursor() as cur:
            cur.execute("prepare transaction %s", [queue])
    try:
        waiting = [Background(lambda: push(b, queue, "p", 1)), Background(lambda: push(b, queue, "made by SQL", 1))]
        prompt([lambda i=i: push(b, queue, "q%d" % i, 0) for i in range(10)])
        assert not any(w.done for w in waiting)
    finally:
        conn = pg.connect()
        conn.cursor().execute("rollback prepared %s", [queue])
        conn.close()
    for w in waiting:
        assert w.result(PROMPT)[0]["status"] == "queued"
    assert [m["data"] for m in b.take(queue, "p", batch=10)] == [0, 1]


@pytest.mark.parametrize("killed", [False, True])
def test_the_replay_of_the_file_buffer_passes_a_locked_partition(make_broker, pg, queue, tmp_path, killed):
    database = pg.create_database("locked_" + queue)
    settings = {"database": database, "FILE_BUFFER_DIR": str(tmp_path), "FILE_BUFFER_MAX_BATCH": "10",
                "FILE_BUFFER_EVENTS_PER_FILE": "20", "NUM_WORKERS": "1"}
    b = make_broker(**settings)
    b.put(queue, ["before"], partition="p0")
    b.post("/api/v1/system/maintenance", {"enabled": True}).expect(200)
    for i in range(50):
        r = b.push([{"queue": queue, "partition": "p%d" % k, "payload": i} for k in range(4)])
        assert {x["status"] for x in r.expect(201).json} == {"buffered"}

    def pending():
        return b.get("/api/v1/status/buffers").expect(200).json["pending"]
    with Holder(pg, (queue, "p0"), database=database) as holder:
        b.post("/api/v1/system/maintenance", {"enabled": False}).expect(200)
        wait_until(lambda: pending() == 50, 20 * max(1, TIME_FACTOR), "all but those of p0 are stored")
        for k in range(1, 4):
            assert push(b, queue, "p%d" % k, "after")[0]["status"] == "queued"
            assert [m["data"] for m in b.take(queue, "p%d" % k, batch=100, autoAck=True)] == list(range(50)) + ["after"]
        if killed:
            b.kill()
            b = make_broker(**settings)
        holder.commit()
    wait_until(lambda: pending() == 0, 20 * max(1, TIME_FACTOR), "replayed")
    assert [m["data"] for m in b.take(queue, "p0", batch=100)] == ["before", "from SQL"] + list(range(50))
    assert b.take(queue, "p1", batch=100) == []
    wait_until(lambda: not list(tmp_path.glob("failover_*")), 10 * max(1, TIME_FACTOR), "files are deleted")


def test_a_transaction_over_a_held_partition_stores_nothing_until_it_stores_all(quiet, pg, queue):
    b = quiet
    b.configure(queue, maxSize=1000)
    for i in range(3):
        push(b, queue, "p%d" % i, "before")
    push(b, queue + "-b", "p", "before")
    with Holder(pg, (queue + "-b", "p")) as holder:
        whole = Background(lambda: b.push([{"queue": queue, "partition": "p1", "payload": "whole"},
                                           {"queue": queue + "-b", "partition": "p", "payload": "whole"}],
                                          timeout=60).expect(201).json)
        time.sleep(0.3)
        prompt([lambda i=i: push(b, queue, "p%d" % i, "free") for i in range(3)])
        assert not whole.done
        assert "whole" not in [m["data"] for m in b.take(queue, "p1", batch=10)]
        holder.commit()
        assert [x["status"] for x in whole.result(PROMPT)] == ["queued"] * 2


def test_sql_pushes_to_new_partitions_of_a_limited_queue_do_not_deadlock(broker, pg, queue):
    broker.configure(queue, maxSize=100000)

    def session(n):
        def run():
            conn = pg.connect()
            with conn.cursor() as cur:
                for i in range(15):
                    cur.execute("select queen.push_messages_v2(%s::jsonb)", [json.dumps(
                        [{"queue": queue, "partition": "s%d-%d-%d" % (n, i, k), "payload": i} for k in range(2)])])
            conn.close()
        return run
    in_parallel([session(n) for n in range(4)])


def test_acknowledgements_elsewhere_do_not_wait_for_a_consumer_that_is_locked(quiet, pg, queue):
    """As by a SQL session that has acknowledged and not committed."""
    b = quiet
    taken = {}
    for i in range(10):
        b.put(queue, [1, 2], partition="p%d" % i)
        taken[i] = b.take(queue, "p%d" % i, batch=2)
    conn = pg.connect(autocommit=False)
    try:
        with conn.cursor() as cur:
            cur.execute("select from queen.consumers c join queen.lanes l on l.num = c.lane join queen.queues q on q.id = l.queue_id"
                        " where q.name = %s and l.name = 'p0' for no key update of c", [queue])
        waiting = [Background(lambda: b.ack(taken[0][0])), Background(lambda: b.ack_batch([b.ack_entry(m) for m in taken[0]])),
                   Background(lambda: b.extend(taken[0][0]["leaseId"], 60))]
        for _ in range(2):
            prompt([lambda i=i: b.extend(taken[i][0]["leaseId"], 60) for i in range(1, 10)] +
                   [lambda i=i: b.ack(taken[i][0]) for i in range(1, 5)])
        prompt([lambda i=i: b.ack_batch([b.ack_entry(m) for m in taken[i]]) for i in range(5, 10)])
        assert not any(w.done for w in waiting)
        conn.rollback()
        for w in waiting:
            w.result(PROMPT)
    finally:
        conn.close()


def test_a_blocked_claim_is_tried_again_ever_more_seldom(quiet, pg, queue):
    b = quiet
    push(b, queue, "p", 0)
    b.take(queue, batch=1, autoAck=True)
    conn = pg.connect(autocommit=False)
    try:
        with conn.cursor() as cur:
            cur.execute("select c.num from queen.consumers c join queen.lanes l on l.num = c.lane join queen.queues q on q.id = l.queue_id"
                        " where q.name = %s for no key update of c", [queue])
        push(b, queue, "p", 1)
        parked = Background(lambda: b.pop(queue, wait="true", timeout=20000, http_timeout=40))

        def claims():
            text = b.get("/metrics/prometheus").expect(200).text
            return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("queen_batch_requests_count") and "pop" in line)
        time.sleep(0.5)
        before = claims()
        time.sleep(2)
        assert claims() - before < 40, "tries in 2 s"
        conn.rollback()
        assert parked.result(PROMPT).json["messages"][0]["data"] == 1
    finally:
        conn.close()
