#!/usr/bin/env python3
"""embed_sql.py: turns folders of SQL into C, so that the program carries its statements and schema.

    --root KIND NAME HOME FOLDER      as often as there are databases of another kind

    schema/NNNN_NAME.sql    -> an ordered table of migrations  } const struct pg_schema
    schema/NNNN_NAME/*.sql     (a folder is one migration in parts)
    TOPIC/NAME.sql          -> a table of functions and views, } pg_schema_ROOT
                               each after those it needs
    TOPIC/statements.sql    -> const struct pg_statement pg_stmt_[ROOT_]NAME for each
                               "-- statement: NAME" in it (comments stripped).  "-- returns:"
                               declares the columns of its result, which every answer is checked against,
                               and becomes the constants NAME_COL_COLUMN.  "-- columns NAME: ..." declares
                               columns that several statements return as @NAME, "-- enum NAME: A 0, B 1"
                               numbers that SQL and C share

KIND is pg or my (then the symbols begin with my_).  HOME is the SQL schema where the migrations
keep their books.  Statements are numbered from 0 in each root, so a pool of connections takes
those of one root only.  Those of the root `queen`, the broker's, have no ROOT_ in their names.

Files are found here and not listed in meson.build: the depfile names the directories too,
so adding, removing or editing a file rebuilds what must be rebuilt.  The rules that the files
follow are in broker/sql/README.md; what breaks one stops the build with the file's name.
"""
import argparse
import hashlib
import os
import re
import sys

NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
MIGRATION = re.compile(r"([0-9]{4})_([a-z][a-z0-9_]*)(\.sql)?\Z")
PART = re.compile(r"[0-9]{2}_[a-z][a-z0-9_]*\.sql\Z")
STATEMENTS = "statements.sql"
STATEMENT = re.compile(r"^--[ \t]*statement:[ \t]*(\S*)[ \t]*$", re.M)
NEEDS = re.compile(r"^--\s*needs:\s*(.*)$", re.M)
# A function up to its body; comments are for the reader, here too.
FUNCTION = re.compile(r"^create or replace function (.*?)\bas (?=\$)", re.M | re.S | re.I)
LANGUAGE = re.compile(r"\blanguage (plpgsql|sql)\b", re.I)
INLINED = re.compile(r"\b(stable|immutable)\b", re.I)
PINNED = re.compile(r"\bset search_path\b", re.I)
RETURNS = re.compile(r"^--\s*returns(?: one row)?:\s*(.*)$", re.M)
ONE_ROW = re.compile(r"^--\s*returns one row:", re.M)
# A column of a statement's result as one letter, upper case if it may be null: see lib/pg/reply_shape.c.
COLUMN = re.compile(r"(?P<name>[a-z_0-9]+) (?P<type>[a-z0-9]+)(?P<null>\?)?\Z")
# Columns that several statements return, and where a statement refers to them; @name? means that each may be null.
COLUMNS = re.compile(r"^--\s*columns ([a-z_0-9]+):\s*(.*)$", re.M)
SHARED = re.compile(r"@(?P<name>[a-z_0-9]+)(?P<null>\?)?\Z")
ENUM = re.compile(r"^--\s*enum ([a-z_0-9]+):\s*(.*)$", re.M)
VALUE = re.compile(r"[A-Z][A-Z0-9_]* [0-9]+\Z")
# Which enum the numbers of a name are from: "-- numbers: why ack_why, status seg_status or ack_status".
NUMBERS = re.compile(r"^--\s*numbers:\s*(.*)$", re.M)
NUMBERS_OF = re.compile(r"([a-z_]+) ([a-z_]+(?: or [a-z_]+)*)\Z")
# A name that holds such a number, and the literals that it is compared with or set to.
NUMBER_NAME = r"\b(?P<name>[a-z_]*(?:status|why|kind))(?:\[[^\]]*\])?"
COMPARED = re.compile(NUMBER_NAME + r"\s*(?::=|=|<>|>=|<=|>|<)\s*(?P<literals>[0-9]+)\b")
LISTED = re.compile(NUMBER_NAME + r"\s+(?:not )?in\s*\((?P<literals>[0-9, ]+)\)")
SWITCHED = re.compile(r"\bcase (?:[a-z]+\.)?" + NUMBER_NAME + r"(?P<literals>\s+when [0-9]+ .*?)\bend\b", re.S)
WHEN = re.compile(r"\bwhen ([0-9]+)\b")
# Numbers without such a name beside them: they have this type.
SMALL = re.compile(r"\b([0-9]+)::int2")
SMALL_CASE = re.compile(r"\bcase\b((?:(?!\bcase\b|\bend\b).)*)\bend::int2", re.S)
RESULT = re.compile(r"\b(?:then|else) ([0-9]+)\b")
LEAST_HTTP_STATUS = 100
LETTERS = {"int2": "h", "int4": "i", "int8": "l", "bool": "b", "float8": "f", "text": "t", "bytea": "y", "uuid": "u",
           "timestamptz": "z", "void": "v"}
# Quoted texts, which may contain comment marks, and comments.
TOKEN = re.compile(
    r"""(?P<keep>[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
              | \$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
      | (?P<line>--[^\n]*)
      | (?P<block>/\*.*?\*/)
      | (?P<space>\s+)""",
    re.X | re.S)


def fail(path, why):
    sys.exit(f"{path}: {why}")


def read(path):
    with open(path, "rb") as f:
        raw = f.read()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as e:
        fail(path, f"not UTF-8: {e}")
    if "\0" in text:
        fail(path, "holds a NUL byte")
    return text


def sql_files(folder, depends):
    depends.append(folder)
    found = [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".sql")]
    depends.extend(found)
    return found


def topics(root):
    """The folders of functions, views and statements: all but the migrations."""
    found = (os.path.join(root, f) for f in sorted(os.listdir(root)) if f != "schema")
    return [f for f in found if os.path.isdir(f)]


def stem(path):
    name = os.path.basename(path)[: -len(".sql")]
    if not NAME.match(name):
        fail(path, "the name must be lower-case letters, digits and _, starting with a letter")
    return name


def strip_comments(text):
    def one(m):
        return m.group("keep") if m.group("keep") is not None else " "

    text = TOKEN.sub(one, text)
    # Comments and the space around them were replaced one by one.
    return TOKEN.sub(one, text).strip().rstrip(";").strip()


def pin_search_path(path, text, home):
    """The text of a function with `set search_path`, which the file need not contain.

    Left as they are: `language sql` functions that are stable or immutable, because PostgreSQL makes them a part of
    the statement that calls them, which it does not do if they have settings.
    """
    function = FUNCTION.search(text)
    if not function:
        return text
    head = strip_comments(function.group(1))
    language = LANGUAGE.search(head)
    if not language:
        fail(path, "a function must be `language plpgsql` or `language sql`")
    if PINNED.search(head) or (language.group(1).lower() == "sql" and INLINED.search(head)):
        return text
    at = function.end(1)
    return f"{text[:at]}set search_path = {home}, pg_temp\n{text[at:]}"


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def c_string(text):
    """One C literal per line of SQL; escapes leave nothing to trigraphs or hex run-on."""
    lines = text.splitlines(keepends=True) or [""]
    out = []
    for line in lines:
        s = ""
        for byte in line.encode():
            ch = chr(byte)
            if ch == "\n":
                s += "\\n"
            elif ch in '"\\?':
                s += "\\" + ch
            elif 32 <= byte < 127:
                s += ch
            else:
                s += f"\\{byte:03o}"
        out.append(f'    "{s}"')
    return "\n".join(out)


def join_lines(found):
    """{name: text} of (name, text) pairs; the texts of one name are joined."""
    joined = {}
    for name, text in found:
        joined[name] = f"{joined[name]} {text}" if name in joined else text
    return joined


def read_columns(path, declared, shared):
    """The columns of a declaration: [(name, letter)].  A name without letter marks where shared columns begin."""
    found = []
    columns = [] if declared == "nothing" else [c.strip() for c in declared.split(",")]
    for i, column in enumerate(columns):
        m, other = COLUMN.match(column), SHARED.match(column)
        if column == "..." and i == len(columns) - 1:
            found.append(("rest", "."))
        elif other and other.group("name") in shared:
            inner = read_columns(path, shared[other.group("name")], shared)
            found.append((other.group("name"), ""))
            found += [("", letter.upper() if other.group("null") else letter) for _, letter in inner if letter]
        elif m and m.group("type") in LETTERS:
            letter = LETTERS[m.group("type")]
            found.append((m.group("name"), letter.upper() if m.group("null") else letter))
        else:
            fail(path, f"returns: {column!r} is not \"name type\", \"name type?\" or \"@columns\", or is not known")
    return found


def column_constants(path, name, columns):
    """One C enum: the positions of the columns that have a name."""
    at, found = 0, {}
    for column, letter in columns:
        constant = f"{name}_COL_{column}".upper()
        if column and found.setdefault(constant, at) != at:
            fail(path, f"two columns are called {column}")
        at += len(letter)
    return "enum { " + ", ".join(f"{c} = {i}" for c, i in found.items()) + " };"


def number_literals(text):
    """(name, number) of each literal of a SQL text that is a status, a reason or a kind."""
    text = re.sub(r"--[^\n]*", "", text)
    for pattern, literal in ((COMPARED, r"[0-9]+"), (LISTED, r"[0-9]+"), (SWITCHED, WHEN)):
        for m in pattern.finditer(text):
            for number in re.findall(literal, m.group("literals")):
                yield m.group("name"), int(number)


def check_numbers(path, text, enums):
    """Every number that SQL and C share exists in its enum, and the file declares which enum that is."""
    declared = {}
    for part in ", ".join(NUMBERS.findall(text)).split(","):
        m = NUMBERS_OF.match(part.strip())
        names = m.group(2).split(" or ") if m else []
        if part.strip() and not (m and all(n in enums for n in names)):
            fail(path, f"numbers: {part.strip()!r} is not \"name enum\", or the enum is not known")
        if m:
            declared[m.group(1)] = set().union(*(enums[n] for n in names))
    used = set()
    for name, number in number_literals(text):
        used.add(name)
        if name in declared and number not in declared[name] and number < LEAST_HTTP_STATUS:
            fail(path, f"{name} {number}: its enum has no such number")
        if name not in declared and 0 < number < LEAST_HTTP_STATUS:
            fail(path, f"{name} {number}: needs a line such as \"-- numbers: {name} seg_status\"")
    every = set().union(*declared.values()) if declared else None
    bare = re.sub(r"--[^\n]*", "", text)
    small = SMALL.findall(bare) + [n for case in SMALL_CASE.findall(bare) for n in RESULT.findall(case)]
    for number in small if declared else []:
        if int(number) not in every:
            fail(path, f"{number}::int2: the enums of this file have no such number")
    for name in declared.keys() - used:
        if not small:
            fail(path, f"numbers: {name} is not used")


def enum_numbers(texts):
    """{enum: its numbers}"""
    joined = join_lines(pair for text in texts for pair in ENUM.findall(text))
    return {name: {int(n) for n in re.findall(r" ([0-9]+)(?=,|\Z)", values.strip())} for name, values in joined.items()}


def read_enum(path, name, text):
    values = [v.strip() for v in text.split(",")]
    for v in values:
        if not VALUE.match(v):
            fail(path, f"enum {name}: {v!r} is not \"NAME number\"")
    return f"enum {name} {{ " + ", ".join(v.replace(" ", " = ") for v in values) + " };"


def load_statements(root, depends, prefix="", constants=None):
    """Sorted by name: the number of a statement does not depend on the folder it is in.

    constants gets the lines of C that describe columns and numbers.
    """
    paths = [os.path.join(folder, STATEMENTS) for folder in topics(root)]
    texts = {path: read(path) for path in paths if os.path.exists(path)}
    constants = [] if constants is None else constants
    shared = join_lines(pair for text in texts.values() for pair in COLUMNS.findall(text))
    for path, text in texts.items():
        constants += [read_enum(path, name, values) for name, values in join_lines(ENUM.findall(text)).items()]
    constants += [column_constants(root, prefix + name, read_columns(root, text, shared)) for name, text in sorted(shared.items())]
    found = {}
    for path, text in texts.items():
        head, *parts = STATEMENT.split(text)
        if strip_comments(head):
            fail(path, "begins without a line \"-- statement: NAME\"")
        for name, raw in zip(parts[::2], parts[1::2]):
            where = f"{path}: statement {name}"
            text = strip_comments(raw)
            if not NAME.match(name):
                fail(where, "the name must be lower-case letters, digits and _, starting with a letter")
            if name in found:
                fail(where, f"another statement is called {name} too: {found[name][0]}")
            if not text:
                fail(where, "is empty")
            declared = " ".join(RETURNS.findall(raw)).strip()
            if not declared:
                fail(where, "needs a line such as \"-- returns: lane int8, name text?\" (? may be null; or: nothing)")
            columns = read_columns(where, declared, shared)
            if columns and not SHARED.match(declared):
                constants.append(column_constants(where, prefix + name, columns))
            letters = ("1" if ONE_ROW.search(raw) else "") + "".join(letter for _, letter in columns)
            found[name] = (path, text, letters)
    return [(name, *found[name][1:]) for name in sorted(found)]


def read_migration(path, depends):
    """The text of a migration: a file, or a folder of parts that are joined in the order of their names."""
    if not os.path.isdir(path):
        return read(path)
    parts = sql_files(path, depends)
    for part in parts:
        if not PART.match(os.path.basename(part)):
            fail(part, "a part of a migration is named NN_name.sql")
    return "\n".join(read(part) for part in parts)


def load_migrations(root, depends):
    """(number, name, text) of each."""
    migrations = []
    folder = os.path.join(root, "schema")
    if not os.path.isdir(folder):
        return migrations
    sql_files(folder, depends)
    for entry in sorted(os.listdir(folder)):
        if entry == "SHA256SUMS":
            continue
        path = os.path.join(folder, entry)
        m = MIGRATION.match(entry)
        if not m or bool(m.group(3)) == os.path.isdir(path):
            fail(path, "a migration is a file NNNN_name.sql or a folder NNNN_name")
        number = int(m.group(1))
        if number != len(migrations) + 1:
            fail(path, f"expected number {len(migrations) + 1:04d}: no gaps, no doubles")
        migrations.append((number, m.group(2), read_migration(path, depends)))
    return migrations


def load_objects(root, depends, home=None):
    """home: the schema of functions that get a search_path here; None: they have it in their files."""
    files = {}
    enums = enum_numbers(read(os.path.join(folder, STATEMENTS)) for folder in topics(root)
                         if os.path.exists(os.path.join(folder, STATEMENTS)))
    for folder in topics(root):
        for path in sql_files(folder, depends):
            if os.path.basename(path) == STATEMENTS:
                continue
            if enums:
                check_numbers(path, read(path), enums)
            name = stem(path)
            if name in files:
                fail(path, f"another object is called {name} too: {files[name][0]}")
            text = read(path) if home is None else pin_search_path(path, read(path), home)
            needs = [n.strip() for m in NEEDS.findall(text) for n in m.split(",") if n.strip()]
            files[name] = (path, text, needs)

    order, state = [], {}

    def visit(name, way):
        if state.get(name) == "done":
            return
        path, text, needs = files[name]
        if state.get(name) == "open":
            fail(path, "needs itself: " + " -> ".join(way + [name]))
        state[name] = "open"
        for need in needs:
            if need not in files:
                fail(path, f"needs {need}, which is not here")
            visit(need, way + [name])
        state[name] = "done"
        order.append((name, text))

    for name in sorted(files):
        visit(name, [])
    return order


class Root:
    """One folder like broker/sql: the statements and the schema of one kind of database."""

    def __init__(self, kind, name, home, folder, depends):
        if kind not in ("pg", "my") or not NAME.match(name) or not NAME.match(home):
            fail(folder, f"--root {kind} {name} {home}: not a kind, or not a name")
        self.kind, self.name, self.home = kind, name, home
        self.prefix = "" if name == "queen" else name + "_"
        # The folder itself stands for "a new sub-folder appeared".
        depends.append(folder)
        self.constants = []
        self.statements = load_statements(folder, depends, ("my_" if kind == "my" else "") + self.prefix, self.constants)
        self.migrations = load_migrations(folder, depends)
        self.objects = load_objects(folder, depends, home if kind == "pg" else None)

    def count(self):
        return f"{self.kind.upper()}_STMT_{self.prefix.upper()}COUNT"

    def header(self):
        out = [f"enum {{ {self.count()} = {len(self.statements)} }};", "",
               f"extern const struct pg_schema {self.kind}_schema_{self.name};", ""]
        out += [f"extern const struct {self.kind}_statement {self.kind}_stmt_{self.prefix}{name};"
                for name, _, _ in self.statements]
        return out + [""]

    def source(self):
        out, table = [], f"{self.kind}_{self.name}"
        for i, (name, text, returns) in enumerate(self.statements):
            shape = "" if self.kind == "my" else f', "{returns}"'
            out.append(f'const struct {self.kind}_statement {self.kind}_stmt_{self.prefix}{name} = '
                       f'{{"{self.prefix}{name}",\n{c_string(text)},\n    {i}{shape}}};')
        if self.migrations:
            out.append(f"static const struct pg_migration {table}_migrations[] = {{")
            for number, name, text in self.migrations:
                out.append(f'    {{{number}, "{name}",\n{c_string(text)},\n     "{sha256(text)}"}},')
            out.append("};")
        if self.objects:
            out.append(f"static const struct pg_object {table}_objects[] = {{")
            for name, text in self.objects:
                out.append(f'    {{"{name}",\n{c_string(text)},\n     "{sha256(text)}"}},')
            out.append("};")
        out.append(f"const struct pg_schema {self.kind}_schema_{self.name} = {{")
        out.append(f"    {table + '_migrations' if self.migrations else '0'}, {len(self.migrations)},")
        out.append(f"    {table + '_objects' if self.objects else '0'}, {len(self.objects)},")
        out.append(f'    "{self.home}",')
        return out + ["};"]


def guarded(include, about, lines):
    guard = "QUEEN_" + re.sub(r"[^A-Z0-9]", "_", include.upper())
    return "\n".join([f"// Generated by tools/embed_sql.py: {about}", f"#ifndef {guard}", f"#define {guard}", "", *lines, "#endif", ""])


def write_constants(path, include, roots):
    lines = [line for r in roots for line in r.constants]
    with open(path, "w") as f:
        f.write(guarded(include, "columns of results, and numbers that SQL and C share.", lines + [""]))


def write_header(path, include, constants, roots):
    out = ['#include "pg/migrate.h"', '#include "pg/pool.h"', f'#include "{constants}"']
    if any(r.kind == "my" for r in roots):
        out.append('#include "tenant/my_pool.h"')
    out.append("")
    for r in roots:
        out += r.header()
    with open(path, "w") as f:
        f.write(guarded(include, "the statements and the schema that this program carries.", out))


def write_source(path, include, roots):
    out = ["// Generated by tools/embed_sql.py.", f'#include "{include}"', "",
           '#pragma GCC diagnostic ignored "-Woverlength-strings"', ""]
    for r in roots:
        out += r.source()
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--root", required=True, action="append", nargs=4,
                      metavar=("KIND", "NAME", "HOME", "FOLDER"))
    args.add_argument("--include", required=True, help="the header's name, as C includes it")
    args.add_argument("--source", required=True)
    args.add_argument("--header", required=True)
    args.add_argument("--constants", required=True, help="a second header, without other includes, beside the first")
    args.add_argument("--depfile")
    a = args.parse_args()

    depends = [os.path.abspath(__file__)]
    roots = [Root(*r, depends) for r in a.root]
    constants = os.path.join(os.path.dirname(a.include), os.path.basename(a.constants))
    write_header(a.header, a.include, constants, roots)
    write_constants(a.constants, constants, roots)
    write_source(a.source, a.include, roots)
    if a.depfile:
        with open(a.depfile, "w") as f:
            names = " ".join(p.replace(" ", "\\ ") for p in depends)
            f.write(f"{a.source}: {names}\n")


if __name__ == "__main__":
    main()
