"""A broker in /proc: no secrets, and not more connections than open files allow."""
import glob
import re
import resource
import socket
import subprocess

import harness
from harness import wait_until
from tokens import SECRET, bearer, token

KEY = "ab" * 32


def shown(pid):
    texts = []
    for name in ("environ", "cmdline"):
        with open("/proc/%d/%s" % (pid, name), "rb") as f:
            texts.append(f.read())
    return b"\n".join(texts)


def children(pid):
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(path.split("/")[2]))
    return found


def test_secrets_leave_the_environment_and_the_command_line(make_broker, queue):
    b = make_broker(JWT_ENABLED="true", JWT_SECRET="overridden-by-a-flag", QUEEN_ENCRYPTION_KEY=KEY,
                    args=["--sync-secret=geheim-arg", "--jwt-secret", SECRET])
    text = shown(b.process.pid)
    for secret in (SECRET, KEY, "geheim-arg", "overridden-by-a-flag"):
        assert secret.encode() not in text
    assert b"JWT_ENABLED=true" in text
    # They are still in use.
    b.push([{"queue": queue, "payload": 1}], headers=bearer(token())).expect(201)


def test_children_get_no_secrets(make_broker):
    b = make_broker(embedded=True, JWT_ENABLED="true", JWT_SECRET=SECRET, QUEEN_ENCRYPTION_KEY=KEY)
    pids = wait_until(lambda: children(b.process.pid), harness.START_TIMEOUT, "PostgreSQL runs")
    for pid in [b.process.pid] + pids:
        text = shown(pid)
        assert SECRET.encode() not in text and KEY.encode() not in text
    assert not re.search(re.escape(SECRET), b.log_text())


def test_connections_leave_room_below_the_limit_of_open_files(make_broker):
    b = make_broker(start=False, QUEEN_MAX_CONNECTIONS="100000", NUM_WORKERS="1")
    with open(b.log, "ab") as log:
        b.process = subprocess.Popen([harness.BIN, "serve"], env=b.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300)))
    b.wait_ready(harness.START_TIMEOUT)
    used = int(re.search(r"limits.files.*used=(\d+)", b.log_text()).group(1))
    assert 64 <= used < 300 - 4 - 32
    crowd = [socket.create_connection((b.host, b.port)) for _ in range(used + 20)]
    try:
        for s in crowd:
            s.setblocking(False)
        # The database is reachable although clients fill all places.
        crowd[0].setblocking(True)
        crowd[0].settimeout(30)
        crowd[0].sendall(b"GET /api/v1/resources/queues HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b" 200 " in crowd[0].recv(100)
    finally:
        for s in crowd:
            s.close()
