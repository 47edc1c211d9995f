"""The example program of libqueen: the broker without the server, on a real database."""
import os
import re
import subprocess

import pytest

from harness import REPO

CANDIDATES = [os.environ.get("QUEEN_EXAMPLE", "")] + [
    os.path.join(REPO, "build", b, "broker", "examples", "libqueen_example") for b in ("release", "debug", "asan", "server")]
PROGRAM = next((p for p in CANDIDATES if p and os.path.exists(p)), None)


def run(conninfo):
    assert PROGRAM, "libqueen_example is not built (make, or set QUEEN_EXAMPLE)"
    return subprocess.run([PROGRAM] + conninfo, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def test_the_example_pushes_pops_acknowledges_and_runs_a_statement(pg):
    name = pg.create_database("libqueen_example")
    r = run(["host=%s port=%d user=%s dbname=%s" % (pg.host, pg.port, pg.user, name)])
    assert r.returncode == 0, r.stderr
    lines = r.stdout.splitlines()
    queue = re.fullmatch(r"pushed 10 messages to (example-[0-9a-f]+)", lines[0]).group(1)
    assert lines[1:11] == ['popped {"number": %d}' % i for i in range(10)], "all of them, in order"
    assert lines[11:] == ["acknowledged 10 messages", "a statement of our own found 1 queue of that name"]

    conn = pg.connect(database=name)
    with conn.cursor() as cur:
        cur.execute("select count(*) from queen.messages m join queen.partitions p on p.id = m.partition_id "
                    "join queen.queues q on q.id = p.queue_id where q.name = %s", (queue,))
        assert cur.fetchone()[0] == 10
        cur.execute("select sum(c.total_messages_consumed), count(c.worker_id) from queen.partition_consumers c "
                    "join queen.partitions p on p.id = c.partition_id join queen.queues q on q.id = p.queue_id "
                    "where q.name = %s", (queue,))
        assert cur.fetchone() == (10, 0), "consumed, and no lease is left"
    conn.close()


@pytest.mark.parametrize("conninfo", [[], ["host=127.0.0.1 port=1 connect_timeout=2"]])
def test_the_example_reports_errors(conninfo):
    r = run(conninfo)
    assert r.returncode == 1 and len(r.stderr.splitlines()) == 1
