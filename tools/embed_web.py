#!/usr/bin/python3
"""Writes the built files of the dashboard as C: each one as it is and compressed, with its type and ETag.

    embed_web.py --root web/dist --c OUT.c FILE...
"""
import argparse
import gzip
import hashlib
import os

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}


def put_bytes(out, name, data):
    out.write("static const char %s[] = {\n" % name)
    for i in range(0, len(data), 24):
        out.write("".join("%d," % (b if b < 128 else b - 256) for b in data[i:i + 24]) + "\n")
    out.write("};\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--c", required=True)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    rows = []
    with open(args.c, "w") as out:
        out.write('// Made by tools/embed_web.py from the files in web/dist.\n#include "web/web_int.h"\n\n')
        for i, file in enumerate(sorted(args.files)):
            with open(file, "rb") as f:
                data = f.read()
            put_bytes(out, "plain_%d" % i, data)
            put_bytes(out, "packed_%d" % i, gzip.compress(data, 9, mtime=0))
            rows.append('    {.path = "/%s", .type = "%s", .etag = "\\"%s\\"", .plain = {plain_%d, sizeof plain_%d}, '
                        '.packed = {packed_%d, sizeof packed_%d}},\n'
                        % (os.path.relpath(file, args.root), TYPES[os.path.splitext(file)[1]], hashlib.sha256(data).hexdigest()[:16],
                           i, i, i, i))
        out.write("\nconst struct web_file web_files[] = {\n%s    {0},\n};\n" % "".join(rows))


if __name__ == "__main__":
    main()
