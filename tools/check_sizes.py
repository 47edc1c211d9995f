#!/usr/bin/python3
"""No source file has more than 700 lines (aim at 600), and no folder of SQL more than 40 files."""
import collections
import os
import subprocess
import sys

LINES, FILES = 700, 40
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "*.c", "*.h", "*.py", "*.sql", "*.ts", "*.tsx", "*.svelte", "*.mjs", "*.css"],
                            capture_output=True, text=True, check=True).stdout.split()
    wrong, folders = [], collections.Counter()
    for path in listed:
        if path.startswith("web/dist/") or not os.path.exists(os.path.join(ROOT, path)):
            continue
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            n = sum(1 for _ in f)
        if n > LINES:
            wrong.append("%s has %d lines: split it" % (path, n))
        if path.endswith(".sql"):
            folders[os.path.dirname(path)] += 1
    wrong += ["%s has %d files: make a folder of one of its topics" % (folder, n) for folder, n in folders.items() if n > FILES]
    for line in sorted(wrong):
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
