"""A PostgreSQL that neither answers nor goes away: its processes are stopped (SIGSTOP), connections stay open."""
import os
import signal
import time

import pytest

from harness import TIME_FACTOR, Background, Postgres, in_parallel, let_arrive, patience, wait_until


class Frozen:
    def __init__(self, server):
        self.pids = [server.process.pid]
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid) as f:
                    if int(f.read().rsplit(")", 1)[1].split()[1]) == server.process.pid:
                        self.pids.append(int(pid))
            except OSError:
                pass  # it has just ended

    def signal(self, which):
        for pid in self.pids:
            try:
                os.kill(pid, which)
            except ProcessLookupError:
                pass

    def __enter__(self):
        self.signal(signal.SIGSTOP)
        return self

    def __exit__(self, *_):
        self.signal(signal.SIGCONT)


@pytest.fixture
def stalled(make_broker):
    server = Postgres().start()
    try:
        yield make_broker(**{k: str(v) for k, v in server.env().items()}), server
    finally:
        server.stop()


def buffered(b, queue, payload, partition="p", within=2.5):
    begin = time.monotonic()
    r = b.push([{"queue": queue, "partition": partition, "payload": payload, "transactionId": "t%s" % payload}])
    assert r.expect(201).json[0]["status"] == "buffered"
    assert time.monotonic() - begin < patience(within)


def test_pushes_go_to_the_file_buffer_within_two_seconds_and_are_stored_once(stalled, queue):
    b, server = stalled
    b.put(queue, [0], partition="p")
    with Frozen(server):
        buffered(b, queue, 1)  # had left for the database already
        for i in range(2, 6):
            buffered(b, queue, i)
        buffered(b, queue, 100, partition="a partition that is not known yet")
        in_parallel([lambda i=i: buffered(b, queue, 200 + i, partition="q%d" % i) for i in range(20)])
        assert b.get("/api/v1/status/buffers").json["pending"] == 26
    wait_until(lambda: b.get("/api/v1/status/buffers").json["pending"] == 0, 10 * max(1, TIME_FACTOR), "replayed")
    b.put(queue, [6], partition="p")
    assert [m["data"] for m in b.take(queue, "p", batch=100)] == [0, 1, 2, 3, 4, 5, 6]
    rest = sorted(m["data"] for m in b.drain(queue))
    assert rest == [100] + list(range(200, 220))


def test_a_push_stored_after_its_timeout_is_delivered_at_once(stalled, queue):
    """The push waits in the socket of a PostgreSQL that is stopped until it is given up; then it is stored all the same."""
    b, server = stalled
    b.put(queue, [0], partition="p")
    assert b.take(queue, "p", autoAck=True)[0]["data"] == 0
    parked = Background(lambda: b.take(queue, "p", wait=True, timeout=30000, autoAck=True))
    let_arrive()
    with Frozen(server):
        buffered(b, queue, 1)
    # Now the push that was given up is stored, and the replay finds it there.
    assert [m["data"] for m in parked.result(patience(10))] == [1]
    wait_until(lambda: b.get("/api/v1/status/buffers").json["pending"] == 0, 10 * max(1, TIME_FACTOR), "replayed")
    assert b.take(queue, "p") == []


def test_a_slow_statement_is_not_a_stall(stalled, queue):
    """Others are answered meanwhile: the pushes stay on their way."""
    b, server = stalled
    b.put(queue, [0], partition="p")
    lock = server.connect(autocommit=False)
    lock.cursor().execute("select from queen.lanes where name = 'p' for update")
    waits = Background(lambda: b.push([{"queue": queue, "partition": "p", "payload": 1}]))
    blocked = lock.cursor()

    def is_blocked():
        blocked.execute("select pg_stat_clear_snapshot()")  # a transaction sees the activity of its first look otherwise
        blocked.execute("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'queen'")
        return blocked.fetchone()[0] > 0
    wait_until(is_blocked, 10, "it is on its way, with nothing else in its batch")
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        assert b.push([{"queue": queue, "partition": "q", "payload": 2}]).json[0]["status"] == "queued"
    assert not waits.done
    lock.commit()
    lock.close()
    assert waits.result().json[0]["status"] == "queued"


def test_everything_is_answered_in_seconds(stalled, queue):
    """No push is in flight that would reveal the stall, and the usual deadline of a call is 35 s."""
    b, server = stalled
    b.put(queue, [0, 1])
    m = b.take(queue)[0]
    refused = [("ack", b.ack_entry(m)), ("configure", {"queue": queue, "options": {"leaseTime": 5}}),
               ("transaction", {"operations": [{"type": "push", "items": [{"queue": queue, "payload": 2}]}]})]

    def refuses(what, body):
        r = b.post("/api/v1/" + what, body, timeout=60).expect(503)
        assert int(r.headers["retry-after"]) >= 1 and r.json["error"]

    def is_buffered():
        r = b.push([{"queue": queue, "payload": 1, "delaySeconds": 60}], timeout=60)
        assert r.expect(201).json[0]["status"] == "buffered"

    def finds_nothing():  # never 5xx: clients would stop consuming
        b.get("/api/v1/pop/queue/%s?consumerGroup=other" % queue, timeout=60).expect(204)
    with Frozen(server):
        begin = time.monotonic()
        in_parallel([lambda w=what, x=body: refuses(w, x) for what, body in refused] + [finds_nothing])
        is_buffered()
        assert time.monotonic() - begin < patience(25)
    wait_until(lambda: b.push([{"queue": queue, "payload": 3}]).json[0]["status"] == "queued", 20, "it answers again")
