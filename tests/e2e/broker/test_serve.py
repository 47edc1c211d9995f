"""`queen serve` as a program: embedded PostgreSQL, stopping, crashing, configuration."""
import json
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from harness import BIN, START_TIMEOUT, TIME_FACTOR, Background, Client, free_port, in_parallel, let_arrive, patience, wait_until

embedded = pytest.mark.embedded


def ended(b, timeout=20):
    """The exit code of a broker that should give up by itself."""
    return b.process.wait(timeout * max(1, TIME_FACTOR))


# --- embedded PostgreSQL --------------------------------------------------------------------------------------------

@embedded
def test_one_command_starts_everything_and_prints_the_next_steps(make_broker, queue):
    b = make_broker(embedded=True)
    text = b.log_text()
    assert "curl" in text and str(b.port) in text and b.env["QUEEN_DATA_DIR"] in text
    assert b.get("/health").expect(200).json["database"] == "connected"
    b.put(queue, [{"hello": "world"}])
    (m,) = b.take(queue)
    assert m["data"] == {"hello": "world"}
    assert b.ack(m)["success"] is True
    # the postmaster is a child of the broker, and not root
    postmaster = b.embedded_postmaster()
    with open("/proc/%d/status" % postmaster) as f:
        status = dict(line.split(":", 1) for line in f.read().splitlines() if ":" in line)
    assert int(status["PPid"]) == b.process.pid
    assert status["Uid"].split()[0] != "0"
    with open("/proc/%d/cmdline" % postmaster) as f:
        assert "fsync=off" not in f.read()
    # a second one on the same directory refuses, and the first goes on
    second = make_broker(start=False, embedded=True, data_dir=b.env["QUEEN_DATA_DIR"]).spawn()
    assert ended(second) != 0
    assert b.env["QUEEN_DATA_DIR"] in second.log_text()
    b.put(queue, [2])
    assert b.take(queue, autoAck=True)[0]["data"] == 2
    # SIGTERM ends both
    assert b.terminate() == 0
    wait_until(lambda: not os.path.exists("/proc/%d" % postmaster), 5, "the postmaster to end with the broker")


@embedded
def test_data_and_leases_survive_a_clean_restart(make_broker, queue):
    b = make_broker(embedded=True)
    b.put(queue, [1, 2, 3], partition="p", ids=["a", "b", "c"])
    (held,) = b.take(queue, "p")
    assert b.terminate() == 0
    again = make_broker(embedded=True, data_dir=b.env["QUEEN_DATA_DIR"])
    assert again.take(queue, "p") == [], "the lease still holds"
    assert again.ack(held)["success"] is True
    assert [m["data"] for m in again.take(queue, "p", batch=9)] == [2, 3]
    assert again.push([{"queue": queue, "partition": "p", "transactionId": "a"}]).json[0]["status"] == "duplicate"


class Load:
    """Producers that go on over failures and remember which ids were acknowledged."""

    def __init__(self, broker, queue, producers=4):
        self.broker, self.queue, self.stop = broker, queue, False
        self.accepted, self.lock = [], threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(w,), daemon=True) for w in range(producers)]
        for t in self.threads:
            t.start()

    def run(self, who):
        n = 0
        client = Client(self.broker.host, self.broker.port)
        while not self.stop:
            ids = ["w%d-%d" % (who, n + i) for i in range(5)]
            n += 5
            try:
                r = client.push([{"queue": self.queue, "partition": "p%d" % (who % 3), "payload": x, "transactionId": x}
                                 for x in ids], timeout=10)
                if r.status == 201:
                    with self.lock:
                        self.accepted += [x["transaction_id"] for x in r.json if x["status"] == "queued"]
            except Exception:
                time.sleep(0.02)  # the broker is down: what was not answered is not counted

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join(15)
        return list(self.accepted)


def received(b, queue):
    messages = []

    def take():
        r = b.pop(queue, batch=1000, partitions=10, autoAck=True)
        if r.status == 200:
            messages.extend(r.json["messages"])
        return r.status == 204
    wait_until(take, 20, "the queue to be empty", 0)
    ids = [m["data"] for m in messages]
    assert len(ids) == len(set(ids)), "a message twice"
    return ids


@embedded
def test_a_killed_broker_keeps_every_acknowledged_message(make_broker, queue):
    b = make_broker(embedded=True)
    load = Load(b, queue)
    wait_until(lambda: len(load.accepted) > 100, 20, "some load")
    b.kill()
    accepted = load.end()
    again = make_broker(embedded=True, data_dir=b.env["QUEEN_DATA_DIR"])
    assert set(accepted) <= set(received(again, queue))


@embedded
def test_a_killed_postmaster_comes_back_and_nothing_acknowledged_is_lost(make_broker, queue):
    b = make_broker(embedded=True)
    load = Load(b, queue)
    wait_until(lambda: len(load.accepted) > 100, 20, "some load")
    before = b.embedded_postmaster()
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: b.embedded_postmaster() not in (None, before) and b.is_ready(), START_TIMEOUT, "PostgreSQL back", 0.1)
    count = len(load.accepted)
    wait_until(lambda: len(load.accepted) > count + 50, START_TIMEOUT, "pushes to work again")
    accepted = load.end()
    assert b.alive
    assert set(accepted) <= set(received(b, queue))
    assert b.terminate() == 0


# --- stopping -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_parked_pops_are_released_by_a_stop(make_broker, queue, sig):
    b = make_broker()
    parked = [Background(lambda: b.pop(queue, wait=True, timeout=30000)) for _ in range(10)]
    let_arrive(0.5)
    b.process.send_signal(sig)
    for p in parked:
        r = p.result(10)
        assert r.status == 204 and r.body == b"", "no 5xx to a pop: consumers would stop"
    assert ended(b) == 0


def test_requests_in_flight_are_answered_before_the_end(make_broker, pg, queue):
    b = make_broker()
    b.put(queue, [0], partition="p")
    conn = pg.connect(autocommit=False)
    with conn.cursor() as cur:
        cur.execute("select queen.push_messages_v2(%s::jsonb)", (json.dumps([{"queue": queue, "partition": "p", "payload": 1}]),))
        push = Background(lambda: b.push([{"queue": queue, "partition": "p", "payload": 2}]))
        let_arrive()
        assert not push.done
        b.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert b.alive, "it waits for what is under way"
    conn.commit()
    conn.close()
    assert push.result(10).status == 201
    assert ended(b) == 0


def test_under_load_a_stop_loses_no_acknowledged_message(make_broker, broker, queue):
    b = make_broker()
    load = Load(b, queue)
    wait_until(lambda: len(load.accepted) > 200, 20, "some load")
    assert b.terminate() == 0
    accepted = load.end()
    assert set(accepted) <= set(received(broker, queue))


def test_a_stopping_broker_refuses_new_connections(make_broker):
    b = make_broker()
    assert b.terminate() == 0
    with pytest.raises(OSError):
        Client(b.host, b.port).get("/live", timeout=2)


def test_an_idle_broker_stops_quickly(make_broker):
    b = make_broker()
    clients = [Client(b.host, b.port) for _ in range(20)]
    for c in clients:
        c.get("/live")
    begin = time.monotonic()
    assert b.terminate() == 0
    assert time.monotonic() - begin < patience(5), "idle kept-alive connections must not hold it up"


# --- PostgreSQL of one's own ----------------------------------------------------------------------------------------

def test_several_brokers_may_start_at_once_on_an_empty_database(make_broker, pg, queue):
    name = pg.create_database("fresh" + queue.replace("-", ""))
    brokers = [make_broker(start=False, database=name, SIDECAR_POOL_SIZE=2) for _ in range(3)]
    for b in brokers:
        b.spawn()
    for b in brokers:
        b.wait_ready(START_TIMEOUT)
    brokers[0].put(queue, [1])
    assert brokers[2].take(queue)[0]["data"] == 1


def test_a_restart_finds_the_schema_in_place(make_broker, pg, queue):
    name = pg.create_database("again" + queue.replace("-", ""))
    b = make_broker(database=name)
    b.put(queue, [1])
    b.terminate()
    assert make_broker(database=name).take(queue)[0]["data"] == 1


def test_connections_that_are_cut_are_replaced(make_broker, pg, queue):
    name = pg.create_database("cut" + queue.replace("-", ""))
    b = make_broker(database=name)
    b.put(queue, [0])
    conn = pg.connect()
    with conn.cursor() as cur:
        for _ in range(3):
            cur.execute("select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = %s", (name,))
            wait_until(lambda: b.push([{"queue": queue, "payload": 1}]).status == 201, 10, "a push after the cut", 0.05)
            wait_until(lambda: b.is_ready(), 10, "ready after the cut")
    conn.close()
    assert len(b.drain(queue)) >= 4


def test_without_a_database_health_is_unhealthy(make_broker):
    """The specification requires it to start.  A broker that refuses must at least print the reason."""
    b = make_broker(start=False, PG_PORT=free_port()).spawn()

    def answer():
        if not b.alive:
            return True
        try:
            return Client(b.host, b.port).get("/health", timeout=5)
        except OSError:
            return None
    r = wait_until(answer, 15 * max(1, TIME_FACTOR), "an answer or an end", 0.1)
    if r is True:
        assert b.process.returncode != 0 and b.log_text().strip()
    else:
        assert r.status == 503
        assert (r.json["status"], r.json["database"]) == ("unhealthy", "disconnected")
        assert Client(b.host, b.port).get("/ready", timeout=5).status == 503
        assert Client(b.host, b.port).get("/live", timeout=5).status == 200


# --- configuration --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name,value", [("PORT", "abc"), ("PORT", "70000"), ("NUM_WORKERS", "0"), ("NUM_WORKERS", "many"),
                                        ("SIDECAR_POOL_SIZE", "-1"), ("SIDECAR_MICRO_BATCH_WAIT_MS", "soon"),
                                        ("PG_PORT", "x"), ("LOG_LEVEL", "loud"), ("DEFAULT_BATCH_SIZE", "1.5"),
                                        ("SIDECAR_POP_WAIT_BACKOFF_MULTIPLIER", "three")])
def test_a_bad_value_stops_the_start_with_one_line_that_names_it(make_broker, name, value):
    b = make_broker(start=False, **{name: value}).spawn()
    assert ended(b) != 0
    lines = [x for x in b.log_text().splitlines() if x.strip()]
    assert sum(name in x for x in lines) == 1, lines
    assert len(lines) <= 2, lines


@pytest.mark.parametrize("name,value,said", [
    ("JWT_ENABLED", "true", "JWT_SECRET"), ("QUEEN_ENCRYPTION_KEY", "c2VjcmV0IGtleSBvZiAzMiBieXRlcw==", "64 hexadecimal digits")])
def test_invalid_security_settings_prevent_start_up_without_printing_secrets(make_broker, name, value, said):
    b = make_broker(start=False, **{name: value}).spawn()
    assert ended(b) == 1
    line = b.log_text().splitlines()[-1]
    assert said in line and (name in line or name == "JWT_ENABLED")
    assert value not in b.log_text() or value == "true"


def test_authentication_can_be_switched_off(make_broker):
    b = make_broker(JWT_ENABLED="false", QUEEN_ENCRYPTION_KEY="")
    assert "JWT_ENABLED" not in b.log_text() and "ENCRYPTION" not in b.log_text()


def test_an_unknown_variable_is_logged_with_the_nearest_name(make_broker):
    b = make_broker(QUEEN_DATADIR="/x", SIDECAR_POOLSIZE="4", LOG_LEVEL="info")
    text = b.log_text()
    assert re.search("QUEEN_DATADIR.*QUEEN_DATA_DIR", text) and re.search("SIDECAR_POOLSIZE.*SIDECAR_POOL_SIZE", text)


def test_variables_without_meaning_here_are_listed_in_one_line(make_broker):
    b = make_broker(RESPONSE_BATCH_SIZE="5", DB_THREAD_POOL_SERVICE_THREADS="7", LOG_LEVEL="info")
    lines = [x for x in b.log_text().splitlines() if "RESPONSE_BATCH_SIZE" in x]
    assert len(lines) == 1 and "DB_THREAD_POOL_SERVICE_THREADS" in lines[0]


def test_a_port_in_use_stops_the_start(make_broker, broker):
    b = make_broker(start=False, port=broker.port).spawn()
    assert ended(b) != 0
    assert str(broker.port) in b.log_text()


def test_the_command_line_wins_over_the_environment(make_broker):
    port = free_port()
    b = make_broker(start=False, args=["--port", str(port)]).spawn()
    b.port = port
    b.wait_ready(START_TIMEOUT)
    assert Client("127.0.0.1", port).get("/live").status == 200


@pytest.mark.parametrize("args,code", [(["--help"], 0), (["serve", "--help"], 0), (["dance"], None), (["serve", "--dance"], None)])
def test_help_and_mistakes_on_the_command_line(args, code):
    r = subprocess.run([BIN] + args, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, env={"PATH": "/usr/bin:/bin"})
    text = (r.stdout + r.stderr).decode()
    assert r.returncode == 0 if code == 0 else r.returncode != 0
    assert "serve" in text if code == 0 else "dance" in text


@pytest.mark.parametrize("level,there", [("info", True), ("error", False), ("off", False)])
def test_the_log_level_is_honoured(make_broker, level, there):
    b = make_broker(LOG_LEVEL=level, QUEEN_DATADIR="/x")
    assert ("QUEEN_DATADIR" in b.log_text()) is there


def test_logs_can_be_json(make_broker):
    b = make_broker(LOG_FORMAT="json", QUEEN_DATADIR="/x")
    b.terminate()
    objects = [json.loads(line) for line in b.log_text().splitlines() if line.startswith("{")]
    assert any("QUEEN_DATADIR" in json.dumps(o) for o in objects)
    assert all(isinstance(o, dict) and "level" in o for o in objects)


def test_several_workers_serve_as_well(make_broker, queue):
    b = make_broker(NUM_WORKERS=6, SIDECAR_POOL_SIZE=2)
    in_parallel([lambda i=i: b.put(queue, [i]) for i in range(24)])
    assert len(b.drain(queue)) == 24


@embedded
def test_the_commands_of_the_greeting_work(make_broker):
    """Each line under "Try it", as a user would copy it."""
    b = make_broker(embedded=True)
    text = b.log_text().replace("\\\n", " ")
    commands = [line.strip() for line in text.splitlines() if re.match("  (curl|queen|psql) ", line)]
    assert [c.split()[0] for c in commands] == ["curl", "curl", "queen", "queen", "psql"], text
    env = {**os.environ, "PATH": os.path.dirname(BIN) + ":" + os.environ["PATH"], "TERM": "dumb"}
    outputs = []
    for c in commands:
        c = c.replace("tail -f", "tail") + (" -Atc 'select 6 * 7'" if c.startswith("psql") else "")
        r = subprocess.run(["bash", "-c", c], env=env, capture_output=True, text=True, timeout=60 * TIME_FACTOR)
        assert r.returncode == 0, (c, r.stdout, r.stderr)
        outputs.append(r.stdout)
    assert '"world"' in outputs[1] and "queued" in outputs[2] and '"world"' in outputs[3] and outputs[4] == "42\n", outputs
    assert "/openapi.json" in text
