"""The system under torture: brokers and their PostgreSQL, each of which may be in any state when asked for something."""
import glob
import os
import shutil
import subprocess

import psycopg2

import actor  # noqa: F401  puts tests/e2e on the path
from harness import Broker, Postgres, wait_until

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
BUFFER_BYTES, WAL_BYTES = 48 << 20, 128 << 20


class Disk:
    """A small disk of its own that can be filled up; an ordinary folder without the right to mount."""

    def __init__(self, path, size):
        os.makedirs(path, exist_ok=True)
        self.path = path
        self.small = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d,mode=0777" % size, "queen-torture", path],
                                    stderr=subprocess.DEVNULL).returncode == 0

    def fill(self):
        """Not a page is left."""
        room = os.statvfs(self.path)
        with open(os.path.join(self.path, "ballast"), "wb") as f:
            os.posix_fallocate(f.fileno(), 0, max(1, room.f_bavail * room.f_frsize))

    def empty(self):
        path = os.path.join(self.path, "ballast")
        if os.path.exists(path):
            os.unlink(path)

    def cut_power(self, synced):
        """Everything that was not synced is gone; `synced` is what power.c has written."""
        sizes = {}
        if os.path.exists(synced):
            with open(synced) as f:
                sizes = dict(tuple(map(int, line.split())) for line in f)
        for path in glob.glob(os.path.join(self.path, "files", "*.buf*")):
            st = os.stat(path)
            if sizes.get(st.st_ino, 0) < st.st_size:
                os.truncate(path, sizes.get(st.st_ino, 0))

    def dispose(self):
        if self.small:
            subprocess.run(["umount", "-l", self.path], check=False)


class Server(Postgres):
    """PostgreSQL of two brokers: each reaches it under an address of its own, its log of changes is on a small disk."""

    def __init__(self, folder, addresses):
        super().__init__()
        self.wal = Disk(os.path.join(folder, "wal"), WAL_BYTES)
        wal = os.path.join(self.wal.path, "pg")
        os.mkdir(wal)
        shutil.chown(wal, os.stat(self.root).st_uid, os.stat(self.root).st_gid)
        # Small segments, so that a full disk is noticed at once.
        self.initdb_args = ["--waldir", wal, "--wal-segsize", "1"]
        self.settings = {"listen_addresses": ",".join(addresses), "max_wal_size": "48MB", "min_wal_size": "4MB"}

    @property
    def postmaster(self):
        return self.process.pid if self.process is not None and self.process.poll() is None else None

    def ensure(self):
        """Up again, however it went down."""
        if self.postmaster is None:
            self.launch()
        wait_until(self.answers, 60, "PostgreSQL answers", 0.05)

    def answers(self):
        try:
            self.connect().close()
            return True
        except psycopg2.Error:
            return False

    def stop(self):
        super().stop()
        self.wal.dispose()


class Cluster:
    """One broker with the PostgreSQL inside, or two on one of their own."""

    def __init__(self, folder, brokers=2, extra=None):
        self.folder, self.brokers, self.buffers, self.clocks = folder, [], [], []
        self.server = None
        self.block = "queen_torture_%d" % os.getpid()  # table of the packet filter
        self.power = self._compile_power()
        self.addresses = ["127.0.0.%d" % (2 + i) for i in range(brokers)]
        if brokers > 1:
            self.server = Server(folder, ["127.0.0.1"] + self.addresses)
        for i in range(brokers):
            self.brokers.append(self._make_broker(i, extra or {}))

    def _make_broker(self, i, extra):
        disk = Disk(os.path.join(self.folder, "buffer-%d" % i), BUFFER_BYTES)
        self.buffers.append(disk)
        env = {"FILE_BUFFER_DIR": os.path.join(disk.path, "files"), "SIDECAR_POOL_SIZE": "8", "WORKER_ID": "torture-%d" % i,
               "LD_PRELOAD": self.power, "TORTURE_SYNCED": self.synced(i), **extra}
        if self.server is None:
            data = os.path.join(self.folder, "data")
            os.mkdir(data)
            os.chmod(data, 0o755)
            env["QUEEN_DATA_DIR"] = data
            self.clocks.append(None)  # its PostgreSQL would inherit the wrong clock
        else:
            env.update(self.server.env())
            env["PG_HOST"] = self.addresses[i]
            env["DB_TCP_USER_TIMEOUT_MS"] = "3000"
            self.clocks.append(self._fake_clock(i, env))
        broker = Broker(env)
        os.unlink(broker.log)
        broker.log = os.path.join(self.folder, "broker-%d.log" % i)
        return broker

    def _compile_power(self):
        out = os.path.join(self.folder, "power.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", out, os.path.join(os.path.dirname(__file__), "power.c"), "-ldl"],
                       check=True)
        return out

    def synced(self, i):
        """What broker i has synced (power.c)."""
        return os.path.join(self.folder, "synced-%d" % i)

    def _fake_clock(self, i, env):
        """The file that says how far the broker's clock is off; None without libfaketime."""
        if not os.path.exists(FAKETIME):
            return None
        path = os.path.join(self.folder, "clock-%d" % i)
        with open(path, "w") as f:
            f.write("+0")
        env.update({"LD_PRELOAD": self.power + ":" + FAKETIME, "FAKETIME_TIMESTAMP_FILE": path, "FAKETIME_CACHE_DURATION": "1",
                    "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
        return path

    def start(self):
        if self.server:
            self.server.start()
        for b in self.brokers:
            b.start()
        return self

    @property
    def ports(self):
        return [b.port for b in self.brokers]

    # --- what the nemesis wants to know ---------------------------------------------------------------------------

    @property
    def postmaster(self):
        """Process id, or None while there is none."""
        pid = self.server.postmaster if self.server else self.brokers[0].embedded_postmaster()
        return pid if pid and os.path.exists("/proc/%d" % pid) else None

    def postgres_processes(self):
        """Process ids of the postmaster and its children: {pid: title}."""
        top = self.postmaster
        if top is None:
            return {}
        found = {top: "postmaster"}
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(path) as f:
                    pid, rest = f.read().split(" (", 1)
                if int(rest.rsplit(") ", 1)[1].split()[1]) == top:
                    with open("/proc/%s/cmdline" % pid) as f:
                        found[int(pid)] = f.read().replace("\0", " ")
            except OSError:
                pass  # it has gone meanwhile
        return found

    def backends(self):
        """Process ids of the brokers' sessions."""
        return sorted(pid for pid, title in self.postgres_processes().items() if "[local]" in title or "(" in title)

    def connect(self):
        if self.server:
            return self.server.connect()
        conn = psycopg2.connect(host=os.path.join(self.folder, "data", "run"), user="postgres", dbname="postgres")
        conn.autocommit = True
        return conn

    def sql(self, text, *args):
        """The rows of one statement, in a transaction of its own."""
        conn = self.connect()
        try:
            with conn.cursor() as cur:
                cur.execute(text, args or None)
                return cur.fetchall() if cur.description else []
        finally:
            conn.close()

    # --- back to health -------------------------------------------------------------------------------------------

    def heal(self):
        """Everything runs and answers."""
        if self.server:
            self.server.ensure()
        for b in self.brokers:
            b.forget()  # a connection to a process that is no more
            if not b.alive:
                b.spawn()
        for b in self.brokers:
            wait_until(b.is_ready, 90, "broker on port %d ready\n%s" % (b.port, b.log_tail()), 0.1)

    def buffered(self):
        """Messages in the buffers of all brokers."""
        return sum(b.get("/api/v1/status/buffers").expect(200).json["pending"] for b in self.brokers)

    def dispose(self):
        for b in self.brokers:
            b.dispose()
        if self.server:
            self.server.stop()
        for disk in self.buffers:
            disk.dispose()
