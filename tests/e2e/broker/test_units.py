"""The systemd units: how much they protect the system, as systemd itself judges it."""
import os
import re
import shutil
import subprocess

import pytest

from harness import REPO

UNITS = ["queen.service", "queen-platform.service"]
MOST = 2.0  # 0 is the safest


@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_exposes_little(unit):
    assert shutil.which("systemd-analyze"), "tools/deps.sh test installs systemd"
    r = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", os.path.join(REPO, "deploy/systemd", unit)],
                       capture_output=True, text=True)
    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", r.stdout)
    assert level, r.stdout + r.stderr
    assert float(level.group(1)) <= MOST, r.stdout


@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_has_the_promised_settings(unit):
    with open(os.path.join(REPO, "deploy/systemd", unit)) as f:
        text = f.read()
    for line in ("CapabilityBoundingSet=", "UMask=0077", "NoNewPrivileges=yes", "SystemCallFilter=@system-service"):
        assert line in text.splitlines(), line
    assert "LoadCredential=" in text
