"""A `queen platform` process, and a MariaDB for tenants."""
import glob
import os
import pwd
import shutil
import subprocess
import tempfile

import harness


class Platform(harness.Broker):
    """A `queen platform` process of ours; .get, .post, .patch, .delete send requests."""

    book = "platform/docs/openapi"
    command = "platform"

    def __init__(self, env, args=(), port=None):
        super().__init__({}, args, port)
        self.env = {k: v for k, v in self.env.items() if not k.startswith("PLATFORM_")}
        # The databases of tests have no TLS.
        self.env.update({"PLATFORM_PORT": str(self.port), "PLATFORM_TENANT_ANY_AUTH": "true", **{k: str(v) for k, v in env.items()}})

    def embedded_postmaster(self):
        for path in glob.glob(os.path.join(self.env.get("PLATFORM_DATA_DIR", "/nonexistent"), "pg", "postmaster.pid")):
            with open(path) as f:
                return int(f.readline())
        return None

    def patch(self, path, body=None, **kw):
        return self.request("PATCH", path, body, **kw)

    def delete(self, path, **kw):
        return self.request("DELETE", path, **kw)

    def add_tenant(self, name, **more):
        """The new tenant, ready."""
        return self.post("/api/v1/tenants", {"name": name, **more}, timeout=60).expect(201).json

    def remove_tenant(self, name, drop=True):
        return self.delete("/api/v1/tenants/%s?drop=%s" % (name, str(drop).lower()), timeout=60)

    def tenants(self):
        return {t["tenant"]: t for t in self.get("/api/v1/tenants").expect(200).json["tenants"]}

    def pools(self):
        return self.get("/api/v1/pools").expect(200).json


class MariaDB:
    """A throw-away server; user queen with password bee may do everything."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="queen-e2e-my-")
        self.data, self.socket = os.path.join(self.root, "data"), os.path.join(self.root, "s")
        self.host, self.port, self.user, self.password = "127.0.0.1", harness.free_port(), "queen", "bee"
        self.prefix = []
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")  # any user that is not root
            os.chown(self.root, owner.pw_uid, owner.pw_gid)
            self.prefix = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
        self.process = None

    def start(self):
        subprocess.run(self.prefix + ["mariadb-install-db", "--no-defaults", "--datadir=" + self.data, "--auth-root-authentication-method=normal",
                                      "--skip-test-db", "--skip-name-resolve"], check=True, stdout=subprocess.DEVNULL, cwd=self.root)
        init = os.path.join(self.root, "init.sql")
        with open(init, "w") as f:
            f.write("create user if not exists queen@'%' identified by 'bee';\n"
                    "grant all on *.* to queen@'%' with grant option;\n")
        os.chmod(init, 0o644)
        return self.launch()

    def launch(self):
        with open(os.path.join(self.root, "log"), "ab") as log:
            self.process = subprocess.Popen(
                self.prefix + ["mariadbd", "--no-defaults", "--datadir=" + self.data, "--socket=" + self.socket, "--bind-address=127.0.0.1",
                               "--port=%d" % self.port, "--init-file=" + os.path.join(self.root, "init.sql"), "--pid-file=" +
                               os.path.join(self.root, "pid"), "--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.root)
        harness.wait_until(self.is_up, 30, "MariaDB up", 0.1)
        return self

    def is_up(self):
        if self.process.poll() is not None:
            with open(os.path.join(self.root, "log")) as f:
                raise AssertionError("MariaDB did not start:\n" + f.read()[-3000:])
        return self.ask("select 1", check=False) == [["1"]]

    def ask(self, sql, database=None, check=True):
        """Rows as lists of text, by MariaDB's own program."""
        p = subprocess.run(["mariadb", "--no-defaults", "-h", self.host, "-P", str(self.port), "-u", self.user, "-p" + self.password, "-N", "-B",
                            *([database] if database else []), "-e", sql], capture_output=True, text=True)
        if check and p.returncode:
            raise AssertionError(p.stderr)
        return [line.split("\t") for line in p.stdout.splitlines()]

    def create_database(self, name):
        self.ask("create database `%s` character set utf8mb4" % name)
        return name

    def url(self, database):
        return "mysql://%s:%s@%s:%d/%s" % (self.user, self.password, self.host, self.port, database)

    def halt(self):
        """Ends the server at once, as a crash would; the data stays."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)

    def stop(self):
        self.halt()
        shutil.rmtree(self.root, ignore_errors=True)
