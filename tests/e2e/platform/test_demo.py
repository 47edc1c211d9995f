"""make demo: it starts, what it prints works, and it stops cleanly."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from harness import BIN, REPO, free_port


@pytest.fixture
def folder():
    """The embedded PostgreSQL runs as another user. It cannot enter tmp_path: every pytest that starts closes the parent of that folder."""
    path = tempfile.mkdtemp(prefix="queen-e2e-demo-")
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.embedded
def test_every_line_that_the_demo_prints_works_and_ctrl_c_ends_it(folder):
    env = {**os.environ, "QUEEN_BIN": BIN, "DEMO_BROKER_PORT": str(free_port()), "DEMO_PLATFORM_PORT": str(free_port()), "DEMO_CUSTOMERS": "60",
           "TMPDIR": folder, "XDG_CONFIG_HOME": os.path.join(folder, "config")}
    demo = subprocess.Popen(["/usr/bin/python3", os.path.join(REPO, "tools", "demo.py")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=env, cwd=REPO)
    try:
        text = ""
        end = time.monotonic() + 150
        while "Ctrl-C ends everything." not in text:
            assert time.monotonic() < end and demo.poll() is None, text
            text += demo.stdout.readline()
        lines = re.sub(r"\\\n\s*", "", text.split("Try, in another terminal:")[1])
        commands = [line.strip() for line in lines.splitlines() if line.startswith("  ")]
        assert len(commands) > 10
        export = commands.pop(0)
        for command in commands:
            p = subprocess.run(["bash", "-c", "%s; %s" % (export, command.replace("curl ", "curl -sSf "))], capture_output=True, text=True, env=env, cwd=REPO,
                               timeout=60)
            assert p.returncode == 0 and p.stdout, (command, p.stdout, p.stderr)
        demo.send_signal(signal.SIGINT)
        text += demo.communicate(timeout=60)[0]
        assert demo.returncode == 0 and "Stopped: platform (0), broker (0)" in text
        assert not [f for f in os.listdir(folder) if f.startswith("queen-demo-")]
    finally:
        if demo.poll() is None:
            demo.terminate()
            demo.wait(60)
