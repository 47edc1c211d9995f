"""PgBouncer in transaction mode in front of a harness.Postgres."""
import os
import pwd
import shutil
import signal
import subprocess
import tempfile

import psycopg2

import harness

SETTINGS = {"pool_mode": "transaction", "auth_type": "any", "default_pool_size": "8", "max_client_conn": "500",
            "max_db_connections": "100", "admin_users": "boss", "server_login_retry": "1", "unix_socket_dir": ""}


class Pooler:
    def __init__(self, pg, **settings):
        self.pg, self.host, self.port = pg, "127.0.0.1", harness.free_port()
        self.folder = tempfile.mkdtemp(prefix="queen-e2e-pooler-")
        self.settings = {**SETTINGS, "listen_addr": self.host, "listen_port": self.port, **settings}
        self.backend = pg.port
        self.process = None
        self.log = os.path.join(self.folder, "log")

    def _write(self):
        path = os.path.join(self.folder, "pgbouncer.ini")
        with open(path, "w") as f:
            f.write("[databases]\n* = host=%s port=%d user=%s\n[pgbouncer]\n" % (self.pg.host, self.backend, self.pg.user))
            f.writelines("%s = %s\n" % item for item in self.settings.items())
        return path

    def start(self):
        path = self._write()
        command = ["pgbouncer", path]
        if os.getuid() == 0:  # it refuses to run as root
            owner = pwd.getpwnam("postgres")
            for name in (self.folder, path):
                os.chown(name, owner.pw_uid, owner.pw_gid)
            command = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] + command
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def probe():
            if self.process.poll() is not None:
                with open(self.log) as f:
                    raise AssertionError("pgbouncer did not start:\n" + f.read())
            try:
                self.admin("show version")
                return True
            except psycopg2.OperationalError:
                return False
        harness.wait_until(probe, 20, "pgbouncer up", 0.05)
        return self

    def admin(self, command):
        """Rows of a command of its console."""
        conn = psycopg2.connect(host=self.host, port=self.port, user="boss", dbname="pgbouncer")
        try:
            conn.autocommit = True
            with conn.cursor() as cur:
                cur.execute(command)
                return cur.fetchall() if cur.description else []
        finally:
            conn.close()

    def env(self, database=None):
        return {**self.pg.env(database), "PG_PORT": self.port}

    def move(self, port):
        """Later server connections are to the PostgreSQL on this port."""
        self.backend = port
        self._write()
        self.admin("reload")

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
