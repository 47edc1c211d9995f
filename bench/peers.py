#!/usr/bin/python3
"""The same traffic against what people would pick instead, in one run on one machine.   bench/peers.py [SECONDS]

Redis streams with appendfsync always, and plain INSERT and DELETE in PostgreSQL as the floor without batching. The rows are those of
"Other systems" in docs/operations/benchmarks.md: CPU-seconds of all server processes per million messages, not of the generators.
Every system answers only when the message is on disk.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from rig import cpu, harness, percentile, stat

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 6
PAYLOAD = "x" * 100


class Resp:
    """A connection to Redis: enough of its protocol for these commands."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        parts = [str(w).encode() for w in words]
        self.socket.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))

    def read(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind in b"+:":
            return rest
        if int(rest) < 0:
            return None
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2]
        return [self.read() for _ in range(int(rest))]

    def call(self, *words):
        self.send(*words)
        return self.read()


class Redis:
    name = "Redis streams, appendfsync always"

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="queen-bench-redis-")
        self.port = harness.free_port()
        # One program with several names. The package redis-server would only add its own name, and a service that starts at once.
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--appendonly", "yes",
                                         "--appendfsync", "always", "--save", ""], executable="/usr/bin/redis-check-rdb",
                                        stdout=subprocess.DEVNULL)
        harness.wait_until(self.answers, 20, "Redis answers")

    def answers(self):
        try:
            return Resp(self.port).call("PING") == b"PONG"
        except OSError:
            return False

    def cpu(self):
        return stat(self.process.pid)[1] + stat(self.process.pid)[2]

    def push(self, connections, batch):
        """Messages stored, by redis-benchmark in chunks until the time is over; a batch is a pipeline, which has one sync."""
        n, end, chunk = 0, time.monotonic() + SECONDS, 20000 if batch == 1 else 200000
        while time.monotonic() < end:
            subprocess.run(["redis-benchmark", "-p", str(self.port), "-c", str(connections), "-P", str(batch), "-n", str(chunk), "-q", "XADD", "s", "*", "d",
                            PAYLOAD], check=True, stdout=subprocess.DEVNULL)
            n += chunk
        return n

    def take(self):
        Resp(self.port).call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
        counts, end = [], time.monotonic() + SECONDS

        def work(name):
            conn, n = Resp(self.port), 0
            while time.monotonic() < end:
                found = conn.call("XREADGROUP", "GROUP", "g", name, "COUNT", 100, "STREAMS", "s", ">")
                if not found:
                    break
                ids = [entry[0].decode() for entry in found[0][1]]
                conn.send("XACK", "s", "g", *ids)
                conn.send("XDEL", "s", *ids)
                conn.read(), conn.read()
                n += len(ids)
            counts.append(n)

        in_threads(work, 8)
        return sum(counts)

    def end_to_end(self, rate):
        """(messages, latencies in ms)"""
        latencies, stop = [], threading.Event()
        Resp(self.port).call("XGROUP", "CREATE", "e", "g", "0", "MKSTREAM")

        def consume(name):
            conn = Resp(self.port)
            while not stop.is_set():
                found = conn.call("XREADGROUP", "GROUP", "g", name, "COUNT", 100, "BLOCK", 500, "STREAMS", "e", ">")
                for entry in found[0][1] if found else []:
                    latencies.append((time.monotonic() - float(entry[1][1].split()[0])) * 1000)
                    conn.call("XACK", "e", "g", entry[0].decode())

        workers = [threading.Thread(target=consume, args=(str(i),)) for i in range(16)]
        for w in workers:
            w.start()
        conn, begin, n = Resp(self.port), time.monotonic(), 0
        while n < rate * SECONDS:
            due = begin + n / rate
            time.sleep(max(0, due - time.monotonic()))
            conn.call("XADD", "e", "*", "d", "%.6f %s" % (due, PAYLOAD))
            n += 1
        harness.wait_until(lambda: len(latencies) >= n, 20, "all messages arrive")
        stop.set()
        for w in workers:
            w.join()
        return n, latencies

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)


class Insert:
    """A table and nothing else: no order per key, no groups, no leases."""
    name = "plain INSERT, DELETE"

    def __init__(self, pg):
        self.pg = pg
        with pg.connect() as conn, conn.cursor() as cur:
            cur.execute("create table plain (id bigint generated always as identity primary key, body text)")
        self.folder = tempfile.mkdtemp(prefix="queen-bench-insert-")

    def cpu(self):
        return cpu(os.getpid(), self.pg.process.pid) - stat(os.getpid())[1]

    def run(self, script, connections):
        path = os.path.join(self.folder, "script.sql")
        with open(path, "w") as f:
            f.write(script)
        done = subprocess.run([os.path.join(self.pg.bin, "pgbench"), "-h", self.pg.host, "-p", str(self.pg.port), "-U", self.pg.user, "-n", "-M", "prepared",
                               "-c", str(connections), "-j", "1", "-T", "%d" % max(1, SECONDS), "-f", path, self.pg.database],
                              check=True, capture_output=True, text=True)
        return int(re.search(r"transactions actually processed: (\d+)", done.stdout).group(1))

    def push(self, connections, batch):
        return batch * self.run("insert into plain (body) select '%s' from generate_series(1, %d);\n" % (PAYLOAD, batch), connections)

    def take(self):
        count = "select count(*) from plain"
        with self.pg.connect() as conn, conn.cursor() as cur:
            cur.execute(count)
            before = cur.fetchone()[0]
            self.run("delete from plain where id in (select id from plain order by id limit 100 for update skip locked) returning body;\n", 8)
            cur.execute(count)
            return before - cur.fetchone()[0]

    def end_to_end(self, rate):
        return None  # it has no way to wait for a message

    def close(self):
        shutil.rmtree(self.folder)


class Queen:
    """Its load generator measures CPU itself, checks every message, and speaks HTTP."""
    name = "Queen"

    def __init__(self, pg):
        self.pg = pg
        self.broker = harness.Broker({**pg.env(), "NUM_WORKERS": "2"}).start()

    def bench(self, *args):
        done = subprocess.run([harness.BIN, "bench", "-u", "http://127.0.0.1:%d" % self.broker.port, "-d", "%d" % max(1, SECONDS), "--quiet", "--json", "-",
                               "--pg-pid", str(self.pg.process.pid), *args], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)
        r = harness.json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
        return r["cpuBrokerPerM"] + r["cpuPgPerM"], r

    def row(self, what):
        if what == "push 1, 64 connections":
            per_million, r = self.bench("-w", "push", "-c", "64")
            return per_million, "%d/s" % r["pushPerSecond"]
        if what == "push 100, 16 connections":
            per_million, r = self.bench("-w", "push", "-c", "16", "-b", "100")
            return per_million, "%d/s" % r["pushPerSecond"]
        if what == "take 100, settle":
            per_million, r = self.bench("-w", "popack", "-c", "8", "-B", "100", "-F", str(int(80000 * SECONDS)))
            return per_million, "%d/s" % r["popPerSecond"]
        per_million, r = self.bench("-w", "e2e", "-r", "200", "--ack")
        return per_million, "p50 %.1f, p99 %.1f ms" % (r["e2eMs"]["p50"], r["e2eMs"]["p99"])

    def close(self):
        self.broker.dispose()


def in_threads(work, n):
    threads = [threading.Thread(target=work, args=(str(i),)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def row_of(system, what):
    """(CPU-seconds per million messages, what else is worth saying), or None if the system cannot do it."""
    if isinstance(system, Queen):
        return system.row(what)
    before, begin = system.cpu(), time.monotonic()
    if what == "end to end, 200/s":
        done = system.end_to_end(200)
        if done is None:
            return None
        n, latencies = done
        more = "p50 %.1f, p99 %.1f ms" % (percentile(latencies, 0.5), percentile(latencies, 0.99))
    else:
        n = system.take() if what.startswith("take") else system.push(*((64, 1) if "64" in what else (16, 100)))
        more = "%d/s" % (n / (time.monotonic() - begin))
    time.sleep(0.5)  # until processes that have ended are counted
    return (system.cpu() - before) / n * 1e6, more


ROWS = ["push 1, 64 connections", "push 100, 16 connections", "take 100, settle", "end to end, 200/s"]


def main():
    if not shutil.which("redis-benchmark"):
        sys.exit("peers.py: needs redis-tools: tools/deps.sh bench")
    pg = harness.Postgres()
    pg.settings = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "1GB", "max_wal_size": "8GB"}
    pg.start()
    systems, table = [], {}
    try:
        for make in (lambda: Queen(pg), Redis, lambda: Insert(pg)):
            systems.append(make())
        for what in ROWS:  # the systems in turn, so that a change of the machine meets all of them
            for system in systems:
                table[system.name, what] = row_of(system, what)
                print("%s, %s: %s" % (system.name, what, table[system.name, what]), file=sys.stderr)
    finally:
        for system in systems:
            system.close()
        pg.stop()
    print("CPU-seconds of the servers per million messages; %.0f s a row; load average at the end %s\n" % (SECONDS, " ".join("%.1f" % x for x in os.getloadavg())))
    print("| system | %s |\n| --- |%s" % (" | ".join(ROWS), " --- |" * len(ROWS)))
    for system in systems:
        cells = [table[system.name, what] for what in ROWS]
        print("| %s | %s |" % (system.name, " | ".join("%.3g (%s)" % c if c else "" for c in cells)))


main()
