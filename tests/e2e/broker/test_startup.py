"""From the start of `queen serve` to the first request that works: what it reports while its database cannot be used."""
import json
import socket
import struct
import subprocess
import threading
import time

from harness import BIN, Background, wait_until

MIGRATION_LOCK = 737000  # lib/pg/migrate.c


def is_live(broker):
    try:
        return broker.get("/live", timeout=5).status == 200
    except OSError:
        return False


def start_without_waiting(make_broker, **how):
    broker = make_broker(start=False, **how).spawn()
    wait_until(lambda: is_live(broker), 30, "the server to answer")
    return broker


def failures(broker):
    """Lines of the log that report a failed statement."""
    return [line for line in broker.log_text().splitlines() if "sqlstate" in line.lower() or "does not exist" in line]


def wait_for_reason(broker, text):
    wait_until(lambda: text in broker.get("/ready").json.get("reason", ""), 30, "/ready to report %r" % text)
    broker.get("/ready").expect(503)


# --- until the schema is in place -------------------------------------------------------------------------------------

def test_no_statement_runs_before_the_schema_is_in_place(make_broker, pg, queue):
    database = pg.create_database("startup-schema")
    other = pg.connect(database=database)
    other.cursor().execute("select pg_advisory_lock(%s)", [MIGRATION_LOCK])
    broker = start_without_waiting(make_broker, database=database)

    health = broker.get("/health").expect(503).json
    assert health["status"] == "unhealthy" and health["reason"] == "starting: applying schema"
    assert broker.get("/ready").expect(503).json == {"status": "starting", "reason": "starting: applying schema"}
    pushed = Background(lambda: broker.push([{"queue": queue, "payload": 1}], timeout=60))
    for path in ("/api/v1/pop/queue/%s?timeout=200" % queue, "/api/v1/pop?namespace=n&timeout=200"):
        answer = broker.get(path, timeout=60)  # not 204, which would mean that there is no message
        assert answer.status == 503 and answer.headers.get("retry-after"), (path, answer)
        assert answer.json["error"] == "starting: applying schema", path
    broker.get("/api/v1/pop/queue/%s?wait=true&timeout=200" % queue, timeout=60).expect(204)  # its time has passed
    for path in ("/api/v1/resources/queues", "/api/v1/resources/overview", "/api/v1/dlq?queue=x"):
        answer = broker.get(path, timeout=60)
        assert answer.status == 503 and answer.headers.get("retry-after"), (path, answer)
        assert answer.json["error"] == "starting: applying schema", path
    answer = broker.post("/api/v1/configure", {"queue": queue}, timeout=60)
    assert answer.status == 503 and answer.headers.get("retry-after")
    conn = pg.connect()
    with conn.cursor() as cur:
        cur.execute("select count(*) from pg_stat_activity where datname = %s and application_name = 'queen'", [database])
        assert cur.fetchone() == (0,), "only the migration is connected"
    conn.close()
    assert "serve.ready" not in broker.log_text() and "Try it" not in broker.log_text()

    other.close()
    broker.wait_ready(30)
    answer = pushed.result(60)
    assert answer.status in (201, 202), answer
    wait_until(lambda: [m["data"] for m in broker.take(queue, autoAck=True)] == [1], 30, "the message")
    assert broker.get("/health").expect(200).json["status"] == "healthy"
    assert failures(broker) == []
    wait_until(lambda: "serve.ready" in broker.log_text(), 10, "serve.ready")


def test_a_pop_that_arrives_during_the_start_waits_for_its_message(make_broker, pg, queue):
    database = pg.create_database("startup-pop")
    make_broker(database=database).put(queue, [1])
    other = pg.connect(database=database)
    other.cursor().execute("select pg_advisory_lock(%s)", [MIGRATION_LOCK])
    broker = start_without_waiting(make_broker, database=database)
    answers = []
    popped = Background(lambda: wait_until(lambda: answers.append(
        broker.get("/api/v1/pop/queue/%s?autoAck=true" % queue, timeout=60)) or answers[-1].status != 503, 120, "an answer"))
    time.sleep(2)  # longer than a call waits for its connection
    other.close()
    popped.result(180)
    assert [m["data"] for m in answers[-1].expect(200).json["messages"]] == [1]


def test_an_empty_data_directory_starts_without_a_failed_statement(make_broker, queue):
    broker = start_without_waiting(make_broker, embedded=True)
    answer = broker.push([{"queue": queue, "payload": 1}], timeout=60)
    assert answer.status in (201, 202, 503), answer
    broker.wait_ready(60)
    broker.push([{"queue": queue, "payload": 2}]).expect(201)
    assert failures(broker) == []


# --- a database that cannot be used -----------------------------------------------------------------------------------

class PickyProxy:
    """In front of PostgreSQL: refuses connections whose start-up options contain a word."""

    def __init__(self, pg, refused):
        self.pg, self.refused = pg, refused
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.sockets.append(client)
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            while True:
                (size,) = struct.unpack("!I", client.recv(4, socket.MSG_WAITALL))
                rest = client.recv(size - 4, socket.MSG_WAITALL)
                if rest[:4] not in (struct.pack("!I", 80877103), struct.pack("!I", 80877104)):
                    break
                client.sendall(b"N")  # neither TLS nor GSSAPI
            if self.refused and self.refused.encode() in rest:
                text = b"SFATAL\0C42501\0Mpermission denied to set the time limits\0\0"
                client.sendall(b"E" + struct.pack("!I", len(text) + 4) + text)
                client.close()
                return
            server = socket.create_connection((self.pg.host, self.pg.port))
            self.sockets.append(server)
            server.sendall(struct.pack("!I", size) + rest)
            threading.Thread(target=self.copy, args=(server, client), daemon=True).start()
            self.copy(client, server)
        except (OSError, struct.error):
            client.close()

    def copy(self, source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def disconnect(self):
        for s in self.sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended

    def close(self):
        self.listener.close()
        self.disconnect()


def test_a_database_that_refuses_our_settings_is_reported_until_it_works(make_broker, pg, queue):
    """The migration connects without time limits; the proxy refuses only the connections of the workers."""
    database = pg.create_database("startup-picky")
    proxy = PickyProxy(pg, "statement_timeout")
    try:
        broker = start_without_waiting(make_broker, database=database, PG_PORT=proxy.port)
        wait_for_reason(broker, "permission denied to set the time limits")
        health = broker.get("/health").expect(503).json
        assert "permission denied to set the time limits" in health["reason"]
        doctor = subprocess.run([BIN, "doctor", "--json", "--url", "http://127.0.0.1:%d" % broker.port], stdout=subprocess.PIPE, text=True)
        found = {row["check"]: row for row in map(json.loads, doctor.stdout.splitlines())}
        assert doctor.returncode != 0
        assert found["server"]["verdict"] == "bad" and "permission denied to set the time limits" in found["server"]["found"]
        log = broker.log_text()
        assert "database.unavailable" in log and "permission denied to set the time limits" in log
        assert "serve.ready" not in log and "Try it" not in log and "listens on" not in log

        proxy.refused = None
        broker.wait_ready(30)
        broker.push([{"queue": queue, "payload": 1}]).expect(201)
        wait_until(lambda: "serve.ready" in broker.log_text() and "Try it" in broker.log_text(), 10, "the banner")
    finally:
        proxy.close()


def test_a_database_that_does_not_exist_is_reported_until_it_does(make_broker, pg, queue):
    broker = start_without_waiting(make_broker, database="startup-missing")
    wait_for_reason(broker, 'database "startup-missing" does not exist')
    assert "serve.ready" not in broker.log_text()
    pg.create_database("startup-missing")
    broker.wait_ready(30)
    broker.push([{"queue": queue, "payload": 1}]).expect(201)


def test_the_reason_of_a_later_outage_is_reported(make_broker, pg):
    database = pg.create_database("startup-later")
    proxy = PickyProxy(pg, None)
    try:
        broker = make_broker(database=database, PG_PORT=proxy.port)
        proxy.refused = "statement_timeout"
        proxy.disconnect()
        wait_for_reason(broker, "permission denied to set the time limits")
        assert broker.get("/ready").expect(503).json["status"] == "database unreachable"
        proxy.refused = None
        broker.wait_ready(30)
    finally:
        proxy.close()
