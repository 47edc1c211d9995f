"""`queen bench` against a broker in memory that misbehaves on request.

QUEEN_BIN names the program (build/queen otherwise).  No PostgreSQL is needed.
"""
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
QUEEN = os.environ.get("QUEEN_BIN", os.path.join(ROOT, "build", "queen"))
FAKE = os.path.join(ROOT, "tests", "support", "fake_broker.py")

assert os.path.exists(QUEEN), "no program at " + QUEEN

OK, USAGE, FAILED, WRONG = 0, 1, 2, 3


@pytest.fixture
def fake():
    """Starts a broker in memory with the given switches and returns its URL."""
    started = []

    def start(*switches):
        process = subprocess.Popen([sys.executable, FAKE, *switches], stdout=subprocess.PIPE, text=True)
        started.append(process)
        return "http://127.0.0.1:" + process.stdout.readline().split()[1]

    start.started = started
    yield start
    for process in started:
        process.kill()
        process.wait()


def bench(*args):
    """Runs `queen bench` for half a second and returns (exit code, result as JSON or None, stderr)."""
    run = subprocess.run([QUEEN, "bench", "--duration", "0.5", "--warmup", "0.1", "--drain", "1", "--json", "-",
                          *map(str, args)], capture_output=True, text=True, timeout=60)
    lines = run.stdout.splitlines()
    return run.returncode, json.loads(lines[-1]) if lines and lines[-1].startswith("{") else None, run.stderr


def assert_clean(code, result):
    assert code == OK, result
    assert [result[k] for k in ("lost", "repeated", "disordered", "httpErrors", "connErrors")] == [0] * 5


# ---- a broker that behaves ----

def test_push_reports_throughput_latency_and_the_brokers_cpu(fake):
    code, result, _ = bench("-u", fake(), "-w", "push", "-c", 4)
    assert_clean(code, result)
    assert result["pushPerSecond"] > 50 and result["pushPerSecond"] == result["pushRequestsPerSecond"]
    assert 0 < result["pushMs"]["p50"] <= result["pushMs"]["p99"] <= result["pushMs"]["max"]
    assert result["cpuBrokerPerM"] > 0  # found by its port
    assert result["brokerRssKb"] > 1000


def test_a_large_push_uses_all_partitions_and_the_requested_payload_size(fake):
    code, result, _ = bench("-u", fake(), "-w", "e2e", "-c", 2, "-C", 2, "-b", 50, "--spread", "-s", 300, "--random",
                            "-p", 7, "-P", 3)
    assert_clean(code, result)
    assert result["delivered"] == result["sent"] >= 50


@pytest.mark.parametrize("mode", [["--auto-ack"], ["--ack"]])
def test_end_to_end_every_message_arrives(fake, mode):
    code, result, _ = bench("-u", fake(), "-w", "e2e", "-c", 4, "-C", 4, *mode)
    assert_clean(code, result)
    assert result["delivered"] == result["sent"] > 50
    assert result["e2eMs"]["p50"] > 0
    assert ("ackPerSecond" in result) == (mode == ["--ack"])


def test_a_rate_is_kept_and_no_faster(fake):
    code, result, _ = bench("-u", fake(), "-w", "e2e", "-c", 4, "-C", 4, "-r", 100, "-d", 2)
    assert_clean(code, result)
    assert 90 <= result["pushPerSecond"] <= 110


def test_latency_of_an_open_loop_counts_from_the_due_time(fake):
    # One connection and a far too high rate: each push is later than the one before.
    code, result, _ = bench("-u", fake(), "-w", "push", "-c", 1, "-r", 200000, "-W", 0, "-d", 1)
    assert_clean(code, result)
    assert result["pushMs"]["max"] > 500


@pytest.mark.parametrize("workload", ["pop", "popack"])
def test_a_backlog_is_drained_and_the_run_ends_early(fake, workload):
    code, result, _ = bench("-u", fake(), "-w", workload, "-c", 4, "-F", 3000, "-W", 0, "-d", 30)
    assert_clean(code, result)
    assert result["delivered"] == result["sent"] == 3000
    assert result["seconds"] < 20
    assert result["popPerSecond"] > 100


def test_a_backlog_too_large_for_the_time_is_left_over_not_lost(fake):
    code, result, _ = bench("-u", fake(), "-w", "pop", "-c", 1, "-B", 1, "-F", 20000, "-W", 0, "-d", 0.3)
    assert code == OK
    assert result["leftOver"] > 0 and result["lost"] == 0
    assert result["leftOver"] + result["delivered"] == 20000


def test_every_group_gets_everything(fake):
    code, result, _ = bench("-u", fake(), "-w", "fanout", "-g", 3, "-C", 3, "-c", 2, "-r", 200)
    assert_clean(code, result)
    assert result["delivered"] == 3 * result["sent"] > 100


def test_idle_consumers_are_parked(fake):
    code, result, _ = bench("-u", fake(), "-w", "idle", "-Q", 50, "-C", 50)
    assert code == OK
    assert result["parked"] == 50 and result["queues"] == 50


@pytest.mark.parametrize("switch", ["--chunked", "--close"])
def test_it_reads_every_way_of_ending_an_answer(fake, switch):
    code, result, _ = bench("-u", fake(switch), "-w", "e2e", "-c", 2, "-C", 2, "--ack", "-b", 3)
    assert_clean(code, result)
    assert result["delivered"] == result["sent"] > 10


def test_several_threads_count_together(fake):
    code, result, _ = bench("-u", fake(), "-w", "e2e", "-c", 5, "-C", 5, "-t", 3)
    assert_clean(code, result)
    assert result["delivered"] == result["sent"] > 50


def test_a_named_queue_is_not_configured_unasked(fake):
    url = fake()
    for args, configured in (["-q", "orders"], 0), (["-q", "orders", "-L", "30"], 1), ([], 2):
        assert bench("-u", url, "-w", "push", *args)[0] == OK
        with urllib.request.urlopen(url + "/configured") as reply:
            assert json.load(reply) == configured


def test_probe_is_reported_per_message(fake, tmp_path):
    counter = tmp_path / "n"
    counter.write_text("0")
    probe = f"cat {counter}; echo 1000000 > {counter}"
    code, result, _ = bench("-u", fake(), "-w", "push", "-c", 2, "--probe", probe)
    assert code == OK
    assert result["probePerMessage"] == pytest.approx(1e6 / result["sent"], rel=0.01)


def test_the_human_report_names_the_essentials(fake):
    run = subprocess.run([QUEEN, "bench", "-u", fake(), "-w", "e2e", "-d", "0.3", "-W", "0"], capture_output=True,
                         text=True, timeout=60)
    assert run.returncode == OK
    for text in ("messages/s", "p99", "CPU s per 1M messages", "lost 0", "repeated 0", "out of order 0"):
        assert text in run.stdout
    assert run.stderr == ""  # no progress line without a terminal


# ---- a broker that misbehaves must be caught ----

@pytest.mark.parametrize("mode", [["-w", "e2e"], ["-w", "e2e", "--ack"], ["-w", "fanout", "-g", "2"],
                                  ["-w", "pop", "-F", "3000", "-d", "20"]])
def test_lost_messages_are_found(fake, mode):
    code, result, _ = bench("-u", fake("--lose", "40"), *mode, "-c", 4, "-C", 4, "-p", 4, "-W", 0)
    assert code == WRONG
    assert result["lost"] > 0 and result["repeated"] == 0 and result["disordered"] == 0
    groups = result["groups"] or 1
    assert result["lost"] + result["delivered"] == result["sent"] * groups


@pytest.mark.parametrize("mode", [["-w", "e2e"], ["-w", "popack", "-F", "3000"]])
def test_repeated_messages_are_found(fake, mode):
    code, result, _ = bench("-u", fake("--repeat", "40"), *mode, "-c", 4, "-C", 4, "-p", 4, "-W", 0)
    assert code == WRONG
    assert result["repeated"] > 0 and result["lost"] == 0 and result["disordered"] == 0


def test_disorder_inside_one_answer_is_found(fake):
    code, result, _ = bench("-u", fake("--reorder", "40"), "-w", "pop", "-F", 3000, "-c", 4, "-p", 4)
    assert code == WRONG
    assert result["disordered"] > 0 and result["repeated"] == 0


def test_disorder_between_answers_is_found(fake):
    # One consumer, one message an answer: the pop that brings the older message was sent after the younger came.
    code, result, _ = bench("-u", fake("--reorder", "40"), "-w", "popack", "-F", 1000, "-c", 1, "-B", 1, "-p", 4,
                            "-W", 0, "-d", 20)
    assert code == WRONG
    assert result["disordered"] > 0 and result["repeated"] == 0


def test_disorder_on_a_work_queue_is_no_fault(fake):
    code, result, _ = bench("-u", fake("--reorder", "40"), "-w", "popack", "--work-queue", "-F", 1000, "-c", 1, "-B", 1, "-p", 4,
                            "-W", 0, "-d", 20)
    assert_clean(code, result)
    assert result["workQueue"] is True


def test_a_handler_takes_its_time_before_it_acknowledges(fake):
    code, result, _ = bench("-u", fake(), "-w", "popack", "--handle-ms", 200, "-F", 1000, "-c", 2, "-B", 1, "-p", 4, "-W", 0)
    assert_clean(code, result)
    assert 0 < result["popPerSecond"] * 0.5 <= 2 * 4, "2 consumers, half a second"


@pytest.mark.parametrize("options, sentence", [
    (("-w", "e2e", "--handle-ms", 10), "--handle-ms needs --ack"), (("-w", "popack", "--work-queue", "--queue", "q"), "needs --lease")])
def test_options_that_would_have_no_effect_are_refused(options, sentence):
    code, _, err = bench(*options)
    assert code == USAGE and sentence in err


def test_a_failed_push_is_an_error_but_no_loss_and_no_repetition(fake):
    code, result, _ = bench("-u", fake("--fail-push", "20"), "-w", "e2e", "-c", 4, "-C", 4)
    assert code == FAILED
    assert result["httpErrors"] > 0 and result["doubtful"] > 0 and "told to fail" in result["firstError"]
    assert result["lost"] == result["repeated"] == 0


def test_refused_acks_are_counted(fake):
    code, result, _ = bench("-u", fake("--fail-ack", "50"), "-w", "popack", "-F", 1000, "-c", 2, "-W", 0)
    assert result["acksRefused"] > 0
    assert code in (FAILED, WRONG)


def test_a_lost_connection_loses_auto_acknowledged_messages(fake):
    code, result, _ = bench("-u", fake("--drop-pop", "20"), "-w", "e2e", "-c", 2, "-C", 2)
    assert code == WRONG
    assert result["connErrors"] > 0 and result["lost"] > 0


def test_a_server_that_dies_in_the_middle_ends_the_run_with_errors(fake):
    url = fake()

    def kill():
        while True:  # until the run is under way, however long that takes to start
            with urllib.request.urlopen(url + "/configured") as reply:
                if json.load(reply):
                    break
            time.sleep(0.02)
        time.sleep(0.5)
        fake.started[0].kill()
        fake.started[0].wait()  # a zombie would still have its CPU time

    killer = threading.Thread(target=kill)
    killer.start()
    code, result, _ = bench("-u", url, "-w", "e2e", "-d", 2.5, "-W", 0)
    killer.join()
    assert code in (FAILED, WRONG)
    assert result["connErrors"] > 0 and result["repeated"] == result["disordered"] == 0
    assert result["cpuBrokerPerM"] is None  # better no figure than a wrong one


# ---- the command itself ----

def test_an_unreachable_server_is_reported():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        code, result, errors = bench("-u", "http://127.0.0.1:%d" % free.getsockname()[1])
    assert code == FAILED and result is None
    assert "cannot reach http://127.0.0.1" in errors and "refused" in errors


@pytest.mark.parametrize("args, says", [
    (["--workload", "juggle"], "juggle"),
    (["--batch", "0"], "--batch"),
    (["--batch", "many"], "--batch"),
    (["--url", "ftp://localhost"], "--url"),
    (["--url", "http://localhost:99999"], "--url"),
    (["--ack", "--auto-ack"], "must not be combined"),
    (["--no-such-option"], "no-such-option"),
    (["leftover"], "leftover"),
])
def test_wrong_options_are_refused_with_a_reason(args, says):
    code, result, errors = bench(*args)
    assert code == USAGE and result is None
    assert says in errors


def test_the_server_comes_from_the_environment_unless_an_option_names_it(monkeypatch):
    """Other commands use QUEEN_URL; bench put its load on the local server instead."""
    with socket.socket() as named, socket.socket() as other:
        named.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        url, option = ("http://127.0.0.1:%d" % s.getsockname()[1] for s in (named, other))
        monkeypatch.setenv("QUEEN_URL", url)
        assert "cannot reach " + url in bench()[2]
        assert "cannot reach " + option in bench("-u", option)[2]
        monkeypatch.setenv("QUEEN_URL", "ftp://localhost")
        assert "QUEEN_URL must be http://host:port or https://host:port" in bench()[2]


def test_help_names_every_option():
    run = subprocess.run([QUEEN, "bench", "--help"], capture_output=True, text=True, timeout=10)
    assert run.returncode == OK
    for name in ("url", "workload", "connections", "consumers", "batch", "pop-batch", "partitions", "spread",
                 "pop-partitions", "payload", "random", "rate", "duration", "warmup", "groups", "prefill", "ack",
                 "auto-ack", "wait-ms", "queue", "lease", "token", "json", "label", "quiet", "threads", "pid", "pg-pid"):
        assert "--" + name in run.stdout
