"""`queen queue`, `partition`, `group`, `dlq`, `schedule`, `context`, and options common to all commands."""
import json
import socket
import stat
import threading

import pytest

from cli import Cli
from harness import TIME_FACTOR, wait_until


@pytest.fixture
def cli(broker, tmp_path):
    return Cli(broker, tmp_path)


def dead_letter(cli, queue, group="g", error="boom", payload='{"n": 1}', tx="inv-41"):
    cli("push", queue, payload, "--transaction-id", tx, "-q").expect()
    cli("ack", "-s", "dlq", "--error", error, "-q", input=cli("pop", queue, "-g", group).expect().out).expect()


# ---- queues, partitions ----

def test_queues_are_listed_as_the_server_has_them(cli, queue, broker):
    cli("push", queue, "1", "2", "-q").expect()
    mine = [q for q in cli("queue", "ls").expect().rows if q["name"] == queue]
    assert len(mine) == 1 and mine[0]["pending"] == 2
    assert [q["name"] for q in cli("queue", "ls", "--namespace", queue).expect().rows] == [queue]


def test_a_queue_is_configured_shown_emptied_and_removed(cli, queue):
    r = cli("queue", "configure", queue, "leaseTime=45", "retryLimit=7", "--namespace", "shop", "--task", "book").expect().rows[0]
    assert (r["options"]["leaseTime"], r["options"]["retryLimit"], r["namespace"], r["task"]) == (45, 7, "shop", "book")
    cli("push", queue, "1", "-q", "-p", "acct-7").expect()
    cli("push", queue, "2", "-q", "-p", "acct-8").expect()
    shown = cli("queue", "show", queue).expect().rows[0]
    assert shown["queue"]["config"]["leaseTime"] == 45 and shown["totals"]["total"] == 2
    assert {p["name"] for p in cli("partition", "ls", queue).expect().rows} >= {"acct-7", "acct-8"}
    cli("queue", "purge", queue, "--partition", "acct-7", "--yes").expect()
    assert cli("tail", queue, "--all", "-d").expect().rows == [2]
    cli("queue", "purge", queue, "-y").expect()
    assert cli("tail", queue, "--all", "-d").expect().rows == []
    cli("queue", "rm", queue, "--yes").expect()
    assert "queen queue ls" in cli("queue", "rm", queue, "--yes").expect(4).err
    assert cli("queue", "show", queue).expect(4).err.count("\n") == 1


@pytest.mark.parametrize("command", [["queue", "show"], ["queue", "configure"]])
def test_a_terminal_shows_the_options_that_take_effect(cli, queue, command):
    """A new queue reports ttl 3600 and deadLetterQueue false, as the contract has it; neither acts."""
    cli("queue", "create", queue, "leaseTime=45").expect()
    shown = cli.terminal(*command, queue, *(["leaseTime=45"] if command[1] == "configure" else []), columns=400).end()
    assert "leaseTime" in shown and "maxDeliveries" in shown
    assert "ttl" not in shown and "deadLetterQueue" not in shown
    cli("queue", "configure", queue, "ttl=60").expect()
    shown = cli.terminal("queue", "show", queue, columns=400).end()
    assert '"ttl": 60' in shown


def test_a_group_that_was_used_is_not_shown_as_dead(cli, queue, group, broker):
    broker.put(queue, [1], partition="p")
    assert broker.take(queue, consumerGroup=group)
    (mine,) = [g for g in cli("group", "ls", "--queue", queue).expect().rows if g["name"] == group]
    assert mine["activity"] == "Stable"
    shown = cli.terminal("group", "ls", "--queue", queue, columns=200).end()
    assert "Stable" in shown and "Dead" not in shown


def test_all_lists_agree_on_the_number_of_partitions(cli, queue, group, make_broker, pg, tmp_path):
    """Partitions that were written to; the empty partition Default of a configured queue is not one."""
    alone = make_broker(database=pg.create_database("counts-" + queue))
    alone.configure(queue)
    alone.put(queue, [1], partition="p1")
    alone.put(queue, [1], partition="p2")
    assert alone.take(queue, "Default", consumerGroup=group) == []
    for _ in range(2):
        alone.ack(alone.take(queue, consumerGroup=group)[0])

    def counts():
        (q,) = alone.get("/api/v1/resources/queues").expect(200).json["queues"]
        (g,) = [g for g in alone.get("/api/v1/consumer-groups").expect(200).json if g["name"] == group]
        return (q["partitionCount"], alone.get("/api/v1/resources/overview").expect(200).json["partitions"], g["partitions"],
                len(alone.get("/api/v1/status/queues/" + queue).expect(200).json["partitions"]))
    wait_until(lambda: counts() == (2, 2, 2, 2), 10, "all lists to count two partitions")


def test_wrong_options_of_a_queue_are_rejected(cli, queue):
    assert "OPTION=VALUE" in cli("queue", "configure", queue, "leaseTime").expect(1).err
    assert "leaseTime" in cli("queue", "configure", queue, "leaseTime=soon").expect(3).err
    assert 'did you mean "leaseTime"?' in cli("queue", "create", queue, "leasetime=5").expect(1).err
    assert 'unknown option "colour"' in cli("queue", "configure", queue, "leaseTime=5", "colour=red").expect(1).err
    cli("queue", "show", queue).expect(4)


def test_a_pipe_shows_the_options_that_take_effect(cli, queue):
    """It had a ttl of an hour that does nothing."""
    for row in (cli("queue", "create", queue, "leaseTime=45").expect().rows[0], cli("queue", "configure", queue, "ttl=60").expect().rows[0]):
        shown = cli("queue", "show", queue).expect().rows[0]["queue"]
        assert row["configured"] is True and row["queueId"] == shown["id"] and row["queue"] == queue
        assert ("ttl" in row["options"]) is (row["options"]["leaseTime"] == 300) and "deadLetterQueue" not in row["options"]
    assert row["options"] == shown["options"]


@pytest.mark.parametrize("command, error", [
    ("tail Q --all --last 3", "--last must not be combined with --all"), ("tail Q --group g --last 3", "--last must not be combined with --group"),
    ("tail Q --from -1h -n 3", "--last must not be combined with --from"), ("tail Q --partition p", "--partition needs"),
    ("tail -f Q --partition p", "--partition needs"), ("tail Q --limit 3", "--limit needs"), ("pop Q --partition p --partitions 3", "--partitions"),
    ("ack --lease x", "--lease is for one message"), ("group lag g --min 10m", "--min is for the lag of all groups")])
def test_options_that_would_be_ignored_are_refused(cli, queue, command, error):
    cli("push", queue, "1", "-q").expect()
    assert error in cli(*[queue if word == "Q" else word for word in command.split()], input="").expect(1).err
    assert cli("pop", queue).expect().rows[0]["data"] == 1, "nothing was taken"


@pytest.mark.parametrize("command", [["queue", "rm"], ["queue", "purge"], ["group", "rm"]])
def test_irreversible_commands_need_confirmation(cli, queue, command):
    cli("push", queue, "1", "-q").expect()
    assert "--yes" in cli(*command, queue).expect(1).err
    t = cli.terminal(*command, queue).wait_for("[y/N]").type("n\n")
    assert "cancelled" in t.end() and t.code == 1
    assert cli("tail", queue, "--all", "-d").expect().rows == [1]
    t = cli.terminal(*command, queue).wait_for("[y/N]").type("y\n")
    t.end()
    assert t.code == 0


# ---- groups ----

def test_a_group_is_listed_moved_and_forgotten(cli, queue, group):
    cli("push", queue, "1", "2", "-q").expect()
    cli("pop", queue, "-g", group, "--ack", "-n", 2).expect()
    mine = cli("group", "ls", "--queue", queue).expect().rows
    assert [(g["name"], g["totalLag"]) for g in mine] == [(group, 0)]
    assert cli("group", "seek", group, queue, "--to-start").expect().rows[0]["partitionsUpdated"] == 1
    lag = cli("group", "lag", group).expect().rows
    assert [(r["group"], r["queue"], r["partition"], r["offsetLag"]) for r in lag] == [(group, queue, "Default", 2)]
    (row,) = cli("group", "lag", group, "--queue", queue, "--search", "DEF").expect().rows
    assert (row["partition"], row["lag"], row["leaseId"]) == ("Default", 2, None)
    assert cli("group", "lag", group, "--queue", queue, "--search", "none").expect().rows == []
    assert "needs a GROUP" in cli("group", "lag", "--queue", queue).expect(1).err
    assert "need --queue" in cli("group", "lag", group, "--search", "x").expect(1).err
    assert [g["name"] for g in cli("group", "ls", "--search", queue.upper(), "--lag", "-n", 1).expect().rows] == [group]
    cli("group", "seek", group, queue, "--to-end", "-p", "Default").expect()
    cli("pop", queue, "-g", group).expect(4)
    cli("group", "seek", group, queue, "--to", "-1h").expect()
    assert cli("pop", queue, "-g", group, "-d").expect().rows == [1]
    cli("group", "rm", group, "--queue", queue, "-y").expect()
    assert cli("group", "ls", "--queue", queue).expect().rows == []


@pytest.mark.parametrize("place", [["--to-end"], ["--to", "-1h"], ["--to-end", "-p", "Default"]])
def test_a_seek_of_a_group_that_is_not_there_has_moved_nothing(cli, queue, group, place):
    cli("push", queue, "1", "-q").expect()
    r = cli("group", "seek", group, queue, *place).expect(4)
    assert "no position" in r.err and group in r.err
    assert len(r.rows) == 1, "the answer of the server is printed all the same"


def test_stream_queries_are_listed(cli, queue, broker):
    broker.post("/streams/v1/queries", {"name": "s." + queue, "source_queue": queue, "config_hash": "1"}).expect(200)
    (row,) = cli("stream", "ls", "--search", queue).expect().rows
    assert (row["name"], row["sourceQueue"], row["keys"]) == ("s." + queue, queue, 0)


def test_lagging_groups_are_listed(cli, queue, group):
    cli("push", queue, "1", "-q").expect()
    cli("pop", queue, "-g", group).expect()
    wait_until(lambda: [r["queue_name"] for r in cli("group", "lag").expect().rows if r["consumer_group"] == group] == [queue],
               10 * TIME_FACTOR, "the group is behind")
    assert [r for r in cli("group", "lag", "--min", "1h").expect().rows if r["consumer_group"] == group] == []


@pytest.mark.parametrize("args", [[], ["--to-end", "--to-start"], ["--to", "yesterday"], ["--to-start", "-p", "x"]])
def test_a_seek_needs_one_place(cli, queue, args):
    assert cli("group", "seek", "g", queue, *args).expect(1).err.count("\n") == 1


# ---- dead letters ----

def test_dead_letters_are_listed_and_shown(cli, queue):
    dead_letter(cli, queue)
    dead_letter(cli, queue, tx="inv-42")
    assert [d["transactionId"] for d in cli("dlq", "ls", queue).expect().rows] == ["inv-42", "inv-41"]
    assert len(cli("dlq", "ls", queue, "--group", "g", "--from", "-5m", "-n", 1).expect().rows) == 1
    assert cli("dlq", "ls", queue, "--group", "other").expect().rows == []
    assert cli("dlq", "ls", queue, "--to", "-5m").expect().rows == []
    assert cli("dlq", "show", queue, "inv-41", "-g", "g").expect().rows[0]["data"] == {"n": 1}
    assert "2 in total" in cli.terminal("dlq", "ls", queue, "-n", 1).end()
    assert "in total" not in cli.terminal("dlq", "ls", queue, "-n", 1, "--offset", 1).end(), "nothing follows"
    assert "queen dlq ls" in cli("dlq", "show", queue, "inv-43").expect(4).err


# ---- messages that wait ----

def test_waiting_messages_are_added_listed_and_cancelled(cli, queue):
    added = cli("schedule", "add", queue, '{"n": 1}', "--in", "10m", "--transaction-id", "a-1", "-p", "acct-7").expect().rows[0]
    cli("schedule", "add", queue, "2", "--at", "2031-01-31T08:00:00+01:00", "--transaction-id", "b-1").expect()
    listed = cli("schedule", "ls", queue).expect().rows
    assert [(m["transactionId"], m["partition"]) for m in listed] == [("a-1", "acct-7"), ("b-1", "Default")]
    assert listed[1]["scheduledAt"] == "2031-01-31T07:00:00.000Z"
    assert [m["transactionId"] for m in cli("schedule", "ls", queue, "--to", "+1h").expect().rows] == ["a-1"]
    assert len(cli("schedule", "ls", queue, "-n", 1).expect().rows) == 1
    assert cli("schedule", "cancel", added["scheduleId"]).expect().rows == [{"cancelled": 1}]
    assert cli("schedule", "cancel", added["scheduleId"]).expect(4).out == ""
    assert "--yes" in cli("schedule", "cancel", "--queue", queue).expect(1).err
    assert cli("schedule", "cancel", "--queue", queue, "--prefix", "b-", "--yes").expect().rows == [{"cancelled": 1}]
    assert cli("schedule", "ls", queue).expect().rows == []


@pytest.mark.parametrize("args", [["1"], ["1", "--in", "soon"], ["1", "--in", "1m", "--at", "now"], ["{", "--in", "1m"]])
def test_a_waiting_message_needs_a_time_and_json(cli, queue, args):
    assert cli("schedule", "add", queue, *args).expect(1).err.count("\n") == 1
    assert "--all" in cli("schedule", "cancel").expect(1).err


# ---- contexts ----

def test_contexts_are_kept_for_the_owner_alone(cli, broker, tmp_path, queue):
    url = cli.env.pop("QUEEN_URL")
    cli("push", queue, "1", "-q", "--url", url).expect()
    cli("context", "add", "here", "--url", url).expect()
    cli("context", "add", "there", "--url", "http://127.0.0.1:1").expect()
    path = tmp_path / "queen" / "contexts"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [json.loads(line)["name"] for line in path.read_text().splitlines()] == ["here", "there"]
    assert [(c["name"], c.get("current", False)) for c in cli("context", "ls").expect().rows] == [("here", True), ("there", False)]
    assert cli("tail", queue, "-d").expect().rows == [1], "the first one is in use"
    cli("context", "use", "there").expect()
    cli("queue", "ls").expect(2)
    assert cli("tail", queue, "-d", "--context", "here").expect().rows == [1], "the option wins over the one in use"
    assert cli("tail", queue, "-d", QUEEN_URL=url).expect().rows == [1], "so does the environment"
    cli("tail", queue, "--context", "there", QUEEN_URL=url).expect(2)
    cli("context", "rm", "there").expect()
    assert "queen context ls" in cli("queue", "ls", "-c", "there").expect(1).err
    cli("context", "use", "there").expect(4)
    path.write_text("{}\n")
    assert "contexts" in cli("queue", "ls").expect(1).err


# ---- what all commands share ----

def commands(cli):
    """All commands with their subcommands, as help lists them."""
    out = []
    for line in cli("help").expect().out.splitlines():
        if line.startswith("  "):
            name = line.split()[0]
            text = cli("help", name).expect().out
            if "<command>" in text.splitlines()[0]:
                out += [[name, sub.split()[0]] for sub in text.splitlines() if sub.startswith("  ")]
            else:
                out.append([name])
    return out


def test_every_command_explains_itself_with_examples(cli):
    every = commands(cli)
    assert len(every) > 20
    for command in every:
        text = cli(*command, "--help").expect().out
        assert text == cli("help", *command).expect().out
        assert "queen " + " ".join(command) in text
        if command[0] not in ("serve", "platform", "bench", "help"):  # these read their own options
            assert "examples:" in text and "--json" in text, command
            assert max(map(len, text.splitlines())) <= 100, command
            assert cli(*command, "--no-such-thing").expect(1).err.count("\n") == 1


def test_mistyped_words_are_guessed(cli):
    assert '"ls"' in cli("queue", "sl").expect(1).err
    assert "--json" in cli("queue", "ls", "--jsno").expect(1).err
    assert "QUEUE" in cli("queue", "show").expect(1).err
    assert '"b"' in cli("queue", "show", "a", "b").expect(1).err
    assert cli("queue").expect(1).out == ""


@pytest.mark.parametrize("args", [["-n"], ["-n", "x"], ["--wait", "long"], ["--ack=yes"], ["-z"], ["--batch=-1"]])
def test_values_of_options_are_checked(cli, queue, args):
    assert cli("pop", queue, *args).expect(1).err.count("\n") == 1


def test_options_may_be_written_in_all_usual_ways(cli, queue):
    cli("push", queue, "1", "2", "3", "4", "5", "6", "-q").expect()
    for args in (["-adn2"], ["-a", "-d", "-n", "2"], ["--ack", "--data", "--batch=2"]):
        assert len(cli("pop", *args, queue).expect().rows) == 2
    assert cli("push", queue, "-q", "--", "-7").expect().out == ""
    assert cli("pop", "-ad", queue).expect().rows == [-7]


def test_a_terminal_gets_tables_that_fit(cli, queue):
    long_name = queue + "-" + "x" * 60
    cli("queue", "configure", long_name, "--namespace", "n" * 90).expect()
    wide = cli.terminal("queue", "ls", "--namespace", "n" * 90, columns=250).end()
    assert "QUEUE" in wide and "n" * 90 in wide and "\033[1m" in wide
    narrow = cli.terminal("queue", "ls", "--namespace", "n" * 90, "--no-color", columns=150).end()
    assert "…" in narrow and max(map(len, narrow.splitlines())) <= 150
    table = cli("queue", "ls", "--table", "--namespace", "n" * 90).expect().out
    assert "n" * 90 in table and "\033[" not in table and table.count("\n") == 2


def test_a_token_that_is_missing_is_the_next_step(make_broker, tmp_path):
    b = make_broker(JWT_ENABLED="true", JWT_SECRET="s" * 40)
    r = Cli(b, tmp_path)("queue", "ls").expect(3)
    assert "--token-file" in r.err and r.err.count("\n") == 1


class Vanishing:
    """A server that reads each request and closes the connection without an answer."""

    def __init__(self):
        self.listener, self.requests = socket.create_server(("127.0.0.1", 0)), []
        self.host, self.port = self.listener.getsockname()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            self.requests.append(conn.recv(65536).split(b"\r\n")[0].decode())
            conn.close()


@pytest.mark.parametrize("args, sent", [
    (("cron", "run", "nightly"), ["POST"]),
    (("schedule", "add", "q", "{}", "--in", "1h"), ["POST"]),
    (("key", "create", "ci", "--allow", "push:*"), ["POST"]),
    (("queue", "ls"), ["GET", "GET"]),
])
def test_a_request_that_creates_something_is_not_repeated_after_a_lost_answer(tmp_path, args, sent):
    server = Vanishing()
    try:
        Cli(server, tmp_path)(*args).expect(2)
        assert [r.split()[0] for r in server.requests] == sent
    finally:
        server.listener.close()
