"""Logging never waits: a reader that stops reading the log does not stop the broker."""
import fcntl
import os
import re
import subprocess
import tempfile

import harness
import pytest


@pytest.mark.one_broker
def test_a_full_log_pipe_does_not_freeze_a_worker(pg):
    b = harness.Broker({**pg.env(), "SIDECAR_POOL_SIZE": "4", "NUM_WORKERS": "1", "LOG_LEVEL": "debug"})
    reader, writer = os.pipe()
    os.write(writer, b"x" * fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096))  # full from the start
    b.process = subprocess.Popen([harness.BIN, "serve"], env=b.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writer,
                                 cwd=tempfile.gettempdir())
    os.close(writer)
    try:
        b.wait_ready(harness.START_TIMEOUT)

        def dropped():
            text = b.get("/metrics/prometheus", timeout=10).expect(200).text
            return int(re.search(r"^queen_log_lines_dropped_total (\d+)$", text, re.M).group(1))
        harness.wait_until(lambda: b.get("/api/v1/pop/queue/x", timeout=10).status == 204 and dropped() > 0, 20, "lines are dropped")
        os.set_blocking(reader, False)
        seen = b""

        def told():  # the pipe drains, and the next scrape or line reports it
            nonlocal seen
            dropped()
            try:
                seen += os.read(reader, 1 << 16)
            except BlockingIOError:
                pass
            return re.search(rb"level=warn event=log.dropped lines=[1-9]\d* total=", seen)
        harness.wait_until(told, 20, "the log says how many lines were dropped")
    finally:
        b.dispose()
        os.close(reader)
        os.unlink(b.log)
