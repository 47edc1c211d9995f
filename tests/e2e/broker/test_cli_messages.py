"""`queen push`, `pop`, `ack`, `tail`: arguments, pipes, groups, returned messages."""
import json
import signal
import subprocess
import threading
import time

import pytest

from cli import Cli
from harness import TIME_FACTOR, Client, patience, wait_until


@pytest.fixture
def cli(broker, tmp_path):
    return Cli(broker, tmp_path)


def test_arguments_are_pushed_and_popped(cli, queue):
    pushed = cli("push", queue, '{"n": 1}', "2").expect().rows
    assert [r["status"] for r in pushed] == ["queued", "queued"]
    popped = cli("pop", queue, "-n", 5).expect().rows
    assert [m["data"] for m in popped] == [{"n": 1}, 2]
    assert [m["id"] for m in popped] == [r["messageId"] for r in pushed]
    assert cli("ack", input="\n".join(map(json.dumps, popped))).expect().rows == [
        {"acknowledged": 2, "refused": 0, "retrying": 0, "deadLettered": 0, "nextAttempt": None, "nextAttemptAt": None}]
    assert cli("pop", queue).expect(4).out == ""


def test_text_is_sent_as_strings(cli, queue):
    cli("push", queue, "--text", 'say "hi"', "-q").expect()
    cli("push", queue, "-t", "-q", input="one\ntwo\r\nthree").expect()
    assert cli("pop", queue, "-n", 9, "--ack", "-d").expect().rows == ['say "hi"', "one", "two", "three"]


def test_stdin_may_be_lines_or_pretty_printed(cli, queue):
    cli("push", queue, "-q", input='{"a":1}\n{\n  "b": "}\\"{"\n}[1,\n2] 3 "x"true\nnull').expect()
    assert cli("pop", queue, "-n", 9, "--ack", "-d").expect().rows == [{"a": 1}, {"b": '}"{'}, [1, 2], 3, "x", True, None]


def test_files_are_pushed_in_their_order(cli, queue, tmp_path):
    a, b = tmp_path / "a.ndjson", tmp_path / "b.ndjson"
    a.write_text("1\n2\n")
    b.write_text("3\n4")
    cli("push", queue, "-q", "-f", "%s,%s" % (a, b)).expect()
    assert cli("pop", queue, "-n", 9, "--ack", "-d").expect().rows == [1, 2, 3, 4]
    r = cli("push", queue, "-f", tmp_path / "none").expect(5)
    assert "none" in r.err and r.err.count("\n") == 1


def test_messages_may_be_for_later(cli, broker, queue):
    (r,) = cli("push", queue, '{"call": 7}', "--at", "2031-02-03T04:05:06+01:00", "--correlation-id", "case-7").expect().rows
    assert (r["status"], r["scheduledAt"]) == ("scheduled", "2031-02-03T03:05:06.000Z")
    (w,) = broker.get("/api/v1/scheduled?queue=" + queue).json["scheduled"]
    assert (w["id"], w["correlationId"]) == (r["messageId"], "case-7")
    assert cli("push", queue, "--in", "1h", "-p", "x", "--table", input="1\n2\n").expect().out.strip() == "2 scheduled for " + queue
    assert cli("pop", queue).expect(4).out == ""
    cli("push", queue, "3", "--in", "100ms", "-q").expect()
    assert wait_until(lambda: cli("pop", queue, "-d").rows, 10, "what was for soon") == [3]
    assert "must not be combined" in cli("push", queue, "1", "--in", "1h", "--at", "+1h").expect(1).err
    broker.request("DELETE", "/api/v1/scheduled?queue=" + queue).expect(200)


def test_options_of_push_arrive_with_the_message(cli, broker, queue, group):
    trace, parent = "7d444840-9dc0-11d1-b245-5ffdce74fad2", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    cli("push", queue, "1", "--correlation-id", "c-" + queue, "--event-type", "paid", "--trace-id", trace, "--traceparent", parent,
        "--retry-policy", '{"mode": "scheduled", "maxAttempts": 1}', "-q").expect()
    (m,) = broker.take(queue, consumerGroup=group)
    assert (m["correlationId"], m["traceId"], m["traceparent"]) == ("c-" + queue, trace, parent)
    assert broker.ack(m, "failed")["dlq"] is True, "its own policy has one attempt"
    t = broker.get("/api/v1/messages/timeline?correlationId=c-" + queue).expect(200).json
    assert [(x["eventType"], x["maxAttempts"]) for x in t["messages"]] == [("paid", 1)]
    # A whole message keeps it.
    cli("push", queue + "2", "-e", "-q", input=json.dumps(m)).expect()
    assert broker.take(queue + "2")[0]["correlationId"] == "c-" + queue
    for policy, code in (("{", 1), ('{"maxAttempts": 0}', 3)):
        r = cli("push", queue, "1", "--retry-policy", policy).expect(code)
        assert r.err.count("\n") <= 2 and ("retry policy" in r.err or "maxAttempts" in r.err)


def test_invalid_json_is_reported_with_its_position(cli, queue):
    r = cli("push", queue, "nonsense").expect(1)
    assert "nonsense" in r.err and "--text" in r.err
    r = cli("push", queue, input='{"a":1}\n{"a":}\n').expect(5)
    assert "byte 13" in r.err
    assert cli("pop", queue, "--ack", "-d").expect().rows == [{"a": 1}], "what came before is stored"


def test_a_transaction_id_is_stored_once(cli, queue):
    for status in ("queued", "duplicate"):
        assert cli("push", queue, "1", "--transaction-id", "t-1").expect().rows[0]["status"] == status
    assert cli("push", queue, "1", "2", "--transaction-id", "t-1").expect(1).err.count("\n") == 1


def test_envelopes_keep_partition_and_transaction_id(cli, queue):
    cli("push", queue, "-p", "acct-7", '{"n": 1}', "--transaction-id", "inv-41").expect()
    messages = cli("tail", queue).expect().out
    assert cli("push", queue + "-copy", "--envelope", input=messages).expect().rows[0]["transactionId"] == "inv-41"
    copy = cli("pop", queue + "-copy", "--ack").expect().rows[0]
    assert (copy["partition"], copy["data"]) == ("acct-7", {"n": 1})
    assert cli("push", queue + "-copy", "-e", input=messages).expect().rows[0]["status"] == "duplicate"
    assert "--envelope" in cli("push", queue, "-e", input="{}").expect(5).err


def test_failed_messages_are_retried_or_dead_lettered(cli, queue, broker):
    broker.post("/api/v1/configure", {"queue": queue, "options": {"retryLimit": 3}}).expect(200)
    cli("push", queue, "1", "-q").expect()
    message = cli("pop", queue, "-g", "g").expect().out
    cli("ack", "--status", "failed", "--error", "no stock", input=message).expect()
    message = cli("pop", queue, "-g", "g", "--wait", "10s").expect().rows[0]
    assert message["retryCount"] == 1
    cli("ack", "-s", "dlq", "--error", "gave up", "-g", "g", "--lease", message["leaseId"], message["partitionId"],
        message["transactionId"]).expect()
    dead = cli("dlq", "ls", queue).expect().rows
    assert [(d["errorMessage"], d["consumerGroup"]) for d in dead] == [("gave up", "g")]


def test_a_rejected_acknowledgement_is_reported(cli, queue):
    cli("push", queue, "1", "-q").expect()
    message = cli("pop", queue).expect().rows[0]
    message["leaseId"] = "00000000-0000-4000-8000-000000000000"
    r = cli("ack", input=json.dumps(message)).expect(3)
    assert message["transactionId"] in r.err and (r.rows[0]["acknowledged"], r.rows[0]["refused"]) == (0, 1)
    assert "completed, failed" in cli("ack", "-s", "fine", "a", "b").expect(1).err


def test_pop_waits_for_the_requested_time(cli, queue):
    begin = time.monotonic()
    cli("pop", queue, "--wait", "700ms").expect(4)
    assert 0.5 < time.monotonic() - begin < patience(10)


def test_tail_shows_the_last_and_takes_nothing(cli, queue, broker):
    cli("push", queue, "-q", input="\n".join(map(str, range(30)))).expect()
    assert cli("tail", queue, "-d").expect().rows == list(range(20, 30))
    assert cli("tail", queue, "-d", "-n", 3).expect().rows == [27, 28, 29]
    assert cli("tail", queue, "-d", "--all").expect().rows == list(range(30))
    assert cli("tail", queue, "-d", "--all", "--limit", 7).expect().rows == list(range(7))
    assert [g for g in broker.get("/api/v1/consumer-groups").json if g["queueName"] == queue] == []


def test_tail_follows_until_interrupted_and_leaves_no_group(cli, queue, broker):
    cli("push", queue, "1", "2", "-q").expect()
    p = cli.start("tail", "-f", queue, "-d", "-n", 1)
    assert p.stdout.readline() == b"2\n"
    cli("push", queue, "3", "-q").expect()
    assert p.stdout.readline() == b"3\n"
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=20 * TIME_FACTOR)
    assert (p.returncode, out, err) == (0, b"", b"")
    assert [g for g in broker.get("/api/v1/consumer-groups").json if g["queueName"] == queue] == []


def test_tail_as_a_group_acknowledges_written_messages(cli, queue, group):
    cli("push", queue, "-q", input="\n".join(map(str, range(300)))).expect()
    assert cli("tail", queue, "-g", group, "-d", "--all", "--limit", 120).expect().rows == list(range(120))
    assert cli("tail", queue, "-g", group, "-d").expect().rows == list(range(120, 300))
    assert cli("tail", queue, "-g", group, "-d").expect().rows == []


def test_a_slow_reader_holds_tail_back(cli, queue, group, broker):
    payload = json.dumps("x" * 2000)
    cli("push", queue, "-q", input="\n".join([payload] * 2000)).expect()
    p = cli.start("tail", "-f", queue, "-g", group, "--all", "-d")

    def consumed():
        parts = broker.get("/api/v1/consumer-groups/%s" % group)
        return parts.json[queue]["partitions"][0]["totalConsumed"] if parts.status == 200 and queue in parts.json else 0
    time.sleep(2)
    first = consumed()
    time.sleep(1)
    assert consumed() == first < 300, "64 KB of pipe and a batch, not everything"
    for _ in range(2000):
        assert p.stdout.readline() == payload.encode() + b"\n"
    wait_until(lambda: consumed() == 2000, 10 * TIME_FACTOR, "all are acknowledged")
    p.terminate()
    assert p.wait(patience(20)) == 0
    p.stdout.close()
    p.stderr.close()


def test_an_interrupted_tail_settles_its_messages(cli, queue, group, broker):
    cli("push", queue, "-q", input="\n".join([json.dumps("x" * 2000)] * 1000)).expect()
    p = cli.start("tail", "-f", queue, "-g", group, "--all", "-d")
    time.sleep(1)  # until the pipe is full
    for _ in range(2):  # as timeout(1) does
        p.send_signal(signal.SIGINT)
        time.sleep(0.1)
    out, err = p.communicate(timeout=20 * TIME_FACTOR)
    assert (p.returncode, err) == (0, b"") and 0 < out.count(b"\n") < 1000
    consumed = broker.get("/api/v1/consumer-groups/%s" % group).json[queue]["partitions"][0]["totalConsumed"]
    assert out.count(b"\n") == consumed


def test_nothing_is_missed_or_repeated_between_the_last_and_the_new(cli, queue, broker):
    broker.put(queue, [-1])
    stop, pushed = threading.Event(), []

    def pour():
        client = Client(broker.host, broker.port)
        while not stop.is_set():
            client.push([{"queue": queue, "payload": len(pushed)}])
            pushed.append(0)
    pourer = threading.Thread(target=pour)
    pourer.start()
    p = cli.start("tail", "-f", queue, "-n", 100000, "-d")
    seen = [int(p.stdout.readline()) for _ in range(2)]
    stop.set()
    pourer.join()
    while seen[-1] != len(pushed) - 1:
        seen.append(int(p.stdout.readline()))
    p.send_signal(signal.SIGTERM)
    assert p.communicate(timeout=patience(20))[0] == b"" and p.returncode == 0
    assert seen == list(range(-1, len(pushed)))


def test_a_pipe_through_jq(cli, queue):
    cli("push", queue, "-q", input="\n".join('{"n": %d}' % n for n in range(250))).expect()
    r = cli.shell("queen tail %s --all --data | jq . | queen push %s-copy | jq -r .status | sort | uniq -c; "
                  'echo "${PIPESTATUS[@]}"' % (queue, queue))
    assert r.out.split() == ["250", "queued", "0", "0", "0", "0", "0", "0"][:2] + ["0"] * 6, (r.out, r.err)
    assert cli("tail", queue + "-copy", "--all", "-d").expect().rows == [{"n": n} for n in range(250)]


@pytest.mark.parametrize("command", ["tail %s --all", "tail -f %s --all", "tail -f %s -g g --all"])
def test_a_reader_that_goes_ends_tail_quietly(cli, queue, command):
    cli("push", queue, "-q", input="\n".join(json.dumps("x" * 1000) for n in range(1000))).expect()
    r = cli.shell("queen %s | head -1 >/dev/null; echo ${PIPESTATUS[0]}" % (command % queue))
    assert (r.out, r.err) == ("0\n", "")


def test_a_full_disk_is_an_error(cli, queue):
    cli("push", queue, "1", "-q").expect()
    r = cli.shell("queen tail %s >/dev/full" % queue)
    assert r.code == 5 and "No space left" in r.err


def test_an_unavailable_server_is_reported_with_the_next_step(cli, queue):
    r = cli("push", queue, "1", "--timeout", "2s", QUEEN_URL="http://127.0.0.1:1").expect(2)
    assert "queen serve" in r.err or "--url" in r.err
    assert cli("queue", "ls", "--url", "http://127.0.0.1:1").expect(2).err.count("\n") == 1


def test_messages_on_a_terminal_are_lines_for_people(cli, queue):
    cli("push", queue, '{"n": 1}', "-p", "acct-7", "--transaction-id", "inv-41", "-q").expect()
    text = cli.terminal("tail", queue).end()
    assert "\033[" in text and "acct-7" in text and "inv-41" in text and '{"n": 1}' in text and "transactionId" not in text
    assert "\033[" not in cli.terminal("tail", queue, "--no-color").end()
    assert "\033[" not in cli.terminal("tail", queue, NO_COLOR="1").end()
    assert json.loads(cli.terminal("tail", queue, "--json").end())["transactionId"] == "inv-41"


def test_push_on_a_terminal_without_messages_explains_stdin(cli, queue):
    t = cli.terminal("push", queue)
    assert "stdin" in t.end() and t.code == 1
    t = cli.terminal("push", queue, "1")
    assert t.end() == "1 queued in %s\n" % queue and t.code == 0


def test_push_to_a_server_that_dies_reports_stored_messages(make_broker, tmp_path, queue):
    b = make_broker()
    mine = Cli(b, tmp_path)
    p = mine.start("push", queue, "--timeout", "3s", stdin=subprocess.PIPE)
    p.stdin.write(b"1\n")
    p.stdin.flush()
    assert json.loads(p.stdout.readline())["status"] == "queued"
    b.kill()
    p.stdin.write(b"2\n")
    out, err = p.communicate(timeout=60 * TIME_FACTOR)
    assert p.returncode not in (0, 1) and err.count(b"\n") == 2 and b"retrying\n" in err, (p.returncode, out, err)


def test_push_without_a_server_fails_like_other_commands(cli, queue):
    """The time limit is longer than the deadline of the test: push must not wait for it."""
    r = cli("push", queue, "1", "--timeout", "1h", QUEEN_URL="http://127.0.0.1:1").expect(2)
    assert "connection refused" in r.err and "queen serve" in r.err and r.err.count("\n") == 1, r.err
    r = cli("push", queue, "--timeout", "1h", QUEEN_URL="http://127.0.0.1:1", input="1\n2\n").expect(2)
    assert "connection refused" in r.err and r.out == ""


def test_push_reports_that_it_retries(make_broker, tmp_path, queue):
    b = make_broker()
    mine = Cli(b, tmp_path)
    p = mine.start("push", queue, stdin=subprocess.PIPE)
    p.stdin.write(b"1\n")
    p.stdin.flush()
    assert json.loads(p.stdout.readline())["status"] == "queued"
    b.kill()
    p.stdin.write(b"2\n")
    p.stdin.flush()
    assert b"retrying" in p.stderr.readline()
    b.start()
    assert json.loads(p.stdout.readline())["status"] == "queued"
    out, err = p.communicate(timeout=60 * TIME_FACTOR)
    assert (p.returncode, out) == (0, b""), (out, err)


def test_tail_ends_when_its_reader_does(cli, queue, group):
    """No further message arrives, so a failing write cannot be what ends it."""
    cli("push", queue, "1", "2", "-q").expect()
    for more in ("", "-g " + group + " --all"):
        r = cli.shell("queen tail -f %s %s -d | head -1; echo ${PIPESTATUS[0]}" % (queue, more))
        assert (r.out, r.err) == ("1\n0\n", ""), (r.out, r.err)


def test_push_of_a_large_file_shows_progress(cli, queue, tmp_path):
    big, small = tmp_path / "big.ndjson", tmp_path / "small.ndjson"
    big.write_text((json.dumps("x" * 1000) + "\n") * 2000)
    small.write_text("1\n")
    text = cli.terminal("push", queue, "-f", str(big)).end()
    assert "100%" in text and "2000 queued in " in text.replace(",", ""), text
    text = cli.terminal("push", queue, "-f", str(small)).end()
    assert text == "1 queued in %s\n" % queue
    text = cli.terminal("push", queue, "-q", "-f", str(big)).end()
    assert "%" not in text
