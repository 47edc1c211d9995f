#!/usr/bin/python3
"""Runs the examples of documentation pages, in the order in which they are printed.

usage: check_examples.py --url http://localhost:6632 [--dsn 'host=... dbname=...'] PAGE...

Each page is one session:

    ```sh         commands for bash; variables and the directory stay from one block to the next
    ```sql        statements for psql (needs --dsn)
    ```json       the expected output of the block before it, or ```text for output that is not JSON
    ```sh no-run  not run (other words after the language mean the same: it is an example of something else)

A command must succeed; `# exit code 4` at the end of its line expects that code.  In expected output `...` stands for anything, ids and
times may differ, and space does not count.  The port 6632 in commands is replaced by that of --url.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```\s*$", re.S | re.M)
UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)?")
END = "--- end of block, exit code "


class Shell:
    """One bash for a page: run(text) gives its output and its exit code."""

    def __init__(self, env, folder):
        self.process = subprocess.Popen(["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=env, cwd=folder)

    def run(self, text):
        self.process.stdin.write("%s\ncode=$?; echo; echo '%s'$code\n" % (text, END))
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.startswith(END):
                return "".join(lines)[:-1], int(line[len(END):])
            lines.append(line)
        return "".join(lines), -1

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def commands(text):
    """The commands of a block: a line, with those that continue it (a backslash, or an open quote)."""
    whole = []
    for line in text.splitlines():
        whole.append(line)
        command = "\n".join(whole)
        if command.endswith("\\") or subprocess.run(["bash", "-n", "-c", command], capture_output=True).returncode != 0:
            continue
        whole = []
        if command.strip() and not command.lstrip().startswith("#"):
            yield command
    if whole:
        yield "\n".join(whole)


def plain(text):
    return re.sub(r"\s+", "", TIME.sub("<time>", UUID.sub("<id>", text)))


def same(expected, got):
    pattern = ".*?".join(re.escape(part) for part in re.split(r"\.\.\.|…", plain(expected)))
    return re.fullmatch(pattern, plain(got), re.S) is not None


def check(page, options, env):
    """Runs one page; the list of its mistakes."""
    port = options.url.rsplit(":", 1)[1]
    wrong, output, ran = [], "", 0
    text = open(page, encoding="utf-8").read()
    with tempfile.TemporaryDirectory() as folder:
        programs = os.path.join(folder, "build")
        os.mkdir(programs)
        os.symlink(os.environ.get("QUEEN_BIN") or os.path.join(ROOT, "build", "queen"), os.path.join(programs, "queen"))
        shell = Shell({**env, "PATH": programs + ":" + env["PATH"]}, folder)
        for block in BLOCK.finditer(text):
            language, words, body = block.groups()
            where = "%s:%d" % (os.path.relpath(page, ROOT), text.count("\n", 0, block.start()) + 1)
            if words.strip():
                output = None
            elif language == "sh":
                output = ""
                for command in commands(body.replace("localhost:6632", "localhost:%s" % port)):
                    got, code = shell.run(command)
                    ran += 1
                    output += got + "\n"
                    wanted = re.search(r"# exit code (\d+)\s*$", command)
                    if code != (int(wanted.group(1)) if wanted else 0):
                        wrong.append("%s: exit code %d\n    %s\n    %s" % (where, code, command.strip(), got.strip()))
            elif language == "sql" and options.dsn:
                result = subprocess.run(["psql", "-X", "-qAt", "-v", "ON_ERROR_STOP=1", options.dsn], input=body,
                                        capture_output=True, text=True, env=env)
                ran += 1
                output = result.stdout
                if result.returncode != 0:
                    wrong.append("%s: psql: %s" % (where, result.stderr.strip()))
            elif language in ("json", "text") and output is not None:
                if not same(body, output):
                    wrong.append("%s: the output is not as printed:\n    %s\n    %s" % (where, body.strip(), output.strip()))
                output = None
        shell.close()
    print("%s: %d commands, %d wrong" % (os.path.relpath(page, ROOT), ran, len(wrong)))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--dsn")
    parser.add_argument("pages", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as config:
        env = {**os.environ, "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "QUEEN_URL": options.url, "XDG_CONFIG_HOME": config,
               "LANG": "C.UTF-8", "TZ": "UTC"}
        wrong = [w for page in options.pages for w in check(os.path.abspath(page), options, env)]
    for text in wrong:
        print(text)
    sys.exit(1 if wrong else 0)


main()
