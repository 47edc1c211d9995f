"""`queen` as a program: its commands, its exit codes, and the signals that test_serve.py leaves out."""
import os
import signal
import subprocess
import time

import pytest

from harness import BIN, TIME_FACTOR, Background, Client, free_port, let_arrive, patience, wait_until


def queen(*args, **env):
    return subprocess.run([BIN, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20,
                          env={"PATH": "/usr/bin:/bin", **env})


@pytest.mark.parametrize("args", [["--version"], ["version"], ["serve", "--version"]])
def test_the_version(args):
    r = queen(*args)
    assert r.returncode == 0 and r.stdout.startswith("queen ") and r.stdout.count("\n") == 1


def test_the_commands_are_listed_and_each_explains_itself():
    listed = queen("help")
    assert listed.returncode == 0
    for command in ("serve", "bench", "version", "help"):
        assert command in listed.stdout
        r = queen("help", command)
        assert r.returncode == 0 and "queen " + command in r.stdout
        assert queen(command, "--help").stdout == r.stdout


@pytest.mark.parametrize("word,meant", [("srve", "serve"), ("bnech", "bench"), ("helpp", "help")])
def test_a_mistyped_command_is_guessed(word, meant):
    r = queen(word)
    assert r.returncode == 1 and r.stdout == ""
    assert '"%s"' % word in r.stderr and '"%s"' % meant in r.stderr and r.stderr.count("\n") == 1


def test_no_command_is_wrong_usage():
    r = queen()
    assert r.returncode == 1 and "serve" in r.stderr


def test_settings_are_shown_with_their_origin_and_without_secrets():
    r = queen("serve", "--port", "7001", "--print-config", PG_PASSWORD="hush-hush", NUM_WORKERS="3")
    assert r.returncode == 0
    shown = {line.split()[0]: line for line in r.stdout.splitlines()}
    assert "7001" in shown["PORT"] and "flag" in shown["PORT"]
    assert " 3 " in shown["NUM_WORKERS"] and "environment" in shown["NUM_WORKERS"]
    assert "default" in shown["PG_PORT"]
    assert "hush-hush" not in r.stdout


@pytest.mark.parametrize("name, more", [("OTEL_EXPORTER_OTLP_ENDPOINT", {}),
                                        ("JWT_JWKS_URL", {"JWT_ENABLED": "true", "JWT_ALGORITHM": "RS256"})])
def test_a_password_in_an_address_is_refused_and_not_shown(name, more):
    settings = {name: "https://user:hush-hush@localhost/x", **more}
    for r in (queen("serve", PORT=str(free_port()), **settings), queen("serve", "--print-config", **settings)):
        assert r.returncode == 1 and name in r.stderr and "must not contain a user or password" in r.stderr
        assert "hush" not in r.stdout + r.stderr
    assert "https://(secret)@localhost/x" in r.stdout


def test_a_password_in_the_address_of_a_broker_is_not_shown():
    r = queen("queue", "ls", "--url", "http://user:hush-hush@localhost:1")
    assert r.returncode != 0 and "must not contain a user or password" in r.stderr and "hush" not in r.stdout + r.stderr


@pytest.mark.parametrize("settings,named", [
    ({"QUEEN_ENCRYPTION_KEY": "short"}, "QUEEN_ENCRYPTION_KEY"),
    ({"JWT_ENABLED": "true", "JWT_ALGORITHM": "HS256"}, "JWT_SECRET"),
    ({"JWT_ENABLED": "true", "JWT_ALGORITHM": "RS256", "JWT_JWKS_URL": "ftp://localhost/keys"}, "JWT_JWKS_URL"),
    ({"JWT_ENABLED": "true", "JWT_SECRET": "0123456789abcdef0123456789abcdef", "JWT_REVOKED_FILE": "/nowhere/revoked"}, "JWT_REVOKED_FILE"),
    ({"QUEEN_ADMIN_KEY_FILE": "/nowhere/key"}, "QUEEN_ADMIN_KEY_FILE"),
    ({"QUEEN_TLS_CERT": "/nowhere/cert.pem"}, "QUEEN_TLS_KEY"),
    ({"QUEEN_TLS_CERT": "/nowhere/cert.pem", "QUEEN_TLS_KEY": "/nowhere/key.pem"}, "/nowhere/cert.pem"),
    ({"QUEEN_TLS_PORT": "7443"}, "QUEEN_TLS_PORT"),
    ({"QUEEN_MIGRATION_TARGETS": "a:b:c"}, "QUEEN_MIGRATION_TARGETS"),
    ({"QUEEN_UDP_PEERS": "host:port"}, "QUEEN_UDP_PEERS"),
    ({"WEBAPP_ROOT": "/nowhere"}, "WEBAPP_ROOT"),
])
def test_printing_the_settings_refuses_what_serve_refuses(settings, named):
    served = queen("serve", PORT=str(free_port()), **settings)
    shown = queen("serve", "--print-config", **settings)
    assert named in served.stderr and served.returncode == 1
    assert shown.returncode == 1 and "PG_PORT" in shown.stdout
    assert shown.stderr.splitlines()[-1] == served.stderr.splitlines()[-1]


def test_printing_the_settings_changes_nothing(tmp_path):
    folder = tmp_path / "data"
    r = queen("serve", "--print-config", "--tls-self-signed", QUEEN_DATA_DIR=str(folder))
    assert r.returncode == 0, r.stderr
    assert not folder.exists()


def test_bad_settings_and_failed_starts_have_different_codes(make_broker, broker):
    assert queen("serve", PORT="abc").returncode == 1
    taken = make_broker(start=False, port=broker.port).spawn()
    assert taken.process.wait(20) == 2


def test_a_database_that_refuses_the_schema_ends_it(make_broker, pg, queue):
    role, name = "weak" + queue.replace("-", ""), pg.create_database("refused" + queue.replace("-", ""))
    conn = pg.connect()
    conn.cursor().execute('create role "%s" login' % role)
    b = make_broker(start=False, database=name, PG_USER=role).spawn()
    assert b.process.wait(patience(20)) == 2
    assert "permission denied" in b.log_text()
    conn.cursor().execute('drop role "%s"' % role)
    conn.close()


def test_usr1_logs_every_worker(make_broker):
    b = make_broker(NUM_WORKERS=3)
    b.process.send_signal(signal.SIGUSR1)
    wait_until(lambda: b.log_text().count("worker.state") == 3, 5 * TIME_FACTOR, "three lines of state")
    assert "phase=serving" in b.log_text() and b.alive


def held_up(pg, b, queue):
    """A push that cannot end while the returned connection is open."""
    b.put(queue, [0], partition="p")
    conn = pg.connect(autocommit=False)
    with conn.cursor() as cur:
        cur.execute("select 1 from queen.lanes l join queen.queues q on q.id = l.queue_id where q.name = %s for update",
                    (queue,))
    push = Background(lambda: b.push([{"queue": queue, "partition": "p", "payload": 1}]))
    let_arrive(0.5)
    assert not push.done
    return conn, push


def test_a_second_signal_ends_it_at_once(make_broker, pg, queue):
    b = make_broker(QUEEN_STOP_TIMEOUT_MS=60000)
    conn, push = held_up(pg, b, queue)
    b.process.send_signal(signal.SIGTERM)
    time.sleep(1)
    assert b.alive, "it waits for the push"
    b.process.send_signal(signal.SIGTERM)
    assert b.process.wait(5) == 128 + signal.SIGTERM
    conn.close()
    with pytest.raises(Exception):
        push.result()


def test_two_signals_in_one_moment_are_one(make_broker, pg, queue):
    b = make_broker()
    conn, push = held_up(pg, b, queue)
    b.process.send_signal(signal.SIGTERM)
    time.sleep(0.05)
    b.process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    conn.rollback()
    conn.close()
    assert push.result().status == 201
    assert b.process.wait(20) == 0


def test_unanswered_requests_are_cut_off_after_the_grace_time(make_broker, pg, queue):
    b = make_broker(QUEEN_STOP_TIMEOUT_MS=500)
    conn, push = held_up(pg, b, queue)
    begin = time.monotonic()
    b.process.send_signal(signal.SIGTERM)
    assert b.process.wait(30) == 0
    assert time.monotonic() - begin < patience(10)
    conn.close()
    with pytest.raises(Exception):
        push.result()
    assert "stop.timeout" in b.log_text()


def test_connections_are_dealt_to_all_workers(make_broker):
    b = make_broker(NUM_WORKERS=3)
    seen = set()
    for _ in range(6):
        client = Client(b.host, b.port)
        seen.add(client.get("/health").expect(200).json["worker_id"])
        client.forget()
    assert seen == {0, 1, 2}


def test_stdout_that_is_closed_does_not_stop_it(pg, make_broker):
    b = make_broker(start=False)
    read, write = os.pipe()
    os.close(read)
    with open(b.log, "ab") as log:
        b.process = subprocess.Popen([BIN, "serve"], env=b.env, stdin=subprocess.DEVNULL, stdout=write, stderr=log)
    os.close(write)
    b.wait_ready(40)
    assert b.terminate() == 0
