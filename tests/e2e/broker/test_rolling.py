"""Brokers are restarted one after the other; programs that use our client see no error."""
import subprocess
import threading
import time

import pytest

from harness import TIME_FACTOR, free_port, wait_until
from test_client_library import example

ROUNDS = 2
LIMIT = 60 * max(1, TIME_FACTOR)


class Feed:
    """A producer that is given numbers for as long as it lasts."""

    def __init__(self, urls, queue):
        self.process = subprocess.Popen([example("producer"), urls, queue], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.n, self.over = 0, threading.Event()
        self.thread = threading.Thread(target=self._write)
        self.thread.start()

    def _write(self):
        while not self.over.wait(0.002):
            self.process.stdin.write("%d\n" % self.n)
            self.process.stdin.flush()
            self.n += 1

    def finish(self):
        self.over.set()
        self.thread.join()
        out, err = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, out, err


@pytest.mark.one_broker
def test_a_rolling_restart_is_not_noticed(make_broker, pg, queue, group):
    database = pg.create_database("rolling_%d" % time.monotonic_ns())
    ports = [free_port(), free_port()]
    brokers = [make_broker(database=database, port=p) for p in ports]
    urls = ",".join(b.url for b in brokers)
    brokers[0].configure(queue)
    seen = []
    consumer = subprocess.Popen([example("consumer"), urls, queue, group], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
    reader = threading.Thread(target=lambda: seen.extend(line.split()[-1] for line in consumer.stdout))
    reader.start()
    feed = Feed(urls, queue)
    try:
        for _ in range(ROUNDS):
            for b in brokers:
                before = len(seen)
                wait_until(lambda: len(seen) > before + 50, LIMIT, "messages flow")
                assert b.terminate() == 0
                b.start()
        before = len(seen)
        wait_until(lambda: len(seen) > before + 50, LIMIT, "messages flow")
    finally:
        ended = feed.finish()
    assert ended == (0, "stored %d, failed 0\n" % feed.n, "")
    wait_until(lambda: len(seen) >= feed.n, LIMIT, "all have come")
    consumer.terminate()
    assert consumer.wait(LIMIT) == 0 and consumer.stderr.read() == ""
    reader.join()
    assert seen == [str(i) for i in range(feed.n)]
