"""A primary and its standby, and the promotion of the standby."""
import os
import shutil
import subprocess

from server import Server, wait_until


class Pair:
    """Two servers under two addresses and one port. A commit is answered when both have it; without a standby one is enough."""

    def __init__(self, folder, addresses):
        self.servers = []
        for i, address in enumerate(addresses):
            where = os.path.join(folder, "server-%d" % i)
            os.mkdir(where)
            server = Server(where, [address])
            server.host = address
            server.port = self.servers[0].port if self.servers else server.port
            server.settings.update({"wal_level": "replica", "hot_standby": "on", "wal_sender_timeout": "5s"})
            self.servers.append(server)

    @property
    def primary(self):
        return self.servers[0]

    @property
    def port(self):
        return self.primary.port

    @property
    def postmaster(self):
        return self.primary.postmaster

    @property
    def process(self):
        return self.primary.process

    @property
    def wal(self):
        return self.primary.wal

    def env(self):
        return {**self.primary.env(), "PG_HOST": ",".join(sorted(s.host for s in self.servers))}

    def connect(self, **kw):
        return self.primary.connect(**kw)

    def start(self):
        self.primary.start()
        self.attach()
        return self

    def ensure(self):
        self.primary.ensure()

    def attach(self):
        """The second server becomes a copy of the first; from then on commits wait for it."""
        first, second = self.servers
        second.halt()
        for path in (second.data, os.path.join(second.wal.path, "pg")):
            shutil.rmtree(path, ignore_errors=True)
        subprocess.run(second.prefix + [os.path.join(second.bin, "pg_basebackup"), "-h", first.host, "-p", str(first.port),
                                        "-U", first.user, "-D", second.data, "--waldir", os.path.join(second.wal.path, "pg"),
                                        "-R", "-X", "stream", "-c", "fast", "--no-sync"], check=True, cwd=second.root)
        second.launch()
        wait_until(lambda: self.state() == "streaming", 60, "the standby streams", 0.1)
        self.demand("*")
        wait_until(lambda: self.state("sync_state") == "sync", 60, "the standby is synchronous", 0.1)

    def state(self, column="state"):
        conn = self.primary.connect()
        try:
            with conn.cursor() as cur:
                cur.execute("select %s from pg_stat_replication where application_name = 'walreceiver'" % column)
                row = cur.fetchone()
                return row and row[0]
        finally:
            conn.close()

    def demand(self, names):
        """Whom commits wait for."""
        conn = self.primary.connect()
        with conn.cursor() as cur:
            cur.execute("set synchronous_commit = local")
            cur.execute("alter system set synchronous_standby_names = %s", (names,))
            cur.execute("select pg_reload_conf()")
        conn.close()

    def cut_off(self):
        """The standby gets nothing any more, and commits do not wait for it. It has all that was committed before."""
        self.demand("")
        conn = self.servers[1].connect()
        with conn.cursor() as cur:
            cur.execute("alter system set primary_conninfo = ''")
            cur.execute("select pg_reload_conf()")

            def is_alone():
                cur.execute("select count(*) from pg_stat_wal_receiver")
                return cur.fetchone() == (0,)
            wait_until(is_alone, 30, "the standby is cut off", 0.02)
        conn.close()

    def promote(self):
        """The primary is gone; its standby takes over, alone for now."""
        self.servers[0].halt()
        self.servers.reverse()
        self.demand("")
        conn = self.primary.connect()
        with conn.cursor() as cur:
            cur.execute("select pg_promote()")
        conn.close()

    def stop(self):
        for s in self.servers:
            s.stop()
