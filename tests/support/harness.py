"""The base of the black-box tests: a temporary PostgreSQL, broker processes, and an HTTP client that changes nothing in requests.

Environment:
  QUEEN_BIN            the binary (default <repo>/build/queen)
  QUEEN_START_TIMEOUT  seconds a broker may take to be ready (default 40; raise it for sanitizer builds)
  QUEEN_TIME_FACTOR    multiplies every upper bound on a latency (default 1; 5 or so for sanitizer builds); a busy machine gets more
                       time by itself, see slowness()
  QUEEN_TEST_BROKERS   2: the broker of the session is two on one database, which take its requests in turn; tests marked
                       one_broker are left out (default 1)
  QUEEN_TEST_POOLER    1: the ordinary brokers reach PostgreSQL through PgBouncer in transaction mode (default 0)
  QUEEN_TEST_PORTS     range of ports, default 21300-21499
  PG_BIN               folder of initdb and postgres
"""
import glob
import http.client
import itertools
import json
import math
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from urllib.parse import quote, urlencode

import psycopg2
import pytest

import contract

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("QUEEN_BIN", os.path.join(REPO, "build", "queen"))
START_TIMEOUT = float(os.environ.get("QUEEN_START_TIMEOUT", "40"))
BROKERS = int(os.environ.get("QUEEN_TEST_BROKERS", "1"))
POOLER = os.environ.get("QUEEN_TEST_POOLER", "0") == "1"
TIME_FACTOR = float(os.environ.get("QUEEN_TIME_FACTOR", "1"))
QUEUE_MODE = "__QUEUE_MODE__"
ZERO_UUID = "00000000-0000-0000-0000-000000000000"
# A kept-alive connection may be closed by the server after 60 s of silence; before that, a close is an error.
IDLE_LIMIT = 45.0

_low, _high = (int(x) for x in os.environ.get("QUEEN_TEST_PORTS", "21300-21499").split("-"))
_ports = itertools.cycle(range(_low, _high + 1))
_ports_lock = threading.Lock()


def free_port():
    """A port of our range that is free now."""
    for _ in range(_high - _low + 1):
        with _ports_lock:
            port = next(_ports)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("0.0.0.0", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no free port between %d and %d" % (_low, _high))


def slowness():
    """How many times longer than on an idle machine things may take now: the load per core, at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def patience(seconds):
    """An upper bound on what takes so many seconds on an idle machine, for the build under test and the load of this moment."""
    return seconds * max(1.0, TIME_FACTOR, slowness())


def let_arrive(seconds=0.3):
    """Sleeps until a request of another thread has reached the broker and waits there, most likely: longer on a busy machine."""
    time.sleep(max(seconds, min(3.0, seconds * slowness())))


def unit_of_time():
    """A whole number of seconds, 1 on an idle machine, of which a few requests take only a small part."""
    return min(5, math.ceil(slowness() / 4))


def deadline_after(timeout):
    """When to give up waiting. A busy machine gets more time, but no more than five minutes unless the caller allows them."""
    return time.monotonic() + max(timeout, min(300.0, timeout * slowness()))


def wait_until(probe, timeout, what, interval=0.02):
    """Calls probe until it gives something true; the value is the result."""
    begin, deadline = time.monotonic(), deadline_after(timeout)
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("timed out after %.1f s: %s" % (time.monotonic() - begin, what))
        time.sleep(interval)


def wait_for_figures(broker, probe, what):
    """wait_until for maintained figures.

    A page counts small changes itself; what a test before left behind in thousands of partitions it leaves to the next
    pass, which we do not wait for but ask for, again if it did not bring everything.
    """
    def refreshed():
        broker.post("/api/v1/stats/refresh").expect(200)
        return probe()
    return probe() or wait_until(refreshed, 10 * TIME_FACTOR, what, interval=0.3)


def in_parallel(functions, timeout=60):
    """Runs the functions at the same moment, one thread each; results in order, the first exception is raised."""
    functions = list(functions)
    results, errors = [None] * len(functions), []
    gate = threading.Barrier(len(functions))
    deadline = deadline_after(timeout)

    def run(i, f):
        try:
            gate.wait(deadline - time.monotonic())
            results[i] = f()
        except BaseException as e:  # handed to the caller below
            errors.append(e)

    threads = [threading.Thread(target=run, args=(i, f), daemon=True) for i, f in enumerate(functions)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(max(0.1, deadline - time.monotonic()))
        if t.is_alive():
            raise AssertionError("a parallel call did not end within %s s" % timeout)
    if errors:
        raise errors[0]
    return results


class Background:
    """One call in a thread of its own; `result()` waits for it, `seconds` is how long it took."""

    def __init__(self, function):
        self.value, self.error, self.seconds = None, None, None
        self.ended = None
        self.thread = threading.Thread(target=self._run, args=(function,), daemon=True)
        self.thread.start()

    def _run(self, function):
        begin = time.monotonic()
        try:
            self.value = function()
        except BaseException as e:  # raised again in result()
            self.error = e
        self.ended = time.monotonic()
        self.seconds = self.ended - begin

    @property
    def done(self):
        return not self.thread.is_alive()

    def result(self, timeout=30):
        self.thread.join(deadline_after(timeout) - time.monotonic())
        if self.thread.is_alive():
            raise AssertionError("no answer within %s s" % timeout)
        if self.error:
            raise self.error
        return self.value


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def expect(self, status):
        assert self.status == status, "expected %s, got %s: %s" % (status, self.status, self.text[:2000])
        return self

    def __repr__(self):
        return "<%s %s>" % (self.status, self.text[:300])


class Client:
    """HTTP/1.1 with one kept-alive connection per thread. Never retries: a dropped connection is a failure."""

    book = "docs/reference/openapi"  # the folder that describes the answers

    def __init__(self, host, port):
        self.host, self.port = host, port
        self.url = "http://%s:%d" % (host, port)
        self._local = threading.local()
        self.twin = None  # a client of another broker that takes every second request
        self._turns = itertools.count()

    def _connection(self, timeout):
        conn = getattr(self._local, "conn", None)
        if conn is not None and time.monotonic() - self._local.used > IDLE_LIMIT:
            conn.close()
            conn = None
        if conn is None:
            conn = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
            conn.connect()
            conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._local.conn = conn
        conn.sock.settimeout(timeout)
        return conn

    def forget(self):
        """Drops this thread's connection (after a restart of the broker)."""
        conn = getattr(self._local, "conn", None)
        if conn is not None:
            conn.close()
        self._local.conn = None

    def request(self, method, path, body=None, headers=None, timeout=None):
        """body: bytes or str go as they are; anything else is sent as JSON. timeout: in seconds, instead of 30 on an idle machine."""
        timeout = timeout or patience(30)
        if self.twin is not None and next(self._turns) % 2:
            return self.twin.request(method, path, body, headers, timeout)
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode("utf-8")
        sent = {"Content-Type": "application/json"} if body is not None else {}
        sent.update(headers or {})
        try:
            conn = self._connection(timeout)
            conn.request(method, path, body=body, headers=sent)
            r = conn.getresponse()
            data = r.read()
        except BaseException:
            self.forget()
            raise
        if r.will_close:
            self.forget()
        self._local.used = time.monotonic()
        answer = Response(r.status, {k.lower(): v for k, v in r.getheaders()}, data)
        contract.record(method, path, answer.status, answer.headers, data, self.book)
        return answer

    def get(self, path, **kw):
        return self.request("GET", path, **kw)

    def post(self, path, body=None, **kw):
        return self.request("POST", path, body, **kw)

    # --- the operations of the contract -------------------------------------------------------------------------

    def configure(self, queue, namespace=None, task=None, **options):
        body = {"queue": queue, "options": options}
        if namespace is not None:
            body["namespace"] = namespace
        if task is not None:
            body["task"] = task
        return self.post("/api/v1/configure", body).expect(200).json

    def push(self, items, **kw):
        """The raw answer to a push of these items."""
        return self.post("/api/v1/push", {"items": items}, **kw)

    def put(self, queue, payloads, partition=None, ids=None):
        """Pushes payloads that must all be queued; the results in order."""
        items = []
        for i, p in enumerate(payloads):
            item = {"queue": queue, "payload": p}
            if partition is not None:
                item["partition"] = partition
            if ids is not None:
                item["transactionId"] = ids[i]
            items.append(item)
        results = self.push(items).expect(201).json
        assert [r["status"] for r in results] == ["queued"] * len(items), results
        return results

    def pop(self, queue=None, partition=None, http_timeout=None, **params):
        path = "/api/v1/pop"
        if queue is not None:
            path += "/queue/" + quote(queue, safe="")
        if partition is not None:
            path += "/partition/" + quote(partition, safe="")
        query = {k: ("true" if v is True else "false" if v is False else v) for k, v in params.items() if v is not None}
        if query:
            path += "?" + urlencode(query)
        if http_timeout is None:
            http_timeout = int(params.get("timeout", 30000)) / 1000 + patience(15)
        return self.get(path, timeout=http_timeout)

    def take(self, queue=None, partition=None, **params):
        """The messages of a pop, [] for 204. Anything else fails."""
        r = self.pop(queue, partition, **params)
        if r.status == 204:
            assert r.body == b"", "a 204 with a body: %r" % r
            return []
        messages = r.expect(200).json["messages"]
        assert messages, "200 without messages: %r" % r
        return messages

    def ack_entry(self, message, status=None, lease=True, **more):
        entry = {"transactionId": message["transactionId"], "partitionId": message["partitionId"]}
        if status is not None:
            entry["status"] = status
        if lease is True:
            if message.get("leaseId"):
                entry["leaseId"] = message["leaseId"]
        elif lease:
            entry["leaseId"] = lease
        entry.update(more)
        return entry

    def ack(self, message, status="completed", lease=True, **more):
        """Acknowledges one message in the group that popped it; the one result."""
        entry = self.ack_entry(message, status, lease)
        if message.get("consumerGroup"):
            entry["consumerGroup"] = message["consumerGroup"]
        entry.update(more)
        results = self.post("/api/v1/ack", entry).expect(200).json
        assert isinstance(results, list) and len(results) == 1, results
        return results[0]

    def ack_batch(self, entries, group=None):
        """entries: as sent, or popped messages together with `completed` for all."""
        entries = [self.ack_entry(e) if "data" in e else e for e in entries]
        body = {"acknowledgments": entries}
        if group is not None:
            body["consumerGroup"] = group
        results = self.post("/api/v1/ack/batch", body).expect(200).json
        assert len(results) == len(entries), results
        return results

    def transaction(self, operations, required=None):
        body = {"operations": operations}
        if required is not None:
            body["requiredLeases"] = required
        return self.post("/api/v1/transaction", body).expect(200).json

    def extend(self, lease, seconds=None):
        return self.post("/api/v1/lease/%s/extend" % quote(lease, safe=""),
                         None if seconds is None else {"seconds": seconds})

    def drain(self, queue, limit=100000, **params):
        """Pops with autoAck until the queue is empty; all messages in the order of delivery."""
        params.setdefault("batch", 1000)
        params.setdefault("partitions", 1000)
        out = []
        while len(out) < limit:
            got = self.take(queue, autoAck=True, **params)
            if not got:
                return out
            out += got
        return out


class Broker(Client):
    """A `queen serve` process of ours."""

    command = "serve"

    def __init__(self, env, args=(), port=None):
        super().__init__("127.0.0.1", port or free_port())
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("PG", "QUEEN_", "SIDECAR_", "POP_WAIT", "JWT_", "FILE_BUFFER_")) and k not in ("PORT", "HOST")}
        self.env.update({"PORT": str(self.port), "NUM_WORKERS": "2", "LOG_LEVEL": "info"})
        self.env.update({k: str(v) for k, v in env.items()})
        self.buffers = None
        if "FILE_BUFFER_DIR" not in self.env and "QUEEN_DATA_DIR" not in self.env:
            self.buffers = tempfile.mkdtemp(prefix="queen-%d-buffers-" % self.port)  # of one process alone
            self.env["FILE_BUFFER_DIR"] = self.buffers
        self.args = list(args)
        fd, self.log = tempfile.mkstemp(prefix="queen-%d-" % self.port, suffix=".log")
        os.close(fd)
        self.process = None

    def spawn(self):
        if not os.path.exists(BIN):
            raise AssertionError("no broker binary at %s (set QUEEN_BIN or run make)" % BIN)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([BIN, self.command] + self.args, env=self.env, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, cwd=tempfile.gettempdir(),
                                            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))  # nohup ignores it
        return self

    def start(self, timeout=None):
        self.spawn()
        self.wait_ready(timeout or START_TIMEOUT)
        return self

    def is_ready(self):
        try:
            probe = Client(self.host, self.port)
            status = probe.get("/ready", timeout=5).status
            probe.forget()
            return status == 200
        except (OSError, http.client.HTTPException):
            return False

    def wait_ready(self, timeout):
        def probe():
            if self.process.poll() is not None:
                raise AssertionError("the broker ended with %s while starting:\n%s"
                                     % (self.process.returncode, self.log_tail()))
            return self.is_ready()
        try:
            wait_until(probe, timeout, "broker ready on port %d" % self.port, 0.05)
        except AssertionError as e:
            raise AssertionError("%s\n%s" % (e, self.log_tail())) from None

    def log_text(self):
        with open(self.log, "r", errors="replace") as f:
            return f.read()

    def log_tail(self, lines=60):
        return "\n".join(self.log_text().splitlines()[-lines:])

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    def terminate(self, timeout=20):
        """SIGTERM and wait; the exit code."""
        if self.alive:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(patience(timeout))

    def kill(self):
        if self.alive:
            self.process.kill()
            self.process.wait(10)

    def embedded_postmaster(self):
        """Process id of the embedded PostgreSQL, or None."""
        for path in glob.glob(os.path.join(self.env.get("QUEEN_DATA_DIR", "/nonexistent"), "**", "postmaster.pid"),
                              recursive=True):
            with open(path) as f:
                return int(f.readline())
        return None

    def dispose(self):
        """Ends the process whatever state it is in, and its PostgreSQL if it left one behind; the exit code."""
        if self.process is None:
            self._forget_buffers()
            return None
        postmaster = self.embedded_postmaster()
        if self.alive:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
        if postmaster:
            try:
                with open("/proc/%d/comm" % postmaster) as f:
                    if f.read().startswith("postgres"):
                        os.kill(postmaster, signal.SIGQUIT)
            except OSError:
                pass  # it went with the broker, as it should
        self._forget_buffers()
        return self.process.returncode

    def _forget_buffers(self):
        if self.buffers:
            shutil.rmtree(self.buffers, ignore_errors=True)


def is_blocked(pg):
    """A session waits for a row that another transaction has locked."""
    with pg.connect() as conn, conn.cursor() as cur:
        cur.execute("select count(*) from pg_locks where not granted and locktype in ('tuple', 'transactionid')")
        return cur.fetchone()[0] > 0


def await_lock(pg, waits):
    """A broker's request (Background) meets a locked row. It waits in PostgreSQL for 100 ms, and then in memory, so a slow machine may not see that."""
    end = time.monotonic() + 3
    wait_until(lambda: is_blocked(pg) or time.monotonic() > end, 20, "a session waits for the row")
    assert not waits.done


living = []  # processes whose log belongs into the report of a failing test
_SANITIZER = re.compile(r"(Address|Leak|Thread|Memory)Sanitizer|runtime error:")


def begin(environment, args=()):
    """A broker that is ready."""
    broker = Broker(environment, args)
    living.append(broker)
    try:
        return broker.start()
    except BaseException:
        broker.dispose()
        raise


def end(process, clean_exit=False):
    """Ends one of them; a sanitizer's complaint, or a bad end where a clean one is due, is an error of the tests."""
    code = process.dispose()
    text = process.log_text() if os.path.exists(process.log) else ""
    if process in living:
        living.remove(process)
    if os.path.exists(process.log):
        os.unlink(process.log)
    if _SANITIZER.search(text) or (clean_exit and code != 0):
        pytest.fail("%s on port %d ended with %s:\n%s" % (process.command, process.port, code, text[-6000:]), pytrace=False)


class Postgres:
    """A throw-away cluster for functional tests: fsync off, everything else as it comes."""

    def __init__(self):
        self.bin = os.environ.get("PG_BIN") or sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        self.root = tempfile.mkdtemp(prefix="queen-e2e-pg-")
        self.host, self.port, self.user, self.database = "127.0.0.1", free_port(), "postgres", "postgres"
        self.prefix = []
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(self.root, owner.pw_uid, owner.pw_gid)
            self.prefix = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
        self.data, self.log = os.path.join(self.root, "data"), os.path.join(self.root, "log")
        self.initdb_args, self.settings = [], {}  # more of both
        self.process = None
        self.pooler = None  # brokers connect through it

    def start(self):
        subprocess.run(self.prefix + [os.path.join(self.bin, "initdb"), "-D", self.data, "-U", self.user, "-A", "trust",
                                      "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"] + self.initdb_args,
                       check=True, stdout=subprocess.DEVNULL, cwd=self.root)
        return self.launch()

    def launch(self):
        """Starts the server on the data that is there (after halt)."""
        settings = {"port": self.port, "listen_addresses": self.host, "unix_socket_directories": self.root,
                    "fsync": "off", "full_page_writes": "off", "max_connections": "200", "max_prepared_transactions": "4", "shared_buffers": "128MB",
                    "log_min_messages": "warning", **self.settings}
        command = self.prefix + [os.path.join(self.bin, "postgres"), "-D", self.data]
        for k, v in settings.items():
            command += ["-c", "%s=%s" % (k, v)]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.root)

        def probe():
            if self.process.poll() is not None:
                with open(self.log) as f:
                    raise AssertionError("PostgreSQL did not start:\n" + f.read())
            try:
                self.connect().close()
                return True
            except psycopg2.OperationalError:
                return False
        wait_until(probe, 30, "PostgreSQL up", 0.05)
        return self

    def connect(self, autocommit=True, database=None):
        """A new psycopg2 connection; the caller closes it."""
        conn = psycopg2.connect(host=self.host, port=self.port, user=self.user, dbname=database or self.database)
        conn.autocommit = autocommit
        return conn

    def create_database(self, name):
        conn = self.connect()
        conn.cursor().execute('create database "%s"' % name)
        conn.close()
        return name

    def env(self, database=None):
        return {"PG_HOST": self.host, "PG_PORT": (self.pooler or self).port, "PG_USER": self.user, "PG_PASSWORD": "postgres",
                "PG_DB": database or self.database}

    def halt(self):
        """Ends the server at once, as a crash would; the data stays."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()

    def stop(self):
        self.halt()
        shutil.rmtree(self.root, ignore_errors=True)


def uuid7(ms=None):
    """A UUIDv7 as the official clients make them."""
    ms = int(time.time() * 1000) if ms is None else ms
    rand = uuid.uuid4().int & ((1 << 74) - 1)
    value = (ms & ((1 << 48) - 1)) << 80 | 7 << 76 | (rand >> 62) << 64 | 2 << 62 | (rand & ((1 << 62) - 1))
    return str(uuid.UUID(int=value))


def is_uuid(text):
    try:
        return isinstance(text, str) and str(uuid.UUID(text)) == text
    except ValueError:
        return False
