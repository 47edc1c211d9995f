#!/usr/bin/python3
"""Counts markers of unclear English per 1,000 words.   tools/count_markers.py [-v]

Two markers are counted: a clause that starts with "What" or "Who" and is used as a subject ("What was sent is sent again"), and verbs of
people used for programs (told, says, asks, knows, believes). The goal is at most 0.3 and 1.0. It is a hint for a reviewer and checks nothing:
some uses are right. -v prints the lines that contain a marker.
"""
import io
import re
import subprocess
import sys
import tokenize

WHAT = re.compile(r"(?:^|[.:;!?]\s+|\n\s*)(?:What|Who|Whoever|Whatever)\b(?![^.?\n]*\?)|(?<=, )(?:what|who) (?:is|was|has|had|are|were)\b")
TOLD = re.compile(r"\b(?:told|tells?|says?|said|asks?|asked|knows?|knew|believes?|believed|thinks?)\b", re.I)
C_COMMENT = re.compile(r"//([^\n]*)|/\*(.*?)\*/", re.S)
SQL_COMMENT = re.compile(r"--([^\n]*)")
SH_COMMENT = re.compile(r"^\s*#(?!!)([^\n]*)", re.M)


def files(*patterns):
    return subprocess.run(["git", "ls-files", *patterns], check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")[:-1]


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def c_comments(path):
    return "\n".join(a or b for a, b in C_COMMENT.findall(read(path)))


def sql_comments(path):
    return "\n".join(SQL_COMMENT.findall(read(path)))


def python_comments(path):
    """Comments and docstrings: a string that begins a line of code."""
    found, previous = [], tokenize.NEWLINE
    try:
        for token in tokenize.generate_tokens(io.StringIO(read(path)).readline):
            if token.type == tokenize.COMMENT:
                found.append(token.string.lstrip("#! "))
            elif token.type == tokenize.STRING and previous in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                found.append(token.string.strip("\"' "))
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                previous = token.type
    except (tokenize.TokenError, IndentationError):
        pass
    return "\n".join(found)


def test_names(path):
    """Names of tests as sentences."""
    pattern = r"^def test_(\w+)" if path.endswith(".py") else r"^static void (\w+)\(void \*\*"
    return "\n".join(name.replace("_", " ").capitalize() + "." for name in re.findall(pattern, read(path), re.M))


def yaml_texts(path):
    """Summaries and descriptions, one per line."""
    return "\n".join(text.strip("' }") for text in re.findall(r"\b(?:description|summary|title): +(.*)", read(path)))


CORPORA = [
    ("documents", files("*.md"), read),
    ("C comments", files("lib/*.[ch]", "broker/*.[ch]", "client/*.[ch]", "cli/*.[ch]", "bench/*.[ch]", "platform/*.[ch]"), c_comments),
    ("SQL comments", files("*.sql"), sql_comments),
    ("C comments of tests", files("tests/*.[ch]"), c_comments),
    ("Python comments", files("tests/*.py", "tools/*.py", "bench/*.py"), python_comments),
    ("OpenAPI texts", files("*/openapi/*.yaml"), yaml_texts),
    ("shell comments", files("*.sh"), lambda path: "\n".join(SH_COMMENT.findall(read(path)))),
    ("names of tests", files("tests/*.c", "tests/*.py"), test_names),
]


def main():
    verbose = "-v" in sys.argv[1:]
    for name, paths, extract in CORPORA:
        words = what = told = 0
        for path in paths:
            text = extract(path)
            words += len(re.findall(r"\w+", text))
            what += len(WHAT.findall(text))
            told += len(TOLD.findall(text))
            for line in text.split("\n") if verbose else ():
                if WHAT.search(line) or TOLD.search(line):
                    print("%s: %s" % (path, line.strip()))
        print("%-20s %8d words  %5.2f  %5.2f per 1,000" % (name, words, what * 1000 / max(words, 1), told * 1000 / max(words, 1)))


if __name__ == "__main__":
    main()
