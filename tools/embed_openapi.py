#!/usr/bin/python3
"""Merges docs/reference/openapi/*.yaml into one document and writes it as C, or as JSON.

    embed_openapi.py --c OUT.c --h OUT.h --version 1.2.3 FILE...
    embed_openapi.py FILE...            the JSON on standard output

Files are merged in the order of their names; a path or a component that two of them define is an error.
"""
import argparse
import json
import sys

import yaml


def merge(into, new, where=""):
    for key, value in new.items():
        if key not in into:
            into[key] = value
        elif isinstance(into[key], dict) and isinstance(value, dict) and where.count("/") < 2:
            merge(into[key], value, where + "/" + str(key))
        elif isinstance(into[key], list) and isinstance(value, list):
            into[key] += value
        else:
            raise SystemExit("openapi: %s/%s is defined twice" % (where, key))
    return into


def document(files, version=None):
    doc = {}
    for name in sorted(files):
        with open(name, encoding="utf-8") as f:
            merge(doc, yaml.safe_load(f) or {})
    if version:
        doc["info"]["version"] = version
    doc["paths"] = dict(sorted(doc["paths"].items()))
    return doc


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--c")
    parser.add_argument("--h")
    parser.add_argument("--version")
    parser.add_argument("--include", default="api/openapi.gen.h", help="the header's name, as C includes it")
    parser.add_argument("--symbol", default="openapi_json")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    text = json.dumps(document(args.files, args.version), ensure_ascii=False, separators=(",", ":"))
    if not args.c:
        sys.stdout.write(text + "\n")
        return
    data = text.encode("utf-8")
    with open(args.h, "w") as f:
        f.write("// Made by tools/embed_openapi.py.\n#include <stddef.h>\n\n"
                "extern const char %s[];\nextern const size_t %s_len;\n" % (args.symbol, args.symbol))
    with open(args.c, "w") as f:
        f.write('// Made by tools/embed_openapi.py.\n#include "%s"\n\nconst char %s[] = {\n'
                % (args.include, args.symbol))
        for i in range(0, len(data), 24):
            f.write("".join("%d," % b for b in (x if x < 128 else x - 256 for x in data[i:i + 24])) + "\n")
        f.write("};\nconst size_t %s_len = sizeof %s;\n" % (args.symbol, args.symbol))


if __name__ == "__main__":
    main()
