"""The file buffer: pushes answered with `buffered` are stored once, in order, after every kind of failure (semantics 19.2, 19.3)."""
import glob
import os
import subprocess
import tempfile
import threading
import time

import pytest

from harness import BIN, START_TIMEOUT, Background, Postgres, patience, wait_until


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="queen-e2e-buffer-") as path:
        yield path


@pytest.fixture
def database(pg):
    return pg.create_database("buffer_%d" % time.monotonic_ns())


def switch(b, on):
    b.post("/api/v1/system/maintenance", {"enabled": on}).expect(200)


def pending(b):
    return b.get("/api/v1/status/buffers").expect(200).json["pending"]


def files(folder, pattern):
    return sorted(glob.glob(os.path.join(folder, pattern)))


def test_a_broker_killed_with_a_full_buffer_replays_it_at_the_next_start(make_broker, database, folder, queue):
    b = make_broker(database=database, FILE_BUFFER_DIR=folder, FILE_BUFFER_EVENTS_PER_FILE="100")
    switch(b, True)
    for i in range(50):
        r = b.push([{"queue": queue, "partition": str(j % 3), "payload": i * 10 + j} for j in range(10)])
        assert {x["status"] for x in r.expect(201).json} == {"buffered"}
    b.kill()
    tails = files(folder, "*.tmp")
    for path in tails:
        with open(path, "ab") as f:
            f.write(b"\x00\x00\x10\x00half of a record")
    assert len(files(folder, "failover_*.buf*")) >= 5, "rotated"
    c = make_broker(database=database, FILE_BUFFER_DIR=folder)
    assert pending(c) == 500
    assert c.push([{"queue": queue, "partition": "0", "payload": "later"}]).json[0]["status"] == "buffered", "still on"
    switch(c, False)
    assert c.push([{"queue": queue, "partition": "0", "payload": "last"}]).status == 201
    wait_until(lambda: pending(c) == 0, 10, "drained")
    got = c.drain(queue)
    for lane in range(3):
        want = [v for v in range(500) if v % 10 % 3 == lane] + (["later", "last"] if lane == 0 else [])
        assert [m["data"] for m in got if m["partition"] == str(lane)] == want
    wait_until(lambda: not files(folder, "*.buf*"), 5, "files are deleted")


def test_a_kill_in_the_middle_of_the_replay_loses_and_doubles_nothing(make_broker, database, folder, queue):
    b = make_broker(database=database, FILE_BUFFER_DIR=folder, FILE_BUFFER_MAX_BATCH="10")
    switch(b, True)
    for i in range(40):
        b.push([{"queue": queue, "payload": i * 50 + j} for j in range(50)]).expect(201)
    switch(b, False)
    wait_until(lambda: pending(b) < 1900, 10, "under way", 0.001)
    b.kill()
    c = make_broker(database=database, FILE_BUFFER_DIR=folder)
    wait_until(lambda: pending(c) == 0, 10, "drained")
    assert [m["data"] for m in c.drain(queue)] == list(range(2000))


def test_the_size_is_limited_and_rejections_are_explained(make_broker, database, queue):
    b = make_broker(database=database, QUEEN_FILE_BUFFER_MAX_BYTES="1048576")
    switch(b, True)
    big = [{"queue": queue, "payload": "x" * 300000}]
    answers = [b.push(big) for _ in range(5)]
    assert [r.status for r in answers] == [201, 201, 201, 503, 503]
    assert "buffer is full" in answers[3].json["error"] and answers[3].headers["retry-after"]
    switch(b, False)
    wait_until(lambda: pending(b) == 0, 10, "drained")
    switch(b, True)
    wait_until(lambda: b.push(big).status == 201, 10, "room again")


def test_a_full_queue_does_not_hold_up_the_replay_of_others(make_broker, database, folder, queue):
    b = make_broker(database=database, FILE_BUFFER_DIR=folder, FILE_BUFFER_MAX_BATCH="10", FILE_BUFFER_EVENTS_PER_FILE="50")
    full, other = queue + "-full", queue + "-other"
    b.configure(full, maxSize=5)
    b.put(full, list(range(5)))
    switch(b, True)
    for i in range(100):
        b.push([{"queue": full, "partition": str(i % 2), "payload": 5 + i}]).expect(201)
        b.push([{"queue": other, "partition": str(i % 2), "payload": i}]).expect(201)
    switch(b, False)
    wait_until(lambda: pending(b) == 100, 20, "the records of the other queue are stored")
    got = b.drain(other)
    for p in "01":
        assert [m["data"] for m in got if m["partition"] == p] == list(range(int(p), 100, 2))
    b.kill()  # the records that were held back are still on disk
    b = make_broker(database=database, FILE_BUFFER_DIR=folder, FILE_BUFFER_MAX_BATCH="10")
    b.put(other, ["later"])
    assert [m["data"] for m in b.drain(other)] == ["later"]
    got = []

    def take_more():
        got.extend(b.drain(full))
        return len(got) >= 105
    wait_until(take_more, 120, "as the queue gets room, its records follow")
    assert len(got) == 105
    for p in "01":
        assert [m["data"] for m in got if m["partition"] == p] == [5 + i for i in range(int(p), 100, 2)]
    wait_until(lambda: pending(b) == 0, 20, "drained")
    wait_until(lambda: not files(folder, "*.buf*"), 5, "files are deleted")


def test_a_directory_belongs_to_one_process(make_broker, pg, folder):
    make_broker(FILE_BUFFER_DIR=folder)
    env = {**os.environ, **{k: str(v) for k, v in pg.env().items()}, "FILE_BUFFER_DIR": folder,
           "PORT": str(make_broker(start=False).port)}
    r = subprocess.run([BIN, "serve"], env=env, capture_output=True, text=True, timeout=30)
    said = [line for line in r.stderr.splitlines() if line.startswith("queen serve:")]
    assert r.returncode == 1 and said == ["queen serve: FILE_BUFFER_DIR %s is in use by another process; each needs its own" % folder]


def test_a_directory_that_cannot_be_made_stops_the_start(make_broker, pg):
    env = {**os.environ, **{k: str(v) for k, v in pg.env().items()}, "FILE_BUFFER_DIR": "/proc/nowhere/buffers",
           "PORT": str(make_broker(start=False).port)}
    r = subprocess.run([BIN, "serve"], env=env, capture_output=True, text=True, timeout=30)
    assert r.returncode == 1 and "FILE_BUFFER_DIR /proc/nowhere/buffers cannot be made" in r.stderr


def test_records_rejected_by_the_database_are_set_aside(make_broker, pg, database, folder, queue):
    b = make_broker(database=database, FILE_BUFFER_DIR=folder)
    b.put(queue, ["known"])
    switch(b, True)
    for v in ["good", "bad", "better"]:
        b.push([{"queue": queue, "partition": v, "payload": v}]).expect(201)
    conn = pg.connect(database=database)
    conn.cursor().execute("""
        create function refuse() returns trigger language plpgsql as $$
        begin raise exception 'no such partition here' using errcode = 'QN001'; end $$;
        create trigger refuse before insert on queen.lanes for each row when (new.name = 'bad') execute function refuse()""")
    switch(b, False)
    wait_until(lambda: pending(b) == 0, 15, "drained")
    assert sorted(m["data"] for m in b.drain(queue)) == ["better", "good", "known"]
    (text,) = files(folder, "failed/*.txt")
    with open(text) as f:
        assert f.read().strip()
    stats = b.get("/api/v1/system/maintenance").json["bufferStats"]
    assert stats["failedCount"] == 1 and stats["failedFiles"]["count"] == 1 and stats["failedFiles"]["totalBytes"] > 0
    conn.cursor().execute("drop trigger refuse on queen.lanes")
    conn.close()
    b.terminate()
    (buf,) = files(folder, "failed/*.buf")
    os.rename(buf, os.path.join(folder, os.path.basename(buf)))
    c = make_broker(database=database, FILE_BUFFER_DIR=folder)
    wait_until(lambda: [m["data"] for m in c.drain(queue)] == ["bad"], 10, "tried again by hand")


def test_the_replay_ends_while_many_push_to_the_same_partition(make_broker, database, queue):
    b, stop = make_broker(database=database), threading.Event()

    def produce(who):
        n = 0
        while not stop.is_set():
            b.push([{"queue": queue, "payload": [who, n]}]).expect(201)
            n += 1
        return n

    switch(b, True)
    producers = [Background(lambda who=who: produce(who)) for who in range(8)]
    wait_until(lambda: pending(b) > 300, 20, "a backlog")
    switch(b, False)
    wait_until(lambda: b.push([{"queue": queue, "payload": [8, 0]}]).json[0]["status"] == "queued", 10, "caught up")
    stop.set()
    sent = [p.result() for p in producers]
    wait_until(lambda: pending(b) == 0, 10, "drained")
    got = [m["data"] for m in b.drain(queue)]
    for who, n in enumerate(sent):
        assert [v for w, v in got if w == who] == list(range(n)), "producer %d" % who


# --- outages -----------------------------------------------------------------------------------------------------------

@pytest.fixture
def outage(make_broker):
    server = Postgres().start()
    try:
        yield make_broker(**{k: str(v) for k, v in server.env().items()}), server
    finally:
        server.stop()


def test_pushes_during_an_outage_are_buffered_in_order(outage, queue):
    b, server = outage
    sent, stop = [], threading.Event()

    def produce():
        while not stop.is_set():
            begin = time.monotonic()
            r = b.push([{"queue": queue, "payload": len(sent)}])
            assert r.status == 201, r
            sent.append((r.json[0]["status"], time.monotonic() - begin))
            time.sleep(0.005)

    producer = Background(produce)
    wait_until(lambda: len(sent) > 20, 10, "under way")
    server.halt()
    wait_until(lambda: [s for s, _ in sent].count("buffered") > 50, 10, "buffered")
    server.launch()
    wait_until(lambda: sent[-1][0] == "queued" and pending(b) == 0, START_TIMEOUT, "back")
    stop.set()
    producer.result()
    assert max(t for _, t in sent) < patience(3), "decided within about two seconds"
    assert [m["data"] for m in b.drain(queue)] == list(range(len(sent))), "each once and in order"


def test_a_broker_without_its_database_takes_pushes_from_the_start(make_broker, folder, queue):
    server = Postgres().start()
    try:
        env = {**{k: str(v) for k, v in server.env().items()}, "FILE_BUFFER_DIR": folder}
        server.halt()
        b = make_broker(start=False, **env).spawn()
        wait_until(lambda: _alive(b), START_TIMEOUT, "listening", 0.05)
        assert b.push([{"queue": queue, "payload": 1}], timeout=10).expect(201).json[0]["status"] == "buffered"
        b.kill()
        server.launch()
        c = make_broker(**env)
        wait_until(lambda: [m["data"] for m in c.drain(queue)] == [1], 10, "replayed")
    finally:
        server.stop()


def _alive(b):
    try:
        return b.get("/live", timeout=5).status == 200
    except OSError:
        return False


def test_a_read_only_database_is_an_outage(make_broker, pg, database, queue):
    b = make_broker(database=database)
    b.put(queue, [0])
    conn = pg.connect()
    cur = conn.cursor()
    cur.execute('alter database "%s" set default_transaction_read_only = on' % database)
    cur.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (database,))
    wait_until(lambda: b.push([{"queue": queue, "payload": 1}]).json[0]["status"] == "buffered", 10, "buffered", 0.1)
    cur.execute('alter database "%s" reset default_transaction_read_only' % database)
    cur.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (database,))
    conn.close()
    wait_until(lambda: pending(b) == 0, 20, "drained")
    assert {m["data"] for m in b.drain(queue)} == {0, 1}
