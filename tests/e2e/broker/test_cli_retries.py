"""`queen timeline`, `dlq redrive`, `cron`, `owners`; completion and manual."""
import os
import shutil
import subprocess

import pytest

from cli import Cli, Terminal
from harness import BIN, TIME_FACTOR, wait_until


@pytest.fixture
def cli(broker, tmp_path):
    return Cli(broker, tmp_path)


def failed(cli, queue, tx, group="g", status="dlq", error="db timeout"):
    cli("push", queue, '{"n": 1}', "--transaction-id", tx, "-q").expect()
    message = cli("pop", queue, "-g", group).expect().out
    cli("ack", "-s", status, "--error", error, "-q", input=message).expect()


def test_a_timeline_shows_past_and_planned_events(cli, queue):
    cli("queue", "configure", queue, 'retryPolicy={"mode": "scheduled", "base": 3600, "floor": 3600}').expect()
    failed(cli, queue, "tl-" + queue, status="failed")
    line = cli("timeline", "-t", "tl-" + queue, "--queue", queue).expect().rows[0]
    assert line["status"] == "RETRYING" and line["nextAttemptAt"]
    assert line == cli("timeline", "tl-" + queue).expect().rows[0], "its transaction id is the correlation id by now"
    assert line == cli("timeline", "-m", line["messages"][0]["id"]).expect().rows[0]
    text = cli.terminal("timeline", "tl-" + queue, columns=160).end()
    for word in ("RETRYING", "attempt 1 of 29", "next at 20", "retryScheduled", "db timeout", "\033[33m"):
        assert word in text, (word, text)
    waiting = cli("schedule", "ls", queue).expect().rows
    assert [(m["kind"], m["consumerGroup"]) for m in waiting] == [("retry", "g")]
    cli("timeline", "nothing-" + queue).expect(4)
    assert "transaction id" in cli("timeline", "-t", "nothing-" + queue).expect(4).err
    cli("timeline", "-t", "-m", "x").expect(1)


def test_dead_letters_are_redriven(cli, queue):
    for n in range(3):
        failed(cli, queue, "a-%d" % n, error="bad card" if n == 2 else "db timeout")
    assert cli("dlq", "redrive", queue, "--error", "TIMEOUT", "-n", 1).expect().rows[0]["redriven"] == 1
    assert cli("dlq", "redrive", queue, "--error", "timeout").expect().rows[0]["redriven"] == 1
    wait_until(lambda: cli("pop", queue, "-g", "g", "--ack").code == 0, 10 * TIME_FACTOR, "it is delivered again")
    letter = cli("dlq", "ls", queue).expect().rows[0]
    assert letter["errorMessage"] == "bad card"
    cli("dlq", "redrive", queue, letter["id"], "--into", queue + "-repair").expect()
    assert cli("pop", queue + "-repair", "-d", "--ack", "--wait", "10s").expect().rows == [{"n": 1}]
    assert cli("dlq", "redrive", queue).expect(4).rows[0]["redriven"] == 0
    assert "--all" in cli("dlq", "redrive").expect(1).err


def test_many_dead_letters_go_in_several_batches(cli, queue):
    cli("push", queue, "-q", input="\n".join(map(str, range(1100)))).expect()
    cli("ack", "-s", "dlq", "-q", input=cli("pop", queue, "-g", "g", "-n", 1100).expect().out).expect()
    assert cli("dlq", "redrive", queue).expect().rows[0]["redriven"] == 1100


def test_recurring_messages(cli, queue):
    name = "nightly-" + queue
    made = cli("cron", "add", name, queue, "30 2 * * *", '{"k": 1}', "--zone", "Europe/Berlin", "-p", "acct-7").expect().rows[0]
    assert (made["cron"], made["timezone"], made["partition"], made["paused"]) == ("30 2 * * *", "Europe/Berlin", "acct-7", False)
    assert [s["name"] for s in cli("cron", "ls", queue).expect().rows] == [name]
    shown = cli("cron", "show", name).expect().rows[0]
    assert shown["nextRuns"][0] == shown["nextRunAt"] and len(shown["nextRuns"]) == 5
    assert cli("cron", "pause", name).expect().rows[0]["paused"] is True
    assert cli("cron", "show", name).expect().rows[0]["nextRuns"] == []
    cli("cron", "show", "none-such").expect(4)
    assert cli("cron", "resume", name).expect().rows[0]["paused"] is False
    cli("cron", "run", name).expect()
    assert cli("pop", queue, "--wait", "10s", "-d", "--ack").expect().rows == [{"k": 1}]
    assert "--yes" in cli("cron", "rm", name).expect(1).err
    cli("cron", "rm", name, "--yes").expect()
    cli("cron", "run", name).expect(4)
    assert "cron" in cli("cron", "add", name, queue, "every day").expect(3).err
    cli("cron", "add", name, queue, "@daily", "{").expect(1)


def test_owners_of_partitions(cli, queue, group, broker):
    cli("queue", "configure", queue, "partitions=3").expect()
    owners = cli("owners", queue, group).expect().rows
    assert [(o["partition"], o["owner"], o["expired"]) for o in owners] == [(str(n), None, True) for n in range(3)]
    broker.post("/api/v1/consumer-groups/%s/queues/%s/owners/claim" % (group, queue), {"owner": "w", "partitions": [{"partition": "2", "epoch": 0}]}).expect(200)
    (change,) = cli("owners", queue, group, "--changes", "-1h").expect().rows
    assert (change["partition"], change["previous"], change["owner"], change["epoch"]) == ("2", None, "w", 1)


def test_a_key_chooses_one_of_the_partitions(cli, queue):
    cli("queue", "configure", queue, "partitions=8").expect()
    cli("push", queue, "1", "2", "--key", "customer-7", "-q").expect()
    cli("push", queue, "3", "-k", "customer-7", "-q").expect()
    messages = cli("tail", queue, "--all").expect().rows
    assert [m["data"] for m in messages] == [1, 2, 3] and len({m["partition"] for m in messages}) == 1
    assert messages[0]["partition"] in [str(n) for n in range(8)]


COMPLETIONS = [
    (["pu"], ["push"]),
    (["queue", ""], ["ls", "show", "create", "configure", "rm", "purge"]),
    (["queue", "con"], ["configure"]),
    (["queue", "ls", "--na"], ["--namespace"]),
    (["push", "--fil"], ["--file"]),
]


@pytest.mark.parametrize("words,expected", COMPLETIONS + [(["help", "tim"], ["timeline"])])
def test_bash_completes(cli, words, expected):
    script = 'source <(queen completion bash); COMP_WORDS=(queen %s); COMP_CWORD=%d; _queen; echo "${COMPREPLY[@]}"'
    quoted = " ".join("'%s'" % w for w in words)
    assert cli.shell(script % (quoted, len(words))).out.split() == expected


@pytest.mark.parametrize("words,expected", COMPLETIONS)
def test_fish_completes(cli, words, expected):
    r = cli.shell("""HOME=$XDG_CONFIG_HOME fish -c 'queen completion fish | source; complete -C "queen %s"'""" % " ".join(words)).expect()
    assert r.err == "" and sorted(line.split("\t")[0] for line in r.out.splitlines()) == sorted(expected)
    assert all("\t" in line for line in r.out.splitlines()), "each with a sentence"


def test_zsh_completes(cli, tmp_path):
    """In a terminal, as people do: the word is completed in place, several are listed."""
    (tmp_path / "_queen").write_text(cli("completion", "zsh").expect().out)
    env = {**cli.env, "HOME": str(tmp_path), "PATH": os.path.dirname(BIN) + ":/usr/bin:/bin", "PS1": "$ ", "TERM": "dumb"}
    t = Terminal(["/usr/bin/zsh", "-f", "-i"], env, 120, 40)
    t.type("fpath=(%s $fpath); autoload -Uz compinit; compinit -u -D; echo rea''dy\n" % tmp_path).wait_for("\nready").wait_for("$ ")
    for words, expected in COMPLETIONS:
        t.text = ""
        t.type("queen " + " ".join(words) + "\t")
        if len(expected) == 1:
            t.wait_for("queen " + " ".join(words[:-1] + expected))
        else:
            for word in expected:
                t.wait_for(word + " ")
        t.type("\x15")
    t.type("\x15exit\n").end()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_accepted_by_the_shell(cli, shell):
    text = cli("completion", shell).expect().out
    assert "timeline" in text and "--" in text or "-l " in text
    assert subprocess.run([shell, "-n"], input=text, text=True, capture_output=True).returncode == 0


def test_completion_supports_three_shells(cli):
    assert "fish" in cli("completion", "csh").expect(1).err


def test_the_manual_is_made_of_the_commands(cli):
    text = cli("manual").expect().out
    for word in ("queen queue configure", "*--partition*", "EXIT STATUS"):
        assert word in text
    if shutil.which("scdoc"):
        page = subprocess.run(["scdoc"], input=text, text=True, capture_output=True)
        assert page.returncode == 0 and page.stderr == ""


POLICY = 'retryPolicy={"mode": "scheduled", "strategy": "list", "delays": [3600], "maxAttempts": 3, "nonRetryable": ["BAD_CARD"]}'


def test_an_error_code_decides_about_the_retry(cli, queue, group):
    cli("queue", "configure", queue, POLICY).expect()
    cli("push", queue, "1", "2", "-q").expect()
    messages = cli("pop", queue, "-g", group, "-n", 2).expect().out.splitlines()
    r = cli("ack", "-s", "failed", "--error", "slow", "--error-code", "TIMEOUT", "--worker", "mailer-3", input=messages[0]).expect().rows[0]
    assert (r["acknowledged"], r["retrying"], r["deadLettered"], r["nextAttempt"]) == (1, 1, 0, 2) and r["nextAttemptAt"]
    r = cli("ack", "-s", "failed", "--error", "stolen", "--error-code", "BAD_CARD", input=messages[1]).expect().rows[0]
    assert (r["retrying"], r["deadLettered"], r["nextAttemptAt"]) == (0, 1, None)
    assert [d["errorMessage"] for d in cli("dlq", "ls", queue).expect().rows] == ["stolen"]
    waiting = cli("schedule", "ls", queue, "--kind", "retry").expect().rows
    assert [(m["kind"], m["attempt"]) for m in waiting] == [("retry", 2)]
    shown = cli.terminal("timeline", waiting[0]["correlationId"], columns=200).end()
    assert "TIMEOUT" in shown and "mailer-3" in shown, shown


def test_ack_on_a_terminal_shows_the_next_attempt(cli, queue, group):
    cli("queue", "configure", queue, POLICY).expect()
    cli("push", queue, "1", "-q").expect()
    m = cli("pop", queue, "-g", group).expect().rows[0]
    text = cli.terminal("ack", m["partitionId"], m["transactionId"], "--lease", m["leaseId"], "-g", group, "-s", "failed").end()
    assert "1 acknowledged" in text and "attempt 2 at 20" in text, text


def test_scheduled_messages_are_listed_by_kind_and_moved(cli, queue, group):
    cli("queue", "configure", queue, POLICY).expect()
    cli("push", queue, "1", "-q").expect()
    cli("ack", "-s", "failed", "-q", input=cli("pop", queue, "-g", group).expect().out).expect()
    cli("push", queue, "2", "--in", "1h", "-q").expect()
    retry, = cli("schedule", "ls", queue, "--kind", "retry").expect().rows
    push, = cli("schedule", "ls", queue, "--kind", "push").expect().rows
    assert (retry["kind"], push["kind"]) == ("retry", "push")
    assert len(cli("schedule", "ls", queue).expect().rows) == 2
    assert "push or retry" in cli("schedule", "ls", queue, "--kind", "later").expect(1).err

    moved = cli("schedule", "move", push["id"], "--at", "2031-01-02T03:04:05Z").expect().rows
    assert [(m["id"], m["scheduledAt"]) for m in moved] == [(push["id"], "2031-01-02T03:04:05.000Z")]
    cli("schedule", "move", retry["id"], push["id"], "--in", "0s").expect()
    wait_until(lambda: cli("schedule", "ls", queue).expect().rows == [], 10 * TIME_FACTOR, "both are due")
    assert sorted(cli("pop", queue, "-g", group, "-n", 10, "--partitions", 10, "--ack", "-d", "--wait", "10s").expect().rows)[0] in (1, 2)
    cli("schedule", "move", push["id"], "--in", "1h").expect(4)
    assert "--at" in cli("schedule", "move", push["id"]).expect(1).err
    cli("schedule", "move", push["id"], "--in", "1h", "--at", "+1h").expect(1)


def test_only_retries_are_cancelled(cli, queue, group):
    cli("queue", "configure", queue, POLICY).expect()
    cli("push", queue, "1", "-q").expect()
    cli("ack", "-s", "failed", "-q", input=cli("pop", queue, "-g", group).expect().out).expect()
    cli("push", queue, "2", "--in", "1h", "-q").expect()
    assert cli("schedule", "cancel", "--queue", queue, "--kind", "retry", "--yes").expect().rows[0]["cancelled"] == 1
    assert [m["kind"] for m in cli("schedule", "ls", queue).expect().rows] == ["push"]


def test_a_timeline_is_found_by_any_id(cli, queue):
    tx, correlation = "tx-" + queue, "co-" + queue
    cli("push", queue, "1", "--transaction-id", tx, "--correlation-id", correlation, "-q").expect()
    line = cli("timeline", correlation).expect().rows[0]
    message = line["messages"][0]
    assert message["transactionId"] == tx
    assert cli("timeline", tx).expect().rows[0] == line
    assert cli("timeline", tx, "--queue", queue).expect().rows[0] == line
    assert cli("timeline", message["id"]).expect().rows[0] == line
    assert "transaction id" in cli("timeline", "nothing-" + queue).expect(4).err


def test_a_timeline_is_found_by_a_generated_transaction_id(cli, queue):
    """A transaction id that the library made is a UUID, like a message id."""
    tx = cli("push", queue, "1").expect().rows[0]["transactionId"]
    assert cli("timeline", tx).expect().rows[0]["messages"][0]["transactionId"] == tx
    cli("push", queue, "2", "--transaction-id", "later-" + queue, "--in", "1h", "-q").expect()
    assert cli("timeline", "later-" + queue).expect().rows[0]["status"] == "SCHEDULED"


def test_a_long_timeline_says_how_much_of_it_is_shown(cli, queue, broker):
    broker.push([{"queue": queue, "payload": i, "transactionId": "m%04d" % i, "correlationId": queue} for i in range(1100)]).expect(201)
    text = cli.terminal("timeline", queue, "-n", 3, columns=160).end()
    assert "m0002" in text and "m0003" not in text and "3 of 1,100 messages" in text and "--limit" in text, text
    assert "100 of 1,100 messages" in cli.terminal("timeline", queue, columns=160).end()
    text = cli.terminal("timeline", queue, "--limit", 5000, columns=160, lines=24).end()
    assert "m1099" in text and "messages; --limit" not in text
    pages = cli("timeline", queue, "-n", 1050).expect().rows
    assert [len(p["messages"]) for p in pages] == [1000, 50] and {p["total"] for p in pages} == {1100}


@pytest.mark.parametrize("more", [("--all",), ("--kind", "retry"), ("-p", "x"), ("--prefix", "x"), ("--from", "now")])
def test_ids_to_cancel_exclude_filters(cli, queue, more):
    """The filter was ignored, so that a message that it excludes was cancelled."""
    cli("push", queue, "1", "--in", "1h", "-q").expect()
    (m,) = cli("schedule", "ls", queue).expect().rows
    assert "must not be combined" in cli("schedule", "cancel", m["id"], "--yes", "--queue", queue, *more).expect(1).err
    assert len(cli("schedule", "ls", queue).expect().rows) == 1
