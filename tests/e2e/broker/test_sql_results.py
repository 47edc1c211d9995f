"""What the statements of the broker return, as broker/sql/*/statements.sql declares it."""
import re

import pytest

from sqlcore import statements

STATEMENTS = statements()
DECLARED = re.compile(r"^-- returns:\s*(.*)$", re.M)


def types_of(declared):
    """[(type, ...)] of a declaration; None stands for "and any others"."""
    if declared == "nothing":
        return []
    return [None if c.strip() == "..." else c.split()[1].rstrip("?") for c in declared.split(",")]


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - {"drop_schemas"}))
def test_every_statement_returns_the_columns_that_it_declares(core, name):
    """The broker checks each result against the declaration, so a wrong one would refuse good answers."""
    text = STATEMENTS[name]
    declared = types_of(" ".join(DECLARED.findall(text)))
    statement = re.sub(r"\$\d+", "null", re.sub(r"--[^\n]*", "", text)).strip().rstrip(";")
    with core.conn.cursor() as cur:
        cur.execute("select * from (%s) s limit 0" % statement)
        columns = [d[1] for d in cur.description]
        cur.execute("select oid, case typname when 'varchar' then 'text' else typname end from pg_type")
        names = dict(cur.fetchall())
    found = [names[c] for c in columns]
    if declared and declared[-1] is None:
        declared.pop()
        found = found[:len(declared)]
    assert found == declared
