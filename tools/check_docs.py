#!/usr/bin/python3
"""Checks the links of all Markdown files.

- The target of every relative link exists, and so does its heading (`page.md#heading`).
- Every page can be reached by links from README.md. docs/index.md links every page of docs/ and platform/docs/, without the decision records.
- A page is linked, not only named: `retries.md` in back ticks is an error unless the same page links to it.
- A file named in back ticks exists, below the root or beside the page: `lib/net/mailbox.c`, `sql/push`.
- docs/internals/architecture.md and broker/README.md list every folder of sources.
- docs/operations/operations.md lists every event that the broker logs as a warning or an error, and no event that is gone. So does
  platform/docs/operations.md for the platform.
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.S | re.M)
CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"`([\w./-]+\.md)`")
FILE = re.compile(r"`((?:lib|broker|client|cli|bench|platform|deploy|docs|tests|tools|src|sql|net|http|pg|api|base|auth)/[\w./*-]+)`")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*$", re.M)


def anchors(text):
    """The anchors that GitHub gives to the headings of a page."""
    made = set()
    for title in HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number, name = 0, anchor
        while name in made:
            number += 1
            name = "%s-%d" % (anchor, number)
        made.add(name)
    return made


def sources(patterns):
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", *patterns],
                           capture_output=True, text=True, check=True).stdout.split()
    return "\n".join(open(os.path.join(ROOT, f), encoding="utf-8").read() for f in files if os.path.exists(os.path.join(ROOT, f)))


def log_events(page, own, shared):
    """Compares the table of log events with the sources: own must be listed, shared may be."""
    text = open(os.path.join(ROOT, page), encoding="utf-8").read().split("## Log events", 1)[-1]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    listed = {event for row in rows for event in re.findall(r"`([a-z0-9]+\.[a-z0-9_]+)`", row)}
    own, shared = sources(own), sources(shared)
    logged = set(re.findall(r'log_(?:warn|error)\(\s*"([a-z0-9]+\.[a-z0-9_]+)"', own))
    return (["%s: no source logs %s" % (page, e) for e in listed if '"%s"' % e not in own + shared]
            + ["%s: the event %s is missing" % (page, e) for e in logged - listed])


def folders():
    """Compares the tables of folders with the tree."""
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "*.c"], capture_output=True, text=True, check=True).stdout.split()
    page = os.path.join("docs", "internals", "architecture.md")
    architecture = open(os.path.join(ROOT, page), encoding="utf-8").read()
    broker = open(os.path.join(ROOT, "broker", "README.md"), encoding="utf-8").read()
    wrong = []
    for folder in sorted({os.path.dirname(f) for f in files}):
        parts = folder.split("/")
        known = "| `%s/` |" % parts[0] in architecture
        if parts[:2] == ["broker", "src"]:
            row = re.search(r"^\| `broker/src/` .*$", architecture, re.M).group(0)
            known = re.search(r"\b%s\b" % parts[-1], row)
            if len(parts) < 4 or parts[2] == "broker":
                wrong += [] if "| `%s` |" % "/".join(parts[1:]) in broker else ["broker/README.md: the folder %s is missing" % folder]
        elif parts[0] == "lib":
            known = re.search(r"\b%s\b" % parts[1], re.search(r"^\| `lib/` .*$", architecture, re.M).group(0))
        elif parts[:2] == ["platform", "src"]:
            known = re.search(r"^\| .*`%s`.* \|" % parts[2], architecture, re.M)
        elif parts[:2] == ["broker", "examples"]:
            known = "| `examples/` |" in broker
        wrong += [] if known else ["%s: the folder %s is missing" % (page, folder)]
    return wrong


def main():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "*.md"],
                            capture_output=True, text=True, check=True).stdout.split()
    pages = {p: FENCE.sub("", open(os.path.join(ROOT, p), encoding="utf-8").read())
             for p in listed if os.path.exists(os.path.join(ROOT, p))}
    wrong, links = [], {}
    for page, text in pages.items():
        links[page] = set()
        for target in LINK.findall(CODE.sub("", text)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, heading = target.partition("#")
            there = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(ROOT, there)):
                wrong.append("%s: the link to %s is dead" % (page, target))
            elif heading and there in pages and heading not in anchors(pages[there]):
                wrong.append("%s: %s has no heading #%s" % (page, there, heading))
            links[page].add(there)
        linked = {os.path.basename(t) for t in links[page]}
        for name in NAMED.findall(text):
            if os.path.basename(name) not in linked and "*" not in name:
                wrong.append("%s: %s is named but not linked" % (page, name))

        for name in FILE.findall(text):
            if page != "CHANGELOG.md" and not any(glob.glob(os.path.join(ROOT, at, name)) for at in ("", os.path.dirname(page))):
                wrong.append("%s: there is no %s" % (page, name))

    reached, todo = set(), ["README.md"]
    while todo:
        page = todo.pop()
        if page not in reached:
            reached.add(page)
            for there in links.get(page, ()):
                # A link to a folder leads to its README or, where it has none, to a listing of its files.
                inside = [p for p in pages if os.path.dirname(p) == there]
                readme = os.path.join(there, "README.md")
                todo += [readme] if readme in pages else inside if inside else [there]
    wrong += log_events("docs/operations/operations.md", ["lib/*.c", "broker/*.c", "broker/*.h", "cli/*.c"], ["lib/*.h"])
    wrong += log_events("platform/docs/operations.md", ["platform/*.c"], ["lib/*.c"])
    wrong += folders()
    wrong += ["%s: no link leads to this page" % p for p in sorted(pages) if p not in reached]
    index = os.path.join("docs", "index.md")
    wrong += ["%s: %s is missing" % (index, p) for p in sorted(pages)
              if p.startswith(("docs/", "platform/docs/")) and "/adr/" not in p and p != index and p not in links[index]]
    for line in sorted(wrong):
        print(line)
    if wrong:
        sys.exit("check_docs: %d problems in %d pages" % (len(wrong), len(pages)))


main()
