"""`queen doctor`: every check fails once and recommends an action."""
import json
import os
import re
import socket
import subprocess
import threading
import time
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cli import Cli
from harness import TIME_FACTOR, wait_until


@pytest.fixture
def cli(broker, tmp_path):
    return Cli(broker, tmp_path)


def checks(result):
    out = {}
    for row in result.rows:
        out.setdefault(row["check"], row)
    return out


def test_a_healthy_server_is_fine(cli):
    seen = checks(cli("doctor").expect())
    for name in ("server", "version", "pool", "file buffer", "maintenance", "clock", "cache", "dead rows", "background work", "retention"):
        assert seen[name]["verdict"] == "fine" and seen[name]["advice"] is None, seen[name]


# --- checks of the server: a fake one with the answers of the test ---------------------------------------------------

VERSION = subprocess.run([Cli.PROGRAM, "version", "--json"], capture_output=True, text=True).stdout


class Patient:
    """Answers the requests of the doctor.  .say(path, field=value) changes an answer."""

    def __init__(self):
        now = datetime.now(timezone.utc).isoformat()
        self.answers = {
            "/health": {"status": "healthy", "database": "connected", "version": json.loads(VERSION)["version"]},
            "/metrics": {"database": {"poolSize": 10, "idleConnections": 9, "waitingRequests": 0}},
            "/api/v1/status/buffers": {"pending": 0, "failed": 0},
            "/api/v1/system/maintenance": {"maintenanceMode": False},
            "/api/v1/system/maintenance/pop": {"popMaintenanceMode": False},
            "/api/v1/analytics/postgres-stats": {"timestamp": now, "databaseCache": {"cacheHitRatio": 99.5}, "deadTuples": []},
            "/metrics/prometheus": {},  # series and value
        }
        answers = self.answers

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                answer = answers[self.path]
                body = ("".join("%s %s\n" % s for s in answer.items()) if self.path == "/metrics/prometheus" else json.dumps(answer)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host, self.port = self.server.server_address
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def say(self, path, **fields):
        self.answers[path].update(fields)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def patient():
    p = Patient()
    yield p
    p.close()


def ago(**kw):
    return (datetime.now(timezone.utc) - timedelta(**kw)).isoformat()


@pytest.mark.parametrize("path, fields, name, verdict, found, advice", [
    ("/health", {"status": "unhealthy", "database": "disconnected"}, "server", "bad", "unhealthy, database disconnected", "log"),
    ("/health", {"version": "0.0.9"}, "version", "warn", "server 0.0.9", "update the older"),
    ("/metrics", {"database": {"poolSize": 10, "idleConnections": 0, "waitingRequests": 7}}, "pool", "warn",
     "10 connections, 0 idle, 7 calls wait", "SIDECAR_POOL_SIZE"),
    ("/api/v1/status/buffers", {"pending": 5}, "file buffer", "warn", "5 messages wait", "PostgreSQL is back"),
    ("/api/v1/status/buffers", {"failed": 2}, "file buffer", "bad", "2 failed", "docs/operations/file-buffer.md"),
    ("/api/v1/system/maintenance", {"maintenanceMode": True}, "maintenance", "warn", "go to the file buffer", "enabled"),
    ("/api/v1/system/maintenance/pop", {"popMaintenanceMode": True}, "maintenance", "warn", "get nothing", "enabled"),
    ("/api/v1/analytics/postgres-stats", {"timestamp": ago(seconds=30)}, "clock", "warn", "s behind", "NTP"),
    ("/api/v1/analytics/postgres-stats", {"timestamp": ago(hours=-1)}, "clock", "warn", "s ahead of", "NTP"),
    ("/api/v1/analytics/postgres-stats", {"databaseCache": {"cacheHitRatio": 61.5}}, "cache", "warn", "61.5 %", "shared_buffers"),
    ("/api/v1/analytics/postgres-stats", {"deadTuples": [{"table": "a", "deadTuples": 3}, {"table": "b", "deadTuples": 2000000}]},
     "dead rows", "warn", "2000000 at most, in b", "--pg"),
    ("/metrics/prometheus", {'queen_queue_oldest_pending_seconds{queue="a b",group="g"}': 901, "queen_queue_oldest_pending_seconds_x": 9e9}, "backlog",
     "warn", '901 s old, queue="a b",group="g"', "queen group lag"),
    ("/metrics/prometheus", {'queen_scheduled_due{scope="cluster"}': 3}, "scheduled", "warn", "3 messages are due", "--pg"),
    ("/metrics/prometheus", {'queen_dlq_depth{scope="cluster"}': 2, 'queen_queue_retrying{queue="a",group="g"}': 7}, "dead letters", "warn",
     "2 stored, 7 messages wait", "queen dlq redrive"),
    ("/metrics/prometheus", {'queen_chores_failed_total{chore="rotation"}': 0, 'queen_chores_failed_total{chore="retention"}': 4}, "background work",
     "warn", '4 failures since the start, chore="retention"', "chores.*"),
    ("/metrics/prometheus", {"queen_stuck_rows": 5}, "retention", "warn", "5 removed rows", "xmin"),
    ("/metrics/prometheus", {'queen_trace_spans_total{result="dropped"}': 6}, "traces", "warn", "6 spans dropped", "collector"),
    ("/metrics/prometheus", {"queen_tls_certificate_expires_timestamp_seconds": int(time.time()) + 86400 * 3}, "certificate", "warn",
     "expires in", "QUEEN_TLS_CERT"),
    ("/metrics/prometheus", {"queen_tls_certificate_expires_timestamp_seconds": int(time.time()) - 86400 * 3}, "certificate", "bad",
     "days ago", "QUEEN_TLS_CERT"),
])
def test_checks_of_the_server(patient, tmp_path, path, fields, name, verdict, found, advice):
    cli = Cli(patient, tmp_path)
    assert {r["verdict"] for r in cli("doctor").expect().rows} == {"fine"}
    patient.say(path, **fields)
    r = cli("doctor").expect(5 if verdict == "bad" else 0)
    ill = [row for row in r.rows if row["verdict"] != "fine"]
    assert [(row["check"], row["verdict"]) for row in ill] == [(name, verdict)]
    assert found in ill[0]["found"] and advice in ill[0]["advice"]


# --- checks of PostgreSQL --------------------------------------------------------------------------------------------

class Examined:
    """doctor --pg on the tests' PostgreSQL; what stands in schema `doctor` hides what stands in pg_catalog."""

    def __init__(self, cli, pg):
        self.cli, self.pg = cli, pg
        self.conn = pg.connect()
        self.sql("create schema doctor")

    def sql(self, text, *args):
        with self.conn.cursor() as cur:
            cur.execute(text, args or None)

    def __call__(self, **settings):
        settings["search_path"] = "doctor,pg_catalog"
        options = " ".join("-c %s=%s" % kv for kv in settings.items())
        return checks(self.cli("doctor", "--pg", "host=%s port=%d user=%s dbname=%s options='%s'" % (
            self.pg.host, self.pg.port, self.pg.user, self.pg.database, options)))

    def close(self):
        self.sql("drop schema doctor cascade")
        self.conn.close()


@pytest.fixture
def examined(cli, pg):
    e = Examined(cli, pg)
    yield e
    e.close()


def test_settings(examined):
    seen = examined()
    for name in ("fsync", "full_page_writes"):  # the tests' PostgreSQL runs without
        assert seen[name]["verdict"] == "bad" and "set it to on" in seen[name]["advice"]
    assert {seen[n]["verdict"] for n in ("postgresql", "synchronous_commit", "autovacuum", "track_activities", "held xmin", "prepared",
                                         "slots", "connections")} == {"fine"}
    assert re.match(r"\d+ of \d+ in use, [1-9]\d* by queen", seen["connections"]["found"])
    seen = examined(synchronous_commit="off", track_activities="off")
    assert seen["synchronous_commit"]["verdict"] == "warn" and "can be lost" in seen["synchronous_commit"]["advice"]
    assert seen["track_activities"]["verdict"] == "warn" and "xmin" in seen["track_activities"]["advice"]
    examined.sql("create function doctor.current_setting(text) returns text language sql as "
                 "$$select case $1 when 'autovacuum' then 'off' else pg_catalog.current_setting($1) end$$")
    seen = examined()
    assert seen["autovacuum"]["verdict"] == "bad" and "for ever" in seen["autovacuum"]["advice"]


@pytest.mark.parametrize("begin, age, verdict", [
    ("set transaction isolation level repeatable read; select 1", "10 minutes", "warn"),  # a snapshot
    ("select txid_current()", "2 hours", "bad")])  # a number, and no snapshot between its statements
def test_a_transaction_that_holds_xmin(examined, pg, begin, age, verdict):
    held = pg.connect(autocommit=False)
    try:
        held.cursor().execute(begin + "; set application_name = 'sleepy'")
        examined.sql("create view doctor.pg_stat_activity as select pid, application_name, state, xact_start - interval '%s' as xact_start,"
                     " query_start, backend_xmin, backend_xid, backend_type from pg_catalog.pg_stat_activity"
                     " where application_name in ('sleepy', 'queen') or pid = pg_backend_pid()" % age)
        found = examined()["held xmin"]
        assert found["verdict"] == verdict and "sleepy, idle in transaction" in found["found"]
        pid = held.get_backend_pid()
        assert "process %d " % pid in found["found"] and "pg_terminate_backend(%d)" % pid in found["advice"]
    finally:
        held.close()


def test_prepared_transactions(examined):
    examined.sql("create view doctor.pg_prepared_xacts as select 'tx-' || n as gid, now() - n * interval '4 minutes' as prepared"
                 " from generate_series(1, 3) n")
    found = examined()["prepared"]
    assert (found["verdict"], found["found"]) == ("bad", "2 forgotten prepared transactions: tx-2") and "ROLLBACK PREPARED" in found["advice"]


def test_a_replication_slot_left_behind(examined):
    examined.sql("select pg_create_physical_replication_slot('forgotten', true)")
    try:
        found = examined()["slots"]
        assert found["verdict"] == "warn" and "forgotten is not in use" in found["found"] and "pg_drop_replication_slot" in found["advice"]
        examined.sql("create function doctor.pg_current_wal_lsn() returns pg_lsn language sql as $$select 'FF/0'::pg_lsn$$")
        found = examined()["slots"]
        assert found["verdict"] == "bad" and re.search(r"keeps [\d.]+ (GB|TB)", found["found"]), found
    finally:
        examined.sql("select pg_drop_replication_slot('forgotten')")


def test_pools_larger_than_max_connections(examined):
    examined.sql("create view doctor.pg_stat_activity as select a.* from pg_catalog.pg_stat_activity a, generate_series(1, 200)")
    found = examined()["connections"]
    assert found["verdict"] == "warn" and "SIDECAR_POOL_SIZE" in found["advice"] and "max_connections" in found["advice"]


def test_the_disk(examined, tmp_path):
    assert re.search(r"\d+ % of the disk are free", examined()["disk"]["found"])
    examined.sql("create view doctor.pg_settings as select name, '%s'::text as setting from pg_catalog.pg_settings" % (tmp_path / "none"))
    found = examined()["disk"]
    assert found["verdict"] == "fine" and "is not on this machine" in found["found"]
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "queen-doctor", str(small)], stderr=subprocess.DEVNULL).returncode != 0:
        return  # only root can make a disk that is full
    try:
        examined.sql("drop view doctor.pg_settings")
        examined.sql("create view doctor.pg_settings as select name, '%s'::text as setting from pg_catalog.pg_settings" % small)
        for kilobytes, verdict in ((950, "warn"), (1020, "bad")):
            with open(small / "ballast", "wb") as f:
                os.posix_fallocate(f.fileno(), 0, kilobytes * 1024)
            found = examined()["disk"]
            assert found["verdict"] == verdict and "retention" in found["advice"], found
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_an_unreachable_or_restricted_postgresql(cli, pg, examined):
    r = cli("doctor", "--pg", "host=127.0.0.1 port=1 user=x").expect(5)
    found = checks(r)["postgresql"]
    assert found["verdict"] == "bad" and "psql with the same arguments" in found["advice"]
    examined.sql("create view doctor.pg_replication_slots as select 1 as nothing")
    found = examined()["slots"]
    assert found["verdict"] == "warn" and "pg_monitor" in found["advice"]


# --- servers that cannot work ----------------------------------------------------------------------------------------

def test_a_server_without_its_database(make_broker, frail_pg, tmp_path):
    """/health answers 503 with the reason. The doctor explains it, and runs the checks that need no database."""
    b = make_broker(server=frail_pg)
    frail_pg.halt()
    try:
        wait_until(lambda: b.get("/health").status == 503, 30 * TIME_FACTOR, "it has noticed")
        r = Cli(b, tmp_path)("doctor").expect(5)
        seen = checks(r)
        assert seen["server"]["verdict"] == "bad" and "database" in seen["server"]["found"], r.out
        assert "PostgreSQL" in seen["server"]["advice"]
        assert seen["version"]["verdict"] == "fine" and "file buffer" in seen, r.out
        assert "see the log of the server" not in r.err, r.err
    finally:
        frail_pg.launch()


def test_an_answer_in_tls_to_a_plain_request(cli):
    """A TLS server that is not ours sends an alert, which is no HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def answer():
            while True:
                try:
                    c, _ = server.accept()
                except OSError:
                    return
                c.recv(65536)
                c.sendall(bytes.fromhex("15030100020246"))
                c.close()
        threading.Thread(target=answer, daemon=True).start()
        r = cli("doctor", "--url", "http://127.0.0.1:%d" % server.getsockname()[1])
        assert r.code != 0 and "https://" in r.err, (r.code, r.err)
