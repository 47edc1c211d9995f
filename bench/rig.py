"""Base of the benchmarks in Python: a PostgreSQL and a broker of their own, pushes from several threads, percentiles.

fsync is off: they are about CPU and about waiting for answers.
"""
import glob
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "support"))
import harness  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")


def stat(pid):
    """(parent, seconds of its own, seconds of children that have ended)"""
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[1]), (int(fields[11]) + int(fields[12])) / TICK, (int(fields[13]) + int(fields[14])) / TICK


def cpu(broker, postmaster):
    total = stat(broker)[1]
    own = stat(postmaster)
    total += own[1] + own[2]
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            parent, seconds, _ = stat(int(path.split("/")[2]))
        except (OSError, ValueError, IndexError):
            continue  # it has just ended
        if parent == postmaster:
            total += seconds
    return total


def percentile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def push_all(broker, items, threads=4, batch=100):
    """Pushes what the iterator gives; returns nothing before all of it is stored."""
    items = iter(items)
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                some = [item for _, item in zip(range(batch), items)]
            if not some:
                return
            broker.push(some).expect(201)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()


class Rig:
    def __init__(self, env=None, **settings):
        """env: of the broker; settings: of PostgreSQL"""
        self.pg = harness.Postgres()
        self.pg.settings = settings
        self.pg.start()
        self.broker = harness.Broker({**self.pg.env(), **(env or {})}).start()
        self.conn = self.pg.connect()

    def close(self):
        self.broker.dispose()
        self.pg.stop()

    def sql(self, text, *args):
        with self.conn.cursor() as cur:
            cur.execute(text, args or None)
            return cur.fetchall() if cur.description else []

    def bench(self, *args, refusals=False):
        """The result of `queen bench`; refusals: answers that are errors do not end the run."""
        done = subprocess.run([harness.BIN, "bench", "-u", "http://127.0.0.1:%d" % self.broker.port, "-j", "-", "--quiet",
                               "--pid", str(self.broker.process.pid), "--pg-pid", str(self.pg.process.pid), *map(str, args)],
                              capture_output=True, text=True)
        if done.returncode not in ((0, 2) if refusals else (0,)):
            raise SystemExit("queen bench ended with %d: %s" % (done.returncode, (done.stderr or done.stdout)[-500:]))
        return json.loads(done.stdout.splitlines()[-1])

    def cpu(self):
        """Seconds that broker and PostgreSQL have worked so far."""
        return cpu(self.broker.process.pid, self.pg.process.pid)

    def times(self, paths):
        """Milliseconds until the answer to a GET of each of them, one after the other."""
        values = []
        for path in paths:
            begin = time.monotonic()
            self.broker.request("GET", path, timeout=120).expect(200)
            values.append((time.monotonic() - begin) * 1000)
        return values
