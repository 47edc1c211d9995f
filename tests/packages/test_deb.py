"""The Debian packages in a throw-away system with its own systemd: install, use, upgrade, remove, purge.

`make test-deb` builds the packages first. The system is made by mmdebstrap once and kept as build/deb/root.tar. Needs root.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEB = os.path.join(REPO, "build", "deb")
TAR = os.path.join(DEB, "root.tar")
INSTALLED = ["systemd", "systemd-sysv", "dbus", "adduser", "postgresql-15", "man-db", "curl", "gcc", "libc6-dev", "pkg-config", "libssl-dev",
             "libuv1-dev", "zlib1g-dev", "libmariadb3", "libpq5"]


def run(*command, **options):
    r = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900, **options)
    assert r.returncode == 0, "%s\n%s%s" % (" ".join(command), r.stdout, r.stderr)
    return r.stdout


class Machine:
    """A root file system in which a systemd runs."""

    def __init__(self, folder):
        self.root = os.path.join(folder, "root")
        os.mkdir(self.root)
        run("tar", "-C", self.root, "-xf", TAR)
        os.mkdir(os.path.join(self.root, "debs"))
        for deb in glob.glob(os.path.join(DEB, "*.deb")):
            shutil.copy(deb, os.path.join(self.root, "debs"))
        self.log = open(os.path.join(folder, "boot.log"), "w+")
        group = "queen-test-%d" % os.getpid()
        self.group = os.path.join("/sys/fs/cgroup/systemd", group)
        self.process = subprocess.Popen([os.path.join(REPO, "tests/packages/boot.sh"), self.root, group],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.init = self.wait(self.find_init, "its systemd")
        self.wait(lambda: "running" in self.call("systemctl", "is-system-running").stdout
                  or "degraded" in self.call("systemctl", "is-system-running").stdout, "the end of its start")

    def find_init(self):
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
            pids = f.read().split()
        if not pids or "systemd" not in os.path.basename(os.readlink("/proc/%s/exe" % pids[0])):
            return None
        return pids[0]

    def wait(self, probe, what, timeout=300):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            value = probe()
            if value:
                return value
            assert self.process.poll() is None, "the machine ended"
            time.sleep(0.2)
        raise AssertionError("timed out: " + what)

    def call(self, *command, stdin=None):
        return subprocess.run(["nsenter", "--target", self.init, "--mount", "--pid", "--uts", "--ipc", "--net", "--root", "--wd", *command],
                              input=stdin, capture_output=True, text=True, timeout=900,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"})

    def must(self, *command, **options):
        r = self.call(*command, **options)
        assert r.returncode == 0, "%s\n%s%s\n%s" % (" ".join(command), r.stdout, r.stderr,
                                                   self.call("journalctl", "--no-pager", "-n", "40").stdout)
        return r.stdout

    def debs(self, *names):
        return ["/debs/" + os.path.basename(glob.glob(os.path.join(DEB, name + "_*.deb"))[0]) for name in names]

    def wait_ready(self):
        self.wait(lambda: self.call("curl", "-sf", "http://localhost:6632/ready").returncode == 0, "the broker to be ready: " +
                  self.call("systemctl", "status", "--no-pager", "queen").stdout)

    def stop(self):
        self.process.send_signal(signal.SIGKILL)  # --kill-child ends its systemd, and that all the others
        self.process.wait()
        self.log.close()


@pytest.fixture(scope="module")
def machine():
    if os.geteuid() != 0:
        pytest.fail("needs root: namespaces and a root file system")
    if not os.path.exists(TAR):
        run("mmdebstrap", "--variant=minbase", "--include=" + ",".join(INSTALLED), "bookworm", TAR)
    with tempfile.TemporaryDirectory(prefix="queen-deb-") as folder:
        m = Machine(folder)
        yield m
        m.stop()


def later_version(deb):
    """The same package with a higher version."""
    with tempfile.TemporaryDirectory() as folder:
        run("dpkg-deb", "-R", deb, folder + "/tree")
        control = folder + "/tree/DEBIAN/control"
        with open(control) as f:
            text = f.read()
        with open(control, "w") as f:
            f.write(re.sub(r"^Version: (.*)$", r"Version: \1.later", text, flags=re.M))
        run("dpkg-deb", "--root-owner-group", "-b", folder + "/tree", os.path.join(os.path.dirname(deb), "later.deb"))


# The tests are steps of one story, in this order.


def test_the_package_installs_and_the_service_runs(machine):
    machine.must("dpkg", "-i", *machine.debs("queen"))
    machine.wait_ready()
    assert machine.must("systemctl", "is-enabled", "queen").strip() == "enabled"
    assert machine.must("stat", "-c", "%U:%G %a", "/var/lib/queen").strip() == "queen:queen 750"
    assert machine.must("stat", "-c", "%U:%G %a", "/etc/queen/queen.env").strip() == "root:root 640"
    pid = machine.must("systemctl", "show", "-p", "MainPID", "--value", "queen").strip()
    assert machine.must("stat", "-c", "%U", "/proc/" + pid).strip() == "queen"
    assert re.fullmatch(r"queen \S+ \(commit [0-9a-f]{12}\)\n", machine.must("queen", "version"))


def test_messages_go_in_and_out(machine):
    machine.must("queen", "push", "orders", '{"total": 42}')
    out = machine.must("curl", "-s", "http://localhost:6632/api/v1/pop/queue/orders?autoAck=true")
    assert json.loads(out)["messages"][0]["data"] == {"total": 42}
    machine.must("queen", "push", "orders", '{"total": 43}')  # it must survive the upgrade


def test_manual_and_completion_are_there(machine):
    for page in ("queen", "queen-serve", "queen-commands", "queen-bench"):
        assert machine.must("man", page).startswith(page + "(")
    for path in ("/usr/share/bash-completion/completions/queen", "/usr/share/zsh/vendor-completions/_queen",
                 "/usr/share/fish/vendor_completions.d/queen.fish"):
        assert "queen" in machine.must("cat", path)


def test_settings_take_effect_after_a_restart(machine):
    machine.must("sh", "-c", "echo QUEEN_STOP_TIMEOUT_MS=7000 >>/etc/queen/queen.env && systemctl restart queen")
    machine.wait_ready()
    assert "QUEEN_STOP_TIMEOUT_MS=7000" in machine.must("cat", "/etc/queen/queen.env")


def test_wrong_settings_stop_the_service_with_the_reason(machine):
    machine.must("sed", "-i", "$ a PORT=none", "/etc/queen/queen.env")
    machine.call("systemctl", "restart", "queen")
    machine.wait(lambda: machine.call("systemctl", "is-failed", "queen").returncode == 0, "the service to fail")
    assert "PORT" in machine.must("journalctl", "--no-pager", "-u", "queen", "-n", "20")
    machine.must("sed", "-i", "/^PORT=none/ d", "/etc/queen/queen.env")
    machine.must("systemctl", "restart", "queen")
    machine.wait_ready()


def test_with_the_socket_no_client_is_refused_during_a_restart(machine):
    machine.must("systemctl", "stop", "queen")
    machine.must("systemctl", "start", "queen.socket")
    machine.must("systemctl", "start", "queen")
    machine.wait_ready()
    load = ("for i in $(seq 60); do curl -sS -m 60 -o /dev/null http://127.0.0.1:6632/live || exit 1; curl -sS -m 60 -o /dev/null"
            " 'http://[::1]:6632/live' || exit 1; sleep 0.05; done")
    client = subprocess.Popen(["nsenter", "--target", machine.init, "--mount", "--pid", "--net", "--root", "--wd", "sh", "-c", load],
                              stderr=subprocess.PIPE, text=True)
    machine.must("systemctl", "restart", "queen")
    machine.wait_ready()
    assert client.wait(300) == 0, client.stderr.read()
    machine.must("systemctl", "stop", "queen.socket", "queen")
    machine.must("systemctl", "start", "queen")
    machine.wait_ready()


def test_an_upgrade_restarts_the_service_and_keeps_messages_and_settings(machine):
    before = machine.must("systemctl", "show", "-p", "MainPID", "--value", "queen")
    later_version(glob.glob(os.path.join(machine.root, "debs", "queen_*.deb"))[0])
    machine.must("dpkg", "-i", "/debs/later.deb")
    machine.wait_ready()
    assert machine.must("systemctl", "show", "-p", "MainPID", "--value", "queen") != before
    assert "QUEEN_STOP_TIMEOUT_MS=7000" in machine.must("cat", "/etc/queen/queen.env")
    out = machine.must("curl", "-s", "http://localhost:6632/api/v1/pop/queue/orders?autoAck=true")
    assert json.loads(out)["messages"][0]["data"] == {"total": 43}


def test_the_client_library_links(machine):
    machine.must("dpkg", "-i", *machine.debs("libqueenclient1", "libqueenclient-dev"))
    source = "#include <queen/client.h>\n#include <queen/version.h>\n#include <stdio.h>\nint main(void) { puts(queen_version()); return 0; }\n"
    machine.must("sh", "-c", "cat >/tmp/a.c", stdin=source)
    machine.must("sh", "-c", "cc -o /tmp/a /tmp/a.c $(pkg-config --cflags --libs libqueenclient) && "
                             "cc -o /tmp/b /tmp/a.c $(pkg-config --cflags libqueenclient) -l:libqueenclient.a $(pkg-config --libs libuv libssl libcrypto zlib) -lm")
    versions = machine.must("/tmp/a"), machine.must("/tmp/b")
    assert versions[0] == versions[1] and re.fullmatch(r"\d+\.\d+\.\d+\n", versions[0])
    assert "libqueenclient.so.1" in machine.must("ldd", "/tmp/a") and "libqueenclient.so" not in machine.must("ldd", "/tmp/b")


def test_the_platform_is_installed_but_not_started(machine):
    machine.must("dpkg", "-i", *machine.debs("queen-platform"))
    assert machine.call("systemctl", "is-active", "queen-platform").stdout.strip() == "inactive"
    machine.must("systemctl", "start", "queen-platform")  # as installed: the broker of this machine, and its own database
    machine.wait(lambda: machine.call("curl", "-sf", "http://localhost:6642/ready").returncode == 0, "the platform to be ready")
    assert machine.must("stat", "-c", "%U", "/var/lib/queen-platform").strip() == "queen-platform"


def test_removal_stops_the_services_and_keeps_settings_and_messages(machine):
    machine.must("dpkg", "-r", "queen-platform", "libqueenclient-dev", "libqueenclient1", "queen")
    assert machine.call("curl", "-s", "http://localhost:6632/live").returncode != 0
    assert machine.call("pgrep", "-u", "queen").stdout == ""
    machine.must("test", "-e", "/etc/queen/queen.env")
    assert machine.call("test", "-e", "/usr/bin/queen").returncode != 0


def test_purge_removes_the_settings_but_no_messages(machine):
    r = machine.call("dpkg", "-P", "queen", "queen-platform")
    assert r.returncode == 0 and "/var/lib/queen" in r.stderr, r.stderr
    assert machine.call("test", "-e", "/etc/queen").returncode != 0
    machine.must("test", "-d", "/var/lib/queen/pg")
