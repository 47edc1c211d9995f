#!/usr/bin/python3
"""clang-tidy over the C sources of the products.   tools/tidy.py BUILD_DIR [FILE...]

A file that passed is not examined again until its preprocessed text, .clang-tidy or clang-tidy itself changes. The folder
build/tidy remembers which ones passed. With files or folders it examines only these.
"""
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PRODUCTS = ("lib/", "broker/src/", "client/src/", "cli/", "bench/load/", "platform/src/")
# clang before 16 refuses the value `zero`, which gcc is given.
EXTRA = ["--extra-arg=-ftrivial-auto-var-init=uninitialized"]


def commands(build):
    """{source: (folder, compiler command)}"""
    with open(os.path.join(build, "compile_commands.json")) as f:
        entries = json.load(f)
    found = {}
    for entry in entries:
        source = os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)
        if source.startswith(PRODUCTS) and os.path.exists(source):
            found.setdefault(source, (entry["directory"], shlex.split(entry["command"])))
    return found


def fingerprint(folder, command, salt):
    """A hash of everything that clang-tidy looks at: the preprocessed text with its comments, and the flags."""
    command = command[command.index("ccache") + 1:] if "ccache" in command else command
    plain = [word for i, word in enumerate(command) if word not in ("-MD", "-MQ", "-MF", "-o", "-c") and command[i - 1] not in ("-MQ", "-MF", "-o")]
    text = subprocess.run(plain + ["-E", "-C"], cwd=folder, check=True, stdout=subprocess.PIPE).stdout
    return hashlib.sha256(salt + "\0".join(plain).encode() + text).hexdigest()


def examine(build, stamps, source, folder, command, salt):
    """The findings of clang-tidy in this file; an empty text if there are none."""
    stamp = os.path.join(stamps, fingerprint(folder, command, salt))
    if os.path.exists(stamp):
        return ""
    p = subprocess.run(["clang-tidy", "-p", build, "--quiet", *EXTRA, source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode == 0:
        open(stamp, "w").close()
        return ""
    return p.stdout or p.stderr


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: tools/tidy.py BUILD_DIR [FILE...]")
    wanted = tuple(os.path.relpath(path, ROOT) for path in sys.argv[2:])
    os.chdir(ROOT)
    build, stamps = sys.argv[1], os.path.join("build", "tidy")
    os.makedirs(stamps, exist_ok=True)
    with open(".clang-tidy", "rb") as f:
        salt = f.read() + subprocess.run(["clang-tidy", "--version"], check=True, stdout=subprocess.PIPE).stdout + repr(EXTRA).encode()
    sources = commands(build)
    for path in wanted:
        if not any((source + "/").startswith(path + "/") for source in sources):
            sys.exit("tidy: %s is no source of the products" % path)
    if wanted:
        sources = {source: how for source, how in sources.items() if any((source + "/").startswith(path + "/") for path in wanted)}
    if not sources:
        sys.exit("tidy: no source of the products in %s/compile_commands.json" % build)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        work = [pool.submit(examine, build, stamps, source, *how, salt) for source, how in sorted(sources.items())]
        for future in concurrent.futures.as_completed(work):
            found = future.result()
            if found:
                print(found, end="", flush=True)
                bad += 1
    print("tidy: %d files, %d with findings" % (len(sources), bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
