"""`queen top` in a terminal, in tmux and in a pipe."""
import re
import signal
import subprocess
import time

import pytest

from cli import Cli
from harness import BIN, TIME_FACTOR, wait_until


@pytest.fixture
def cli(broker, tmp_path):
    return Cli(broker, tmp_path)


@pytest.fixture
def alone(make_broker, pg, queue, tmp_path):
    """A server whose queues fit on a screen."""
    return Cli(make_broker(database=pg.create_database("top" + queue.replace("-", ""))), tmp_path)


def test_top_draws_in_place_and_leaves_the_terminal_as_it_was(alone, queue):
    cli = alone
    cli("push", queue, "1", "2", "-q").expect()
    t = cli.terminal("top", "-i", "200ms", columns=120, lines=40).wait_for("q ends").wait_for(queue)
    assert t.text.count("\033[?1049h") == 1 and "\033[?25l" in t.text
    assert "PENDING" in t.text and "push" in t.text and "buffered 0   delayed 0   retrying 0   dead letters 0" in t.text
    cli("push", queue, "-q", input="\n".join(map(str, range(500)))).expect()
    t.wait_for("█").wait_for("502")
    frames = t.text.count("\033[H")
    assert frames > 1
    text = t.type("q").end()
    assert t.code == 0 and text.endswith("\033[?25h\033[?1049l")


def test_top_ends_on_a_signal_and_fits_a_small_terminal(cli, queue):
    cli("push", queue, "1", "-q").expect()
    t = cli.terminal("top", "-i", "200ms", columns=30, lines=6).wait_for("queen top")
    time.sleep(0.5)
    t.read()
    frame = t.text.split("\033[H")[-2]
    lines = re.sub(r"\033\[[0-9?;]*[A-Za-z]", "", frame).split("\r\n")
    assert len(lines) <= 6 and max(map(len, lines)) <= 30, lines
    assert t.type("\x03").end().endswith("\033[?1049l") and t.code == 0


def test_top_in_tmux(alone, queue, tmp_path):
    cli = alone
    cli("push", queue, "1", "2", "3", "-q").expect()
    tmux = ["tmux", "-S", str(tmp_path / "socket")]
    subprocess.run(tmux + ["new-session", "-d", "-x", "120", "-y", "50", "-e", "QUEEN_URL=" + cli.env["QUEEN_URL"],
                           "%s top -i 200ms; sleep 30" % BIN], check=True)
    try:
        def screen():
            return subprocess.run(tmux + ["capture-pane", "-p"], capture_output=True, text=True).stdout
        wait_until(lambda: re.search(r"%s +3 " % queue, screen()), 10 * TIME_FACTOR, "the queue is shown")
        assert screen().splitlines()[0].startswith("queen top")
        subprocess.run(tmux + ["send-keys", "q"], check=True)
        wait_until(lambda: "queen top" not in screen(), 10 * TIME_FACTOR, "the old screen is back")
    finally:
        subprocess.run(tmux + ["kill-server"])


def test_top_in_a_pipe_is_lines(cli, queue):
    rows = cli("top", "-i", "100ms", "-n", 2).expect().rows
    assert len(rows) == 2 and set(rows[0]) == {"pushPerSecond", "popPerSecond", "ackPerSecond", "requestsPerSecond", "cpuPercent",
                                               "pending", "parkedConsumers", "buffered", "delayed", "retrying", "deadLetters",
                                               "failedChores"}
    assert rows[0]["requestsPerSecond"] > 0
    p = cli.start("top", "-i", "10s")
    time.sleep(0.5)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=10 * TIME_FACTOR)
    assert (p.returncode, err) == (0, b"")
    assert "100ms" in cli("top", "-i", "1ms").expect(1).err
    cli("top", QUEEN_URL="http://127.0.0.1:1").expect(2)
