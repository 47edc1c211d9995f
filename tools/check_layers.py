#!/usr/bin/python3
"""Checks that includes go down only.  See the layer table in CONTRIBUTING.md."""
import pathlib
import re
import sys

# Product -> folder -> level.  A product includes its own lower levels and the products it uses.
LEVEL = {
    "lib": {
        "base": 0,
        "json": 1, "conf": 1, "net": 1, "crypt": 1,
        "http": 2, "pg": 2, "trace": 2,
        "auth": 3, "web": 3,
        "settings": 4,
    },
    "broker/src": {
        "conf": 2,
        "segment": 1,
        "db": 3, "batch": 3, "peer": 3, "spool": 3,
        "transfer": 4, "broker": 4,
        "api": 5,
        "server": 6,
    },
    "platform/src": {
        "conf": 2,
        "tenant": 3,
        "ingest": 4, "readmodel": 4, "audience": 4,
        "platform": 6,
        "program": 7,
    },
    "client/src": {"": 3},
    "bench/load": {"": 7},
    "cli": {"": 8},
}
# Topics inside one folder share its private headers, and their own headers go down only as well.
TOPICS = {
    ("broker/src", "broker"): {
        "": 0,
        "queue": 1, "segments": 1, "wake": 1, "stats": 1,
        "schedule": 2,
        "push": 3,
        "settle": 4, "outage": 4,
        "pop": 5,
        "work": 6,
    },
    ("broker/src", "api"): {"": 0, "messages": 1, "admin": 1, "monitoring": 1},
}
USES = {
    "lib": [],
    "broker/src": ["lib"],
    "platform/src": ["lib"],
    "client/src": ["lib"],
    "bench/load": ["lib", "cli"],
    "cli": ["lib", "broker/src", "bench/load"],
}
# Settings reach a module as its own small struct.  The API does not use sockets.
ONLY_FOR = {"conf": {"settings", "server", "platform", "program", "cli", "conf"}}
NOT_FOR = {"api": {"net"}}
# The client library becomes part of other programs and needs only these.
ONLY_NEEDS = {"client/src": {"base", "json", "net", "http"}}
# The command line starts the broker and includes nothing else of it.
ENTRY = {("cli", "broker/src"): {"conf/serve.h", "server/server.h"}}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def find(product, header):
    """(product, folder, level) of a header that a file of the product includes, or None."""
    for name in [product, *USES[product]]:
        prefix = "" if name == "client/src" else name + "/"
        if "" in LEVEL[name]:
            if header.startswith(prefix) and "/" not in header[len(prefix):]:
                return name, "", LEVEL[name][""]
        else:
            folder = header.split("/", 1)[0]
            if folder in LEVEL[name] and (ROOT / name / header).exists() or header.endswith(".gen.h") and folder in LEVEL[name]:
                return name, folder, LEVEL[name][folder]
    return None


def complaint(product, folder, level, header):
    """Why a file in `folder` of `product` must not include `header`, or None."""
    if product == "client/src" and header.startswith("queen/"):
        return None  # its public headers
    found = find(product, header)
    if not found:
        return "is not a header of %s or of a product that it uses" % product
    target_product, target, target_level = found
    if (target_product, target) == (product, folder):
        return None
    if target_product in ("cli", "bench/load") and product in ("cli", "bench/load"):
        return None
    private = header.endswith("_int.h")
    if private and target != folder:
        return "is private to %s" % target
    entry = ENTRY.get((product, target_product))
    if entry is not None and header not in entry:
        return "is not an entry point of %s" % target_product
    if product in ONLY_NEEDS and target not in ONLY_NEEDS[product]:
        return "is not for %s" % product
    if (folder or product) not in ONLY_FOR.get(target, {folder or product}) or target in NOT_FOR.get(folder, ()):
        return "is not for %s" % (folder or product)
    if target_level >= level and not (private and target == folder):
        return "goes from level %d to level %d" % (level, target_level)
    return None


def topic_complaint(product, parts, header):
    """Why a file of one topic must not include the header of another topic of its folder, or None."""
    topics = TOPICS.get((product, parts[0]))
    names = header.split("/")
    if not topics or names[0] != parts[0]:
        return None
    topic, target = (p[1] if len(p) > 2 else "" for p in (parts, names))
    for name in (topic, target):
        if name not in topics:
            return "belongs to no known topic of %s" % parts[0] if name == target else "is in topic %s, which has no level" % name
    if target != topic and topics[target] >= topics[topic]:
        return "goes from topic %s to topic %s" % (topic or parts[0], target)
    return None


ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    wrong = seen = 0
    for product, folders in LEVEL.items():
        top = ROOT / product
        for path in sorted([*top.rglob("*.c"), *top.rglob("*.h")]):
            parts = path.relative_to(top).parts
            folder = parts[0] if len(parts) > 1 else ""
            if folder not in folders:
                print("%s: folder is in no layer" % path.relative_to(ROOT))
                wrong += 1
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if match:
                    seen += 1
                    why = complaint(product, folder, folders[folder], match.group(1)) \
                        or topic_complaint(product, parts, match.group(1))
                    if why:
                        print('%s:%d: "%s" %s' % (path.relative_to(ROOT), number, match.group(1), why))
                        wrong += 1
    if wrong:
        sys.exit("check_layers: %d of %d includes are wrong" % (wrong, seen))


main()
