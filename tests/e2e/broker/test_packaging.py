"""Packages, tarball, units and the installation of build tools: what can be checked without building a package."""
import hashlib
import os
import re
import shutil
import subprocess
import textwrap

import pytest

from harness import BIN, REPO

DEBIAN = os.path.join(REPO, "deploy", "debian")


def read(*path):
    with open(os.path.join(REPO, *path)) as f:
        return f.read()


def version():
    return re.search(r"^  version: '([^']+)'", read("meson.build"), re.M).group(1)


def has_git():
    """Whether this is a repository that git reads, and the tools of the tarball are there."""
    return bool(shutil.which("git") and shutil.which("xz")) and \
        subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPO, capture_output=True).returncode == 0


def test_one_version_everywhere():
    assert re.match(r"queen \(%s-\d+\) " % re.escape(version()), read("deploy", "debian", "changelog"))
    assert "## %s\n" % version() in read("CHANGELOG.md")
    assert '"%s"' % version() in read("client", "include", "queen", "version.h")
    assert "soversion: '%s'" % version().split(".")[0] in read("client", "src", "meson.build")
    assert "\nPackage: libqueenclient%s\n" % version().split(".")[0] in read("deploy", "debian", "control")


def test_scripts_that_make_runs_are_executable():
    run = re.findall(r"(?m)(?:^\t@?|; do |\|\| )((?:tools|tests|bench)/\S+\.(?:sh|py))\b", read("Makefile"))
    assert "tests/versions/fetch.sh" in run and "tools/deps.sh" in run
    assert [path for path in run if not os.access(os.path.join(REPO, path), os.X_OK)] == []


def test_the_program_names_its_commit():
    r = subprocess.run([BIN, "version"], capture_output=True, text=True, timeout=20)
    named = re.fullmatch(r"queen (\S+) \(commit ([0-9a-f]{12}(?:-dirty)?|unknown)\)\n", r.stdout)
    assert named and named.group(1) == version(), r.stdout


@pytest.mark.skipif(not has_git(), reason="needs the repository")
def test_the_tarball_is_reproducible_and_names_its_commit(tmp_path):
    sums = []
    for name in "ab":
        subprocess.run([os.path.join(REPO, "tools/dist.sh"), "1.2.3", str(tmp_path / name)], check=True, capture_output=True,
                       env={**os.environ, "TZ": "Asia/Tokyo" if name == "b" else "UTC", "XZ_OPT": "-1" if name == "b" else ""})
        sums.append(hashlib.sha256((tmp_path / name / "queen-1.2.3.tar.xz").read_bytes()).hexdigest())
        subprocess.run(["sha256sum", "--check", "--status", "queen-1.2.3.tar.xz.sha256"], cwd=tmp_path / name, check=True)
    assert sums[0] == sums[1]
    subprocess.run(["tar", "xf", str(tmp_path / "a" / "queen-1.2.3.tar.xz"), "-C", str(tmp_path)], check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPO, capture_output=True, text=True, check=True).stdout.strip()
    named = subprocess.run([str(tmp_path / "queen-1.2.3" / "tools" / "commit.sh")], capture_output=True, text=True, check=True)
    assert named.stdout == head[:12] + "\n"


def test_every_packaged_file_of_the_repository_exists():
    for name in os.listdir(DEBIAN):
        if name.endswith(".install"):
            for line in read("deploy", "debian", name).splitlines():
                source = line.split()[0]
                if not source.startswith("usr/"):
                    assert os.path.exists(os.path.join(REPO, source)), "%s: %s" % (name, source)


@pytest.mark.parametrize("program", ["queen", "queen-platform"])
def test_unit_and_package_agree(program):
    unit = read("deploy", "systemd", program + ".service")
    installed = read("deploy", "debian", program + ".install")
    binary = re.search(r"^ExecStart=/(\S+)", unit, re.M).group(1)
    settings = re.search(r"^EnvironmentFile=-/(\S+)", unit, re.M).group(1)
    user = re.search(r"^User=(\S+)", unit, re.M).group(1)
    assert binary in installed.split()
    assert os.path.dirname(settings) in installed.split()
    assert os.path.exists(os.path.join(REPO, "deploy", "systemd", os.path.basename(settings)))
    assert read("deploy", "systemd", "sysusers", user + ".conf").startswith("u %s " % user)


@pytest.mark.parametrize("name", ["queen.env", "platform.env"])
def test_the_settings_of_a_fresh_installation_are_all_comments(name):
    lines = [line for line in read("deploy", "systemd", name).splitlines() if line and not line.startswith("#")]
    assert lines == []


def fake_tools(folder, locked_calls, error):
    """dpkg-query, apt-cache and apt-get of a machine where nothing is installed and another apt-get runs at first."""
    programs = {
        "dpkg-query": "exit 1",
        "apt-cache": 'echo "$2 | 1 | archive"',
        "id": "echo 0",
        "npm": "exit 0",
        "sleep": "exit 0",
        "apt-get": """
            n=$(cat {0}/calls 2>/dev/null || echo 0)
            echo $((n + 1)) >{0}/calls
            if [ "$n" -lt {1} ]; then echo "E: {2}" >&2; exit 100; fi
            echo "$*" >>{0}/done
            """.format(folder, locked_calls, error),
    }
    for name, text in programs.items():
        path = folder / name
        path.write_text("#!/bin/bash\n" + textwrap.dedent(text) + "\n")
        path.chmod(0o755)


LOCKED = "Could not get lock /var/lib/apt/lists/lock. It is held by process 17 (apt-get)"


def install_tools(folder):
    return subprocess.run([os.path.join(REPO, "tools/deps.sh"), "test-deb"], capture_output=True, text=True, timeout=60,
                          env={"PATH": "%s:/usr/bin:/bin" % folder})


def test_installing_tools_waits_for_another_apt_get(tmp_path):
    fake_tools(tmp_path, 3, LOCKED)
    r = install_tools(tmp_path)
    assert r.returncode == 0, r.stdout + r.stderr
    assert "waiting" in r.stdout
    done = (tmp_path / "done").read_text()
    assert "update" in done and "mmdebstrap" in done


def test_installing_tools_does_not_repeat_another_error(tmp_path):
    fake_tools(tmp_path, 100, "Unable to locate package")
    r = install_tools(tmp_path)
    assert r.returncode != 0 and "Unable to locate package" in r.stderr
    assert (tmp_path / "calls").read_text() == "1\n"
