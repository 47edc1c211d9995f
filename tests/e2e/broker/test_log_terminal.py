"""The log on a terminal, and what a start prints."""
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

import harness


def output_on_terminal(env, until):
    """What `queen serve` writes to a terminal, up to and with the line that has `until`."""
    b = harness.Broker(env)
    leader, follower = pty.openpty()
    process = subprocess.Popen([harness.BIN, "serve"], env=b.env, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower)
    os.close(follower)
    text = ""
    deadline = harness.deadline_after(60)
    try:
        while not re.search(until + r".*\n", text):
            assert time.monotonic() < deadline, text
            if select.select([leader], [], [], 0.1)[0]:
                text += os.read(leader, 65536).decode()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(leader)
        b.dispose()
    return text.replace("\r\n", "\n")


def log_lines(text):
    return [line for line in text.splitlines() if re.search(r"(info|warn)", line) and re.match(r"(\x1b\[2m)?\d\d:", line)]


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_lines_are_aligned_and_short(pg, more):
    lines = log_lines(output_on_terminal({**pg.env(), "TERM": "xterm", **more}, "serve.ready"))
    for line in lines:
        assert "\x1b" not in line
        assert re.match(r"\d\d:\d\d:\d\d\.\d{3} (info|warn|error) {1,2}[a-z_.]+ +\S+=", line), line
        event = line.split()[2]
        assert len(event) >= 20 or line.index("=") > 20 and line[19:40].rstrip() == event, line  # fields begin in one column


def test_lines_are_coloured(pg):
    lines = log_lines(output_on_terminal({**pg.env(), "TERM": "xterm", "NO_COLOR": ""}, "serve.ready"))
    ready = [line for line in lines if "serve.ready" in line][0]
    assert "\x1b[32minfo \x1b[0m \x1b[1mserve.ready\x1b[0m" in ready and "\x1b[2mport=\x1b[0m" in ready


def test_one_line_for_the_schema(pg):
    name = "start_%d" % os.getpid()
    pg.create_database(name)
    text = output_on_terminal({**pg.env(name), "NO_COLOR": "1"}, "serve.ready")
    about = [line for line in log_lines(text) if "schema" in line or "migrat" in line]
    assert len(about) == 1 and re.search(r"schema.ready +migrations=[1-9]\d* objects=[1-9]\d* newer=false$", about[0]), about


def test_the_greeting_shows_the_first_steps(pg):
    text = output_on_terminal({**pg.env(), "NO_COLOR": "1"}, "serve.ready")
    for part in ("curl -X POST http://127.0.0.1:", "/api/v1/pop/queue/demo", "queen push demo", "queen tail -f demo", "Dashboard:", "/openapi.json",
                 "queen help"):
        assert part in text, part
