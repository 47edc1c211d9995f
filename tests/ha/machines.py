"""Three database machines with the files of deploy/ha: etcd, Patroni and PostgreSQL, each in a network namespace of its own.

The process must be in network and mount namespaces of its own (ha.py sees to that). Addresses are those of deploy/ha.
"""
import json
import os
import pwd
import re
import signal
import subprocess
import urllib.error
import urllib.request

import psycopg2

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONFIG = os.path.join(REPO, "deploy", "ha")
NAMES = ["db1", "db2", "db3"]
HERE = "10.0.0.1"  # brokers and load balancer
PASSWORDS = {"superuser": "change-me-superuser"}


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, **options).stdout


def build_network():
    """A bridge with one cable to each machine."""
    run("mount", "-t", "tmpfs", "netns", "/run/netns")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "hub", "type", "bridge")
    run("ip", "addr", "add", HERE + "/24", "dev", "hub")
    run("ip", "link", "set", "hub", "up")
    for i, name in enumerate(NAMES):
        run("ip", "netns", "add", name)
        run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", name, "master", "hub", "up")
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "addr", "add", "10.0.0.%d/24" % (11 + i), "dev", "eth0")
        run("ip", "-n", name, "link", "set", "eth0", "up")


def ask(url, data=None, timeout=2.0):
    """(status, decoded answer); (0, None) without one."""
    request = urllib.request.Request(url, data=None if data is None else json.dumps(data).encode())
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()
    except OSError:
        return 0, None


class Machine:
    """One of them. Every process of it is in its network namespace, which is how they are found."""

    def __init__(self, folder, index):
        self.name, self.address = NAMES[index], "10.0.0.%d" % (11 + index)
        self.folder = os.path.join(folder, self.name)
        self.etcd = self.patroni = None
        os.mkdir(self.folder)
        owner = pwd.getpwnam("postgres")
        for sub in ("etcd", "run"):
            os.mkdir(os.path.join(self.folder, sub))
        self.write_files()
        for path in [self.folder] + [os.path.join(self.folder, f) for f in os.listdir(self.folder)]:
            os.chown(path, owner.pw_uid, owner.pw_gid)

    def write_files(self):
        """deploy/ha, with the name and address of this machine and with our folders."""
        with open(os.path.join(CONFIG, "patroni.yml")) as f:
            text = f.read()
        members = re.search(r"^  hosts: .*$", text, re.M).group(0)
        text = text.replace("10.0.0.11", self.address).replace("name: db1", "name: " + self.name)
        text = re.sub(r"^  hosts: .*$", members, text, flags=re.M)
        text = text.replace("/var/lib/postgresql/15/queen", os.path.join(self.folder, "data"))
        text = text.replace("/var/lib/postgresql/.pgpass-patroni", os.path.join(self.folder, "pgpass"))
        text = text.replace("/var/run/postgresql", os.path.join(self.folder, "run"))
        with open(os.path.join(self.folder, "patroni.yml"), "w") as f:
            f.write(text)
        with open(os.path.join(CONFIG, "etcd.env")) as f:
            lines = [line for line in f.read().splitlines() if line and not line.startswith("#")]
        env = dict(line.split("=", 1) for line in lines)
        self.etcd_env = {k: v if k == "ETCD_INITIAL_CLUSTER" else v.replace("10.0.0.11", self.address).replace("db1", self.name)
                         for k, v in env.items()}
        self.etcd_env["ETCD_DATA_DIR"] = os.path.join(self.folder, "etcd")

    def launch(self, what, command, env=None):
        with open(os.path.join(self.folder, what + ".log"), "ab") as log:
            return subprocess.Popen(["ip", "netns", "exec", self.name, "setpriv", "--reuid", "postgres", "--regid", "postgres",
                                     "--clear-groups"] + command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                                    env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": self.folder, **(env or {})})

    def start_etcd(self):
        if self.etcd is None or self.etcd.poll() is not None:
            if os.path.exists(os.path.join(self.folder, "etcd", "member")):
                self.etcd_env["ETCD_INITIAL_CLUSTER_STATE"] = "existing"
            self.etcd = self.launch("etcd", ["etcd"], self.etcd_env)

    def start_patroni(self):
        if self.patroni is None or self.patroni.poll() is not None:
            self.patroni = self.launch("patroni", ["patroni", os.path.join(self.folder, "patroni.yml")])

    def processes(self):
        """Process ids of Patroni and PostgreSQL, without etcd."""
        pids = [int(p) for p in run("ip", "netns", "pids", self.name).split()]
        return [p for p in pids if self.etcd is None or p != self.etcd.pid]

    def signal(self, number):
        for pid in self.processes():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def crash(self):
        """kill -9 of everything but etcd."""
        self.signal(signal.SIGKILL)
        self.patroni.wait(20)

    def cut(self, ports):
        """Drops packets from and to these TCP ports of other database machines."""
        others = ",".join("10.0.0.%d" % (11 + i) for i in range(3) if NAMES[i] != self.name)
        ports = ",".join(str(p) for p in ports)
        rules = "".join("ip %s { %s } tcp %s { %s } drop\n" % (where, others, port, ports)
                        for where in ("saddr", "daddr") for port in ("sport", "dport"))
        table = "table inet cut {\n%s}\n" % "".join("chain %s {\ntype filter hook %s priority 0;\n%s}\n" % (hook, hook, rules)
                                                   for hook in ("input", "output"))
        run("ip", "netns", "exec", self.name, "nft", "-f", "-", input=table)

    def unplug(self):
        run("ip", "-n", self.name, "link", "set", "eth0", "down")

    def connect_network(self):
        run("ip", "netns", "exec", self.name, "nft", "flush", "ruleset")
        run("ip", "-n", self.name, "link", "set", "eth0", "up")

    def is_primary(self):
        return ask("http://%s:8008/primary" % self.address)[0] == 200

    def state(self):
        text = ask("http://%s:8008/patroni" % self.address)[1]
        return json.loads(text) if text else {}

    def connect(self, database="postgres"):
        conn = psycopg2.connect(host=self.address, user="postgres", password=PASSWORDS["superuser"], dbname=database, connect_timeout=3)
        conn.autocommit = True
        return conn

    def stop(self):
        if self.etcd is not None:
            self.etcd.kill()
            self.etcd.wait()
            self.etcd = None
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
