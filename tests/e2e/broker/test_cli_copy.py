"""`queen export` and `queen import`: everything, in order, once, also after they were stopped."""
import json
import re
import signal
import time

import pytest

from cli import Cli
from harness import TIME_FACTOR, Client


@pytest.fixture
def cli(broker, tmp_path):
    return Cli(broker, tmp_path)


def fill(cli, queue, n, partitions=3):
    for p in range(partitions):
        cli("push", queue, "-p", "p%d" % p, "-q", input="\n".join(map(str, range(n)))).expect()


def by_partition(path):
    out = {}
    for line in path.read_text().splitlines():
        message = json.loads(line)
        out.setdefault(message["partition"], []).append(message["data"])
    return out


def groups_of(broker, queue):
    return [g["name"] for g in broker.get("/api/v1/consumer-groups").json if g["queueName"] == queue]


def test_a_queue_is_copied_into_a_file_and_back(cli, queue, broker, tmp_path):
    fill(cli, queue, 700)
    file = tmp_path / "out.ndjson"
    assert cli("export", queue, file).expect().rows[0]["messages"] == 2100
    assert by_partition(file) == {"p%d" % p: list(range(700)) for p in range(3)}
    assert groups_of(broker, queue) == [] and sorted(f.name for f in tmp_path.iterdir()) == ["out.ndjson"]
    assert cli("import", queue + "-copy", file).expect().rows == [{"stored": 2100, "duplicates": 0}]
    assert cli("import", queue + "-copy", file).expect().rows == [{"stored": 0, "duplicates": 2100}]
    again = tmp_path / "again.ndjson"
    cli("export", queue + "-copy", again).expect()
    assert by_partition(again) == by_partition(file)


def test_an_empty_queue_is_an_empty_file(cli, queue, tmp_path):
    cli("queue", "configure", queue, "-q").expect()
    assert cli("export", queue, tmp_path / "f").expect().rows == [{"messages": 0, "bytes": 0}]
    assert cli("import", queue, tmp_path / "f").expect().rows == [{"stored": 0, "duplicates": 0}]


def test_a_file_is_not_overwritten(cli, queue, tmp_path):
    fill(cli, queue, 1, 1)
    file = tmp_path / "f"
    file.write_text("precious")
    assert "--resume" in cli("export", queue, file).expect(1).err
    assert file.read_text() == "precious"
    cli("export", queue, file, "--resume").expect(4)
    cli("export", queue + "-none", tmp_path / "g").expect(4)
    cli("import", queue, tmp_path / "none").expect(5)


def test_an_interrupted_export_can_be_resumed(cli, queue, tmp_path, broker):
    fill(cli, queue, 3000)
    file, state = tmp_path / "f", tmp_path / "f.export"
    p = cli.start("export", queue, file)
    while not (file.exists() and file.stat().st_size > 0):
        time.sleep(0.005)
    p.send_signal(signal.SIGTERM)
    err = p.communicate(timeout=20 * TIME_FACTOR)[1].decode()
    assert p.returncode == 5 and "--resume" in err and state.exists()
    first = len(file.read_text().splitlines())
    assert 0 < first < 9000, "it was stopped in the middle"
    assert "does not belong to an export" in cli("export", queue + "x", file, "--resume").expect(1).err
    assert cli("export", queue, file, "--resume").expect().rows[0]["messages"] == 9000
    assert by_partition(file) == {"p%d" % n: list(range(3000)) for n in range(3)}
    assert not state.exists() and groups_of(broker, queue) == []


def test_a_batch_that_was_written_but_not_acknowledged_is_there_once(cli, queue, tmp_path, broker):
    """As after a kill between the two: the messages are in the file, half of one behind them, and come again."""
    fill(cli, queue, 10, 1)
    group = "queen-export-" + queue
    taken = broker.take(queue, consumerGroup=group, batch=4, subscriptionFrom="1970-01-01T00:00:00Z")
    assert len(taken) == 4
    back = [{"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": m["leaseId"], "status": "retry"}
            for m in taken]
    broker.post("/api/v1/ack/batch", {"consumerGroup": group, "acknowledgments": back}).expect(200)
    file = tmp_path / "f"
    file.write_text("".join(json.dumps(m) + "\n" for m in taken) + '{"id":"half')
    (tmp_path / "f.export").write_text(json.dumps({"queue": queue, "group": group, "messages": 0, "bytes": 0}))
    assert cli("export", queue, file, "--resume").expect().rows[0]["messages"] == 10
    assert by_partition(file) == {"p0": list(range(10))}


def test_an_interrupted_import_resumes_at_its_position(make_broker, tmp_path, queue):
    b = make_broker()
    cli = Cli(b, tmp_path)
    file = tmp_path / "f"
    file.write_text("".join(json.dumps({"data": n, "transactionId": "t%d" % n, "partition": "p"}) + "\n" for n in range(30000)))
    p = cli.start("import", queue, file, "--timeout", "2s")
    watch = Client(b.host, b.port)
    while not any(q["name"] == queue for q in watch.get("/api/v1/resources/queues").json["queues"]):
        time.sleep(0.01)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=30 * TIME_FACTOR)
    assert p.returncode == 5 and b"--resume" in err, (p.returncode, out, err)
    place = json.loads((tmp_path / "f.import").read_text())["bytes"]
    assert 0 < place < file.stat().st_size and file.read_bytes()[place - 1:place] == b"}"
    rest = cli("import", queue, file, "--resume").expect().rows[0]
    assert rest["stored"] + rest["duplicates"] == 30000 - file.read_bytes()[:place + 1].count(b"\n")
    assert rest["duplicates"] == 0, "what was answered is not pushed again"
    assert not (tmp_path / "f.import").exists()
    cli("export", queue, tmp_path / "g").expect()
    assert by_partition(tmp_path / "g") == {"p": list(range(30000))}


def test_a_file_of_payloads_is_not_imported(cli, queue, tmp_path):
    file = tmp_path / "f"
    file.write_text('{"a": 1}\n')
    assert "queen push" in cli("import", queue, file).expect(5).err


def test_a_terminal_shows_a_bar_and_a_rate(cli, queue, tmp_path):
    fill(cli, queue, 2000, 1)
    t = cli.terminal("export", queue, tmp_path / "f")
    text = t.end()
    assert t.code == 0 and re.search(r"\r\[#{24}\] 100%  2,000 messages  [0-9,]+/s", text), text
    assert "2000 messages of" in text
    text = cli.terminal("import", queue + "-copy", tmp_path / "f").end()
    assert "100%" in text and "2000 stored" in text
    assert "%" not in cli.terminal("import", queue + "-copy", tmp_path / "f", "-q").end()
