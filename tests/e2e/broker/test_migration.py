"""/api/v1/migration: http-api section 17, with a second PostgreSQL."""
import os
import uuid

import pytest

import harness
from harness import wait_until

M = "/api/v1/migration/"
TABLES = ["queues", "partitions", "messages", "partition_consumers", "consumer_groups_metadata", "messages_consumed",
          "dead_letter_queue", "retention_history", "message_traces", "message_trace_names", "system_state",
          "partition_lookup", "stats", "stats_history", "system_metrics"]


@pytest.fixture(scope="module")
def other():
    """The cluster to copy into; it wants a password."""
    server = harness.Postgres()
    try:
        server.start()
        conn = server.connect()
        conn.cursor().execute("create role mq superuser login password 'geheim-7'")
        conn.close()
        with open(os.path.join(server.data, "pg_hba.conf"), "w") as f:
            f.write("host all mq 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\nlocal all all trust\n")
        conn = server.connect()
        conn.cursor().execute("select pg_reload_conf()")
        conn.close()
        yield server
    finally:
        server.stop()


@pytest.fixture
def target(other):
    return {"host": other.host, "port": str(other.port), "database": other.create_database("m_" + uuid.uuid4().hex[:10]),
            "user": "mq", "password": "geheim-7"}


@pytest.fixture
def source(make_broker, pg, other):
    """A broker on a database of its own."""
    b = make_broker(database=pg.create_database("s_" + uuid.uuid4().hex[:10]),
                    QUEEN_MIGRATION_TARGETS="%s:%d, %s:1" % (other.host, other.port, other.host))
    yield b
    assert "geheim-7" not in b.log_text()


def wait_for(broker, status):
    def probe():
        s = broker.get(M + "status").expect(200).json
        assert s["status"] in ("dumping", "restoring", status), s
        return s if s["status"] == status else None
    return wait_until(probe, 30, "migration is " + status)


def fill(b, queue="q"):
    b.configure(queue, leaseTime=60)
    for p in "abc":
        b.put(queue, [{"p": p, "i": i} for i in range(300)], partition=p)
    (m,) = b.take(queue, "a", consumerGroup="g")
    assert b.ack(m, "dlq", consumerGroup="g", error="boom")["dlq"]
    got = b.take(queue, "a", consumerGroup="g", batch=99)
    b.ack_batch(got, "g")
    name = "test-" + uuid.uuid4().hex[:8]
    q = b.post("/streams/v1/queries", {"name": name, "source_queue": queue, "config_hash": "h"}).expect(200).json["query_id"]
    cycle = {"query_id": q, "partition_id": m["partitionId"], "state_ops": [{"type": "upsert", "key": "k", "value": {"n": 1}}]}
    assert b.post("/streams/v1/cycle", cycle).expect(200).json["success"]
    return q, m["partitionId"]


def wait_counted(broker, **messages):
    """The figures of the only queue."""
    def probe():
        (q,) = broker.get("/api/v1/resources/queues").expect(200).json["queues"]
        return {k: q["messages"][k] for k in messages} == messages
    wait_until(probe, 15, "counted: %s" % messages)
    assert broker.get("/api/v1/resources/overview").expect(200).json["messages"]["pending"] == messages["pending"]


def test_everything_is_copied_and_usable_at_the_target(source, make_broker, target, other):
    query, partition = fill(source)
    assert source.post(M + "start", target).expect(202).json == {"status": "started", "message": "copy running"}
    done = wait_for(source, "complete")
    assert isinstance(done["elapsedSeconds"], float) and "error" not in done
    answer = source.post(M + "validate", target).expect(200).json
    assert answer["success"] is True and [t["table"] for t in answer["tables"]] == TABLES
    counts = {t["table"]: t for t in answer["tables"]}
    for table, n in (("queues", 1), ("partitions", 4), ("messages", 900), ("partition_consumers", 1), ("dead_letter_queue", 1)):
        assert (counts[table]["sourceCount"], counts[table]["targetCount"], counts[table]["match"]) == (n, n, True)

    there = make_broker(PG_HOST=other.host, PG_PORT=other.port, PG_USER="mq", PG_PASSWORD="geheim-7", PG_DB=target["database"],
                        STATS_INTERVAL_MS=500)
    got = there.drain("q", consumerGroup="g")
    assert sorted((m["data"]["p"], m["data"]["i"]) for m in got) == sorted(
        [("a", i) for i in range(100, 300)] + [(p, i) for p in "bc" for i in range(300)])
    there.put("q", ["new"], partition="a")
    wait_counted(there, total=901, pending=1)
    assert [m["data"] for m in there.drain("q", consumerGroup="g")] == ["new"]
    wait_counted(there, total=901, pending=0)
    rows = there.post("/streams/v1/state/get", {"query_id": query, "partition_id": partition}).expect(200).json["rows"]
    assert [(r["key"], r["value"]) for r in rows] == [("k", {"n": 1})]
    answer = source.post(M + "validate", target).expect(200).json
    assert answer["allMatch"] is False

    assert source.post(M + "reset").expect(200).json == {"status": "idle", "message": "ready"}
    assert source.get(M + "status").expect(200).json == {"status": "idle", "currentStep": "", "elapsedSeconds": 0.0}


@pytest.mark.parametrize("more", [["stats", "queues", "nonsense"], []])
def test_a_second_copy_replaces_the_first_and_may_leave_messages_behind(source, make_broker, target, other, more):
    fill(source)
    # Positions start at zero there, so nothing is skipped because it was deleted here.
    gone = source.put("q", ["a message"] * 3, partition="d")[1]
    source.request("DELETE", "/api/v1/messages/%s/%s" % (gone["partition_id"], gone["transaction_id"])).expect(200)
    source.post(M + "start", target).expect(202)
    wait_for(source, "complete")
    source.post(M + "start", {**target, "port": other.port, "schema": "queen",
                              "excludeTableData": ["messages"] + more}).expect(202)
    wait_for(source, "complete")
    counts = {t["table"]: t["targetCount"] for t in source.post(M + "validate", target).expect(200).json["tables"]}
    assert (counts["queues"], counts["partitions"], counts["messages"], counts["dead_letter_queue"]) == (1, 5, 0, 0)
    there = make_broker(PG_HOST=other.host, PG_PORT=other.port, PG_USER="mq", PG_PASSWORD="geheim-7", PG_DB=target["database"],
                        STATS_INTERVAL_MS=500)
    there.put("q", ["new", "newer"], partition="d")
    wait_counted(there, total=2, pending=2)
    assert [m["data"] for m in there.drain("q", consumerGroup="g")] == ["new", "newer"]


def test_a_failed_copy_leaves_the_target_as_it_was(source, target, other):
    fill(source)
    conn = other.connect(database=target["database"])
    with conn.cursor() as cur:
        cur.execute("create schema queen; create table queen.mine as select 7 as x;"
                    "create function public.no() returns event_trigger language plpgsql as"
                    " $$begin if exists (select from pg_event_trigger_ddl_commands() where object_identity like '%%consumers')"
                    " then raise 'not here'; end if; end$$;"
                    "create event trigger no on ddl_command_end when tag in ('CREATE TABLE') execute function public.no()")
    source.post(M + "start", target).expect(202)
    s = wait_for(source, "error")
    assert "not here" in s["error"] and "not here" in s["restoreOutput"]
    with conn.cursor() as cur:
        cur.execute("select x from queen.mine")
        assert cur.fetchall() == [(7,)]
    conn.close()


def test_one_at_a_time(source, pg, target):
    fill(source)
    conn = pg.connect(autocommit=False, database=source.env["PG_DB"])
    conn.cursor().execute("lock table queen.segments in access exclusive mode")
    try:
        source.post(M + "start", target).expect(202)
        assert source.get(M + "status").expect(200).json["status"] == "dumping"
        assert "error" in source.post(M + "start", target).expect(409).json
        assert "error" in source.post(M + "reset", "[]").expect(409).json
    finally:
        conn.close()
    wait_for(source, "complete")


def test_a_server_that_stops_ends_the_copy(source, pg, target):
    conn = pg.connect(autocommit=False, database=source.env["PG_DB"])
    conn.cursor().execute("lock table queen.segments in access exclusive mode")
    try:
        source.post(M + "start", target).expect(202)
        assert source.terminate() == 0
    finally:
        conn.close()


def test_connections_are_tested(source, target):
    answer = source.post(M + "test-connection", target).expect(200).json
    assert answer["success"] is True and answer["message"] and answer["version"].startswith("PostgreSQL 1")
    for wrong in ({"password": "wrong"}, {"database": "nowhere"}, {"port": 1}, {"ssl": True}):
        answer = source.post(M + "test-connection", {**target, **wrong}).expect(200).json
        assert answer["success"] is False and answer["message"] and answer["error"] and "geheim" not in answer["error"]
    refused = source.post(M + "validate", {**target, "password": "wrong"}).expect(500).json
    assert refused["success"] is False and refused["error"]
    tables = source.post(M + "validate", target).expect(200).json["tables"]
    assert {t["targetCount"] for t in tables} == {-1}


@pytest.fixture(scope="module")
def enabled(pg):
    b = harness.Broker({**pg.env(), "SIDECAR_POOL_SIZE": "4", "QUEEN_MIGRATION_TARGETS": "h"})
    harness.living.append(b)
    try:
        yield b.start()
        harness.end(b)
    finally:
        b.dispose()


@pytest.mark.parametrize("path", ["test-connection", "start", "validate"])
@pytest.mark.parametrize("change, field", [
    ({"host": None}, "host"), ({"database": ""}, "database"), ({"user": 3}, "user"), ({"port": "x"}, "port"),
    ({"port": 70000}, "port"), ({"ssl": "yes"}, "ssl"), ({"schema": "public"}, "schema"), ({"excludeTableData": "stats"}, "excludeTableData")])
def test_bad_input_names_the_field(enabled, path, change, field):
    body = {"host": "h", "database": "d", "user": "u", **change}
    assert field in enabled.post(M + path, body).expect(400).json["error"]
    assert "error" in enabled.post(M + path, "").expect(400).json


def test_missing_programs_are_reported(make_broker, target, tmp_path):
    b = make_broker(PATH=str(tmp_path), QUEEN_MIGRATION_TARGETS="%s:%s" % (target["host"], target["port"]))
    assert "postgresql-client" in b.post(M + "start", target).expect(400).json["error"]
