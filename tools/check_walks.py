#!/usr/bin/python3
"""Checks docs/internals/walk-*.md: every file exists, and every `function()` is in the file named last before it."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOKEN = re.compile(r"`((?:lib|broker|client|cli|platform|tools)/[\w./-]+)`|`(\w+)\(\)`")


def main():
    wrong = seen = 0
    for page in sorted(glob.glob(os.path.join(ROOT, "docs", "internals", "walk-*.md"))):
        text, where = "", None
        for number, line in enumerate(open(page), 1):
            for path, function in TOKEN.findall(line):
                seen += 1
                problem = None
                if path:
                    where = path
                    full = os.path.join(ROOT, path)
                    text = open(full).read() if os.path.isfile(full) else ""
                    problem = None if os.path.exists(full) else "there is no %s" % path
                elif not re.search(r"\b%s\(" % function, text):
                    problem = "%s has no %s()" % (where, function)
                if problem:
                    print("%s:%d: %s" % (os.path.relpath(page, ROOT), number, problem))
                    wrong += 1
    if wrong or not seen:
        sys.exit("check_walks: %d of %d names are wrong" % (wrong, seen))


main()
