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
    assert "--queue" in cli("timeline", "-t", "x").expect(1).err
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
    assert cli("cron", "pause", name).expect().rows[0]["paused"] is True
    assert cli("cron", "resume", name).expect().rows[0]["paused"] is False
    cli("cron", "run", name).expect()
    assert cli("pop", queue, "--wait", "10s", "-d", "--ack").expect().rows == [{"k": 1}]
    assert "--yes" in cli("cron", "rm", name).expect(1).err
    cli("cron", "rm", name, "--yes").expect()
    cli("cron", "run", name).expect(4)
    assert "cron" in cli("cron", "add", name, queue, "every day").expect(3).err
    cli("cron", "add", name, queue, "@daily", "{").expect(1)


def test_owners_of_partitions(cli, queue, group):
    cli("queue", "configure", queue, "partitions=3").expect()
    owners = cli("owners", queue, group).expect().rows
    assert [(o["partition"], o["owner"], o["expired"]) for o in owners] == [(str(n), None, True) for n in range(3)]


def test_a_key_chooses_one_of_the_partitions(cli, queue):
    cli("queue", "configure", queue, "partitions=8").expect()
    cli("push", queue, "1", "2", "--key", "customer-7", "-q").expect()
    cli("push", queue, "3", "-k", "customer-7", "-q").expect()
    messages = cli("tail", queue, "--all").expect().rows
    assert [m["data"] for m in messages] == [1, 2, 3] and len({m["partition"] for m in messages}) == 1
    assert messages[0]["partition"] in [str(n) for n in range(8)]


COMPLETIONS = [
    (["pu"], ["push"]),
    (["queue", ""], ["ls", "show", "configure", "rm", "purge"]),
    (["queue", "con"], ["configure"]),
    (["queue", "ls", "--na"], ["--namespace"]),
    (["push", "--f"], ["--file"]),
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
