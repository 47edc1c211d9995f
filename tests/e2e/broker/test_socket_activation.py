"""Sockets that systemd passes to the broker (LISTEN_FDS)."""
import http.client
import socket
import subprocess
import sys
import tempfile

from harness import BIN, START_TIMEOUT, TIME_FACTOR, Background, free_port

# Becomes the program, with the socket as descriptor 3, as systemd passes it.
PASS = """
import os, sys
fd = int(sys.argv[1])
os.dup2(fd, 3)
os.set_inheritable(3, True)
os.environ["LISTEN_PID"], os.environ["LISTEN_FDS"] = str(os.getpid()), "1"
os.execv(sys.argv[2], sys.argv[2:])
"""


def listening_on(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", port))
    s.listen(100)
    return s


def spawn(b, s):
    with open(b.log, "ab") as log:
        b.process = subprocess.Popen([sys.executable, "-c", PASS, str(s.fileno()), BIN, b.command] + b.args, env=b.env, stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log, cwd=tempfile.gettempdir(), pass_fds=[s.fileno()])


def ask_live(port):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=START_TIMEOUT * max(1, TIME_FACTOR) * 4)
    c.request("GET", "/live")
    status = c.getresponse().status
    c.close()
    return status


def test_clients_wait_while_the_broker_is_away(make_broker):
    b = make_broker(start=False, HOST="127.0.0.1")
    with listening_on(b.port) as s:
        early = Background(lambda: ask_live(b.port))
        spawn(b, s)
        b.wait_ready(START_TIMEOUT)
        assert early.result() == 200
        assert b.terminate() == 0
        between = Background(lambda: ask_live(b.port))
        spawn(b, s)
        b.wait_ready(START_TIMEOUT)
        assert between.result() == 200


def test_a_socket_that_nobody_would_serve_stops_the_start(make_broker):
    b = make_broker(start=False, HOST="127.0.0.1")
    other = free_port()
    with listening_on(other) as s:
        spawn(b, s)
        assert b.process.wait(START_TIMEOUT * max(1, TIME_FACTOR)) != 0
    assert "port %d; HOST and PORT must name the same address" % other in b.log_text()
