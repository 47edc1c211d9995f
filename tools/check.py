#!/usr/bin/python3
"""Everything that must hold before a push; `make check` starts it.   tools/check.py [PART...]

Prints one line per part with its time. The first part that fails ends the run: its name and the end of its output are shown, and the
exit status is 1. The whole output of a part is in build/check/PART.log. With names it runs only those parts.
"""
import os
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOGS = os.path.join(ROOT, "build", "check")
LINES = 80  # of the output of a part that failed

UNIT = "meson test -C build/%s --suite unit --print-errorlogs"
SLOW = {"QUEEN_BIN": ROOT + "/build/asan/queen", "QUEEN_TIME_FACTOR": "5", "QUEEN_START_TIMEOUT": "90"}
QUICK = " ONLY=\"-m 'not slow'\""

# Stages run one after the other. The rows of a stage run side by side, because most of them wait more than they work; the parts of a row
# run one after the other. The torture is alone at the end: its clients measure how long a recovery takes.
STAGES = [
    [["lint", "release", "docs-check", "unit"]],
    [["debug", "asan", "tsan"]],
    [["tidy", "unit-asan", "unit-tsan", "fuzz"], ["e2e-one", "e2e-web"], ["e2e-more", "e2e-rest"], ["e2e-platform", "e2e-pairs", "e2e-pooler"]],
    [["torture-can-fail", "torture"]],
]
# part: (command, more environment)
PARTS = {
    "lint": ("make lint", {}),
    "release": ("make release", {}),
    "docs-check": ("make docs-check", {}),
    "unit": ("make unit", {}),
    "debug": ("make debug", {}),
    "asan": ("make asan", {}),
    "tsan": ("make tsan", {}),
    "tidy": ("tools/tidy.py build/debug", {}),
    "unit-asan": (UNIT % "asan" + " -t 10", {"UBSAN_OPTIONS": "halt_on_error=1"}),
    # The simulation has one thread: TSan learns nothing from more schedules.
    "unit-tsan": (UNIT % "tsan" + " -t 10", {"TSAN_OPTIONS": "halt_on_error=1", "SIM_SEEDS": "50"}),
    "fuzz": ("tools/fuzz.sh all 10", {}),
    "e2e-one": ("make e2e-one" + QUICK, SLOW),
    "e2e-more": ("make e2e-more" + QUICK, SLOW),
    "e2e-rest": ("make e2e-rest" + QUICK, SLOW),
    "e2e-platform": ("make e2e-platform" + QUICK, SLOW),
    "e2e-pairs": ("make e2e-pairs" + QUICK, SLOW),
    "e2e-pooler": ("make e2e-pooler" + QUICK, SLOW),
    "e2e-web": ("make e2e-web" + QUICK, SLOW),
    "torture-can-fail": (sys.executable + " -m pytest -q tests/torture", {}),
    "torture": ("make torture MINUTES=1.2", {}),
}


class Part:
    def __init__(self, name):
        command, more = PARTS[name]
        self.name, self.begin = name, time.monotonic()
        self.log = os.path.join(LOGS, name + ".log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, shell=True, cwd=ROOT, env={**os.environ, **more}, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True)

    @property
    def seconds(self):
        return time.monotonic() - self.begin

    def stop(self):
        """As Ctrl-C would, so that pytest ends the servers that it started."""
        for number, patience in ((signal.SIGINT, 60), (signal.SIGKILL, 10)):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                return
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                pass


def say(text):
    print(text, flush=True)


def run_stage(rows):
    """None, or the part that failed. No part is left running."""
    waiting = [list(row) for row in rows if row]
    running = {}  # index of the row: part
    try:
        while running or any(waiting):
            for i, row in enumerate(waiting):
                if i not in running and row:
                    running[i] = Part(row.pop(0))
            time.sleep(0.1)
            for i, part in list(running.items()):
                status = part.process.poll()
                if status is None:
                    continue
                del running[i]
                say("%-18s %-6s %6.0f s" % (part.name, "ok" if status == 0 else "FAILED", part.seconds))
                if status:
                    return part
        return None
    finally:
        for part in running.values():
            part.stop()


def main():
    wanted = sys.argv[1:] or list(PARTS)
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        sys.exit("check: no part is called %s; the parts are %s" % (unknown[0], " ".join(PARTS)))
    os.makedirs(LOGS, exist_ok=True)
    os.environ.pop("MAKEFLAGS", None)  # the parts run their own jobs
    begin = time.monotonic()
    for stage in STAGES:
        failed = run_stage([[name for name in row if name in wanted] for row in stage])
        if failed:
            with open(failed.log, errors="replace") as f:
                say("".join(f.readlines()[-LINES:]))
            say("check: FAILED in %s; all of its output is in %s" % (failed.name, failed.log))
            return 1
    say("check: all of %d parts passed in %.0f s" % (len(wanted), time.monotonic() - begin))
    return 0


if __name__ == "__main__":
    sys.exit(main())
