"""The results of the broker's statements match the declarations in broker/sql/*/statements.sql."""
import glob
import os
import re

import pytest

import embed_sql
from sqlcore import SQL, statements

STATEMENTS = statements()
SHARED = {}
for path in glob.glob(os.path.join(SQL, "*", "statements.sql")):
    with open(path) as f:
        SHARED.update(embed_sql.join_lines(embed_sql.COLUMNS.findall(f.read())))


def columns_of(declared):
    """[(name, type)] of a declaration; None stands for "and any others"."""
    found = []
    for column in [] if declared == "nothing" else declared.split(","):
        column = column.strip().rstrip("?")
        if column.startswith("@"):
            found += columns_of(SHARED[column[1:]])
        else:
            found.append(None if column == "..." else tuple(column.split()))
    return found


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - {"drop_schemas"}))
def test_every_statement_returns_the_columns_that_it_declares(core, name):
    """The broker checks each result against the declaration, so a wrong one would refuse good answers."""
    text = STATEMENTS[name]
    returns = " ".join(embed_sql.RETURNS.findall(text))
    declared = columns_of(returns)
    statement = re.sub(r"\$\d+", "null", re.sub(r"--[^\n]*", "", text)).strip().rstrip(";")
    with core.conn.cursor() as cur:
        cur.execute("select * from (%s) s limit 0" % statement)
        columns = [(d[0], d[1]) for d in cur.description]
        cur.execute("select oid, case typname when 'varchar' then 'text' else typname end from pg_type")
        names = dict(cur.fetchall())
    found = [(name, names[oid]) for name, oid in columns]
    if declared and declared[-1] is None:
        declared.pop()
        found = found[:len(declared)]
    if returns in ("@answer", "@rows"):  # most of these statements return expressions, which have no names
        declared, found = [c[1] for c in declared], [c[1] for c in found]
    assert found == declared
