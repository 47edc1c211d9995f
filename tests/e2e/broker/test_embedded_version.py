"""The embedded PostgreSQL of the version that QUEEN_PG_BIN names: a start, a restart, and messages in between."""
import os
import subprocess

import pytest

FOLDER = os.environ.get("QUEEN_PG_BIN")


@pytest.mark.skipif(not FOLDER, reason="make test-versions sets QUEEN_PG_BIN")
def test_messages_survive_a_restart(make_broker, queue):
    b = make_broker(embedded=True, QUEEN_PG_BIN=FOLDER)
    b.put(queue, [1, 2], partition="p")
    version = subprocess.run([os.path.join(FOLDER, "postgres"), "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    with open(os.path.join(b.env["QUEEN_DATA_DIR"], "pg", "PG_VERSION")) as f:
        assert version.split(".")[0] == f.read().strip()
    assert b.terminate() == 0
    again = make_broker(embedded=True, data_dir=b.env["QUEEN_DATA_DIR"], QUEEN_PG_BIN=FOLDER)
    assert [m["data"] for m in again.take(queue, "p", batch=2)] == [1, 2]
