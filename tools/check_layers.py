#!/usr/bin/python3
"""Checks that includes go one way: down.  See the layer table in CONTRIBUTING.md."""
import pathlib
import re
import sys

LEVEL = {
    "base": 0,
    "json": 1, "conf": 1, "net": 1, "segment": 1, "crypt": 1,
    "http": 2, "pg": 2,
    "batch": 3, "auth": 3, "peer": 3, "spool": 3,
    "broker": 4, "tenant": 4,
    "ingest": 5, "readmodel": 5, "audience": 5,
    "api": 6, "settings": 6,
    "server": 7, "platform": 7,
    "cli": 8,
    "client": 3,
}
# Settings reach a module as its own small struct; the interface does not touch sockets.
ONLY_FOR = {"conf": {"settings", "server", "platform", "cli"}}
NOT_FOR = {"api": {"net", "conf"}}
# The client library goes into other people's programs: of the server it knows only the tools.
ONLY_NEEDS = {"client": {"base", "json", "net", "http"}}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def complaint(source, header):
    """What is wrong with folder `source` including `header`, or None."""
    if "/" not in header:
        return "is not written from src/"
    target, name = header.split("/", 1)
    if target not in LEVEL:
        return None if header.startswith("queen/") else "is in no known layer"
    if target == source:
        return None
    if target not in ONLY_NEEDS.get(source, {target}):
        return "is more than %s may know" % source
    if name.endswith("_int.h"):
        return "is private to %s" % target
    if source in ONLY_FOR.get(target, {source}) and target not in NOT_FOR.get(source, ()):
        if LEVEL[target] < LEVEL[source]:
            return None
        return "goes from level %d to level %d" % (LEVEL[source], LEVEL[target])
    return "is not for %s" % source


def main():
    root = pathlib.Path(__file__).resolve().parent.parent / "src"
    wrong = seen = 0
    for path in sorted([*root.rglob("*.c"), *root.rglob("*.h")]):
        source = path.relative_to(root).parts[0]
        if source not in LEVEL:
            print("%s: folder is in no known layer" % path)
            wrong += 1
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                seen += 1
                why = complaint(source, match.group(1))
                if why:
                    print("src/%s:%d: \"%s\" %s" % (path.relative_to(root), number, match.group(1), why))
                    wrong += 1
    if wrong:
        sys.exit("check_layers: %d of %d includes are wrong" % (wrong, seen))


main()
