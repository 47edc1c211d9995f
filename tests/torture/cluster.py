"""The system under torture: brokers and their PostgreSQL, each of which may be in any state when it is used."""
import glob
import os
import socket
import subprocess

import psycopg2

from actor import Broker, wait_until
from disk import Disk
from server import Server
from standby import Pair

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
BUFFER_BYTES = 48 << 20


def udp_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Cluster:
    """One broker with the PostgreSQL inside, or two on one of their own, or on a primary with its standby."""

    def __init__(self, folder, brokers=2, standby=False):
        self.folder, self.brokers, self.buffers, self.clocks = folder, [], [], []
        self.server = None
        self.block = "queen_torture_%d" % os.getpid()  # table of the packet filter
        self.power = self._compile_power()
        self.addresses = ["127.0.0.%d" % (2 + i) for i in range(brokers)]
        self.udp_ports = [udp_port() for _ in range(brokers)] if brokers > 1 else []  # for their notifications
        self.has_standby = standby
        if standby:
            self.server = Pair(folder, self.addresses)
        elif brokers > 1:
            self.server = Server(folder, ["127.0.0.1"] + self.addresses)
        for i in range(brokers):
            self.brokers.append(self._make_broker(i))

    def _make_broker(self, i):
        disk = Disk(os.path.join(self.folder, "buffer-%d" % i), BUFFER_BYTES)
        self.buffers.append(disk)
        env = {"FILE_BUFFER_DIR": os.path.join(disk.path, "files"), "SIDECAR_POOL_SIZE": "8", "WORKER_ID": "torture-%d" % i,
               "LD_PRELOAD": self.power, "TORTURE_SYNCED": self.synced(i)}
        if self.udp_ports:
            env.update({"QUEEN_UDP_PEERS": ",".join("127.0.0.1:%d" % p for p in self.udp_ports), "QUEEN_SYNC_SECRET": "torture",
                        "QUEEN_UDP_NOTIFY_PORT": str(self.udp_ports[i])})
        if self.server is None:
            data = os.path.join(self.folder, "data")
            os.mkdir(data)
            os.chmod(data, 0o755)
            env["QUEEN_DATA_DIR"] = data
            self.clocks.append(None)  # its PostgreSQL would inherit the wrong clock
        else:
            env.update(self.server.env())
            if not self.has_standby:
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
        """The data that broker i has synced (power.c)."""
        return os.path.join(self.folder, "synced-%d" % i)

    def _fake_clock(self, i, env):
        """The file with the offset of the broker's clock; None without libfaketime."""
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

    # --- for the nemesis -------------------------------------------------------------------------------------------

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
