"""Brokers behind PgBouncer in transaction mode: detection, settings per transaction, lost and replaced servers."""
import json
import os
import signal
import threading
import time
import uuid

import pytest

import harness
from harness import wait_until
from pooler import Pooler

pytestmark = pytest.mark.one_broker


@pytest.fixture(scope="module")
def pooler(pg):
    p = Pooler(pg).start()
    yield p
    p.stop()


@pytest.fixture
def pooled(pooler, make_broker):
    """pooled(NAME=value, ...): a broker behind the pooler on a fresh database, and a function for SQL past the pooler."""
    conns = []

    def make(**env):
        name = pooler.pg.create_database("pooled_" + uuid.uuid4().hex[:8])
        conns.append(pooler.pg.connect(database=name))

        def sql(text, *args):
            with conns[-1].cursor() as cur:
                cur.execute(text, args or None)
                return cur.fetchall() if cur.description else []
        return make_broker(database=name, **{**pooler.env(name), **env}), sql
    yield make
    for conn in conns:
        conn.close()


def events(broker, name):
    return [line for line in broker.log_text().splitlines() if "event=%s " % name in line]


# --- detection ------------------------------------------------------------------------------------------------------

def test_a_pooler_that_refuses_startup_options_is_detected(pooled, queue):
    broker, _ = pooled()
    broker.put(queue, ["a", "b"])
    assert [m["data"] for m in broker.drain(queue)] == ["a", "b"]
    assert len(events(broker, "pg.pooler_detected")) == 1
    assert events(broker, "pg.dial_failed") == []


def test_a_pooler_that_ignores_startup_options_is_detected(pg, make_broker, queue):
    pooler = Pooler(pg, ignore_startup_parameters="options").start()
    try:
        broker = make_broker(**pooler.env(pg.create_database("ignored_" + uuid.uuid4().hex[:8])))
        broker.put(queue, ["a"])
        assert [m["data"] for m in broker.drain(queue)] == ["a"]
        assert "another process answers" in events(broker, "pg.pooler_detected")[0]
        harness.end(broker)
    finally:
        pooler.stop()


def test_a_direct_connection_is_not_taken_for_a_pooler(pg, make_broker, queue):
    broker = make_broker(PG_PORT=pg.port)
    broker.put(queue, ["a"])
    assert events(broker, "pg.pooler_detected") == []
    wait_until(lambda: events(broker, "sql_wake.listening"), 20, "the broker listens")


def test_transaction_mode_can_be_set(pooled, pooler, queue):
    broker, _ = pooled(PG_POOLER="transaction")
    broker.put(queue, ["a"])
    assert events(broker, "pg.pooler_detected") == []
    assert len(events(broker, "sql_wake.off")) == 1
    assert events(broker, "sql_wake.listening") == []


def test_none_connects_as_to_a_server(pooled, make_broker, pooler):
    """It is refused, as before there was the setting; the migration, which needs no session, is done."""
    broker = make_broker(start=False, PG_POOLER="none", **pooler.env(pooler.pg.create_database("none_" + uuid.uuid4().hex[:8])))
    broker.spawn()
    wait_until(lambda: events(broker, "pg.dial_failed"), 30, "the dial fails")
    assert "unsupported startup parameter" in events(broker, "pg.dial_failed")[0]


def test_a_wrong_value_is_refused(make_broker):
    broker = make_broker(start=False, PG_POOLER="session")
    broker.spawn()
    assert broker.process.wait(20) != 0
    assert "PG_POOLER" in broker.log_text()


# --- settings -------------------------------------------------------------------------------------------------------

def test_defaults_of_the_role_do_not_apply(pooled, pooler, queue):
    """REPEATABLE READ would make a push that waited for a lock fail; the search path could find foreign operators."""
    broker, sql = pooled()
    name = sql("select current_database()")[0][0]
    sql("alter database \"%s\" set default_transaction_isolation = 'repeatable read'" % name)
    sql("alter database \"%s\" set search_path = public" % name)
    sql("alter database \"%s\" set enable_indexscan = off" % name)
    pooler.admin("reconnect")
    broker.put(queue, ["a"], partition="p")
    holder = pooler.pg.connect(autocommit=False, database=name)
    cur = holder.cursor()
    item = {"queue": queue, "partition": "p", "payload": "b", "transactionId": "same"}
    cur.execute("set transaction isolation level read committed")
    cur.execute("select queen.push_messages_v2(%s::jsonb)", (json.dumps([item]),))
    waits = harness.Background(lambda: broker.push([item]))
    harness.await_lock(pooler.pg, waits)
    holder.commit()
    holder.close()
    assert [r["status"] for r in waits.result().expect(201).json] == ["duplicate"]
    assert [m["data"] for m in broker.drain(queue)] == ["a", "b"]


def test_no_setting_stays_with_the_servers(pooled, pooler, queue):
    """Other clients of the pooler get the same server connections."""
    broker, _ = pooled()
    broker.put(queue, list(range(20)))
    broker.drain(queue)
    broker.post("/api/v1/stats/refresh").expect(200)  # with a limit of its own
    other = harness.psycopg2.connect(host=pooler.host, port=pooler.port, user="postgres", dbname=broker.env["PG_DB"])
    other.autocommit = True
    with other.cursor() as cur:
        for _ in range(20):
            cur.execute("select name, setting from pg_settings where source = 'session' and name not in "
                        "('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings')")
            assert cur.fetchall() == []
            cur.execute("select count(*) from pg_prepared_statements")
            assert cur.fetchone() == (0,)
            cur.execute("select count(*) from pg_listening_channels()")
            assert cur.fetchone() == (0,)
    other.close()


def test_statements_have_their_time_limits(pooled, queue):
    broker, sql = pooled(DB_LOCK_TIMEOUT="300")
    broker.put(queue, ["a"], partition="p")
    conn = None
    try:
        name = sql("select current_database()")[0][0]
        conn = harness.psycopg2.connect(host="127.0.0.1", port=int(broker.env["PG_PORT"]), user="postgres", dbname=name)
        conn.cursor().execute("lock table queen.queues in access exclusive mode")
        answer = broker.post("/api/v1/configure", {"queue": queue, "options": {"leaseTime": 30}}, timeout=60)
        assert answer.status in (409, 500, 503), answer
        conn.rollback()
        broker.configure(queue, leaseTime=30)
    finally:
        if conn:
            conn.close()


# --- lost and replaced servers --------------------------------------------------------------------------------------

def push_all(broker, queue, count, stop, done, failures):
    """Pushes numbers in order, each again until it is answered with 201."""
    for n in range(count):
        while not stop.is_set():
            try:
                answer = broker.push([{"queue": queue, "partition": "p", "payload": n, "transactionId": "n-%d" % n}])
            except Exception as e:
                failures.append(repr(e))
                return
            if answer.status == 201 and answer.json[0]["status"] in ("queued", "duplicate", "buffered"):
                done.append(n)
                break
            time.sleep(0.02)


def is_up(server, dead):
    try:
        conn = server.connect()
        with conn.cursor() as cur:
            cur.execute("select count(*) from pg_stat_activity where pid = %s", (dead,))
            gone = cur.fetchone() == (0,)
        conn.close()
        return gone
    except harness.psycopg2.OperationalError:
        return False


def test_kills_and_reconnects_lose_nothing(pooled, pooler, queue):
    broker, sql = pooled()
    broker.configure(queue, leaseTime=30)
    stop, done, failures = threading.Event(), [], []
    threads = [threading.Thread(target=push_all, args=(broker, queue + "-%d" % i, 150, stop, done, failures)) for i in range(3)]
    for t in threads:
        t.start()
    kills = 0
    try:
        while any(t.is_alive() for t in threads):
            kills += sql("select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() "
                         "and pid <> pg_backend_pid()")[0][0]
            pooler.admin("reconnect")
            time.sleep(0.15)
            assert kills < 5000
    finally:
        for t in threads:
            t.join(harness.patience(120))
        stop.set()
    assert failures == []
    assert len(done) == 450 and kills > 0
    for i in range(3):
        got = []

        def all_there():
            got.extend(m["data"] for m in broker.drain(queue + "-%d" % i))
            return len(got) >= 150
        wait_until(all_there, 60, "messages from the file buffer arrive")
        assert sorted(set(got)) == list(range(150)) and len(got) == 150


@pytest.mark.parametrize("crash", ["of the server", "of a backend"])
def test_a_crash_behind_the_pooler_is_noticed(frail_pg, make_broker, queue, crash):
    """The connections of the broker stay. Its cached data about the server before the crash must go."""
    pooler = Pooler(frail_pg).start()
    try:
        name = frail_pg.create_database("crash_" + uuid.uuid4().hex[:8])
        broker = make_broker(**pooler.env(name))
        broker.put(queue, ["a"], partition="p")
        lost = len(events(broker, "pg.connection_lost"))
        if crash == "of the server":
            frail_pg.halt()
            frail_pg.launch()
        else:  # PostgreSQL ends all sessions and recovers; its start time stays
            victim = frail_pg.connect()
            os.kill(victim.info.backend_pid, signal.SIGKILL)
            wait_until(lambda: is_up(frail_pg, victim.info.backend_pid), 30, "PostgreSQL has recovered")
        wait_until(lambda: broker.push([{"queue": queue, "partition": "p", "payload": "b"}]).status == 201, 30, "a push succeeds")
        wait_until(lambda: [m["data"] for m in broker.drain(queue)] == ["a", "b"], 30, "both are there")
        wait_until(lambda: any("another server" in line for line in events(broker, "pg.connection_lost")[lost:]), 20, "the guard failed")
        harness.end(broker)
    finally:
        pooler.stop()


def test_another_server_behind_the_pooler_gets_no_numbers_of_the_first(pg, frail_pg, make_broker, queue):
    """The pooler moves to a server with other lanes under the same numbers, without closing a connection of the broker."""
    name = "moved_" + uuid.uuid4().hex[:8]
    for server in (pg, frail_pg):
        server.create_database(name)
    other = make_broker(server=frail_pg, database=name, PG_PORT=frail_pg.port)
    other.put("someone-elses", ["x"], partition="p")
    pooler = Pooler(pg).start()
    try:
        broker = make_broker(**pooler.env(name))
        broker.put(queue, ["a", "b"], partition="p")
        assert [m["data"] for m in broker.take(queue, "p", batch=1)] == ["a"]
        pooler.move(frail_pg.port)
        pooler.admin("reconnect")
        wait_until(lambda: broker.push([{"queue": queue, "partition": "p", "payload": "c"}]).status == 201, 30, "a push succeeds")
        wait_until(lambda: [m["data"] for m in broker.drain(queue)] == ["c"], 30, "only the message of the second server")
        assert [m["data"] for m in other.drain("someone-elses")] == ["x"]
        harness.end(broker)
    finally:
        pooler.stop()
