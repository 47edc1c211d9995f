"""Events into the tables of a MySQL tenant: the same model as for PostgreSQL, on a real MariaDB."""
import json
import uuid
from datetime import date, datetime, timezone
from decimal import Decimal

import pytest

import harness
from event_model import TABLES, Maker, Model, tidy
from harness import wait_until
from rig_events import Platform


@pytest.fixture(scope="module")
def platform(pg, broker):
    p = Platform(pg, broker.url, PLATFORM_QUEUE="events-" + uuid.uuid4().hex[:8], PLATFORM_PARTITIONS=8, database="platform_mysql")
    yield p.start()
    assert p.terminate() == 0, p.log_tail()


def value(column, kind, text):
    """A cell of `mariadb -B` as Python has it; NULL and the word are told apart by hex."""
    if text == "NULL":
        return None
    text = bytes.fromhex(text).decode()
    if column == "tags":
        return json.loads(text)
    if kind == "datetime":
        return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    return {"date": date.fromisoformat, "decimal": Decimal, "tinyint": lambda t: bool(int(t)), "int": int, "smallint": int}.get(kind, str)(text)


def rows(mariadb, database, table):
    columns = [c for c in mariadb.ask("select column_name, data_type from information_schema.columns where table_schema = '%s' and table_name = '%s' "
                                      "order by ordinal_position" % (database, table)) if (table, c[0]) != ("customer", "id")]
    cells = mariadb.ask("select %s from %s" % (", ".join("hex(cast(`%s` as char character set utf8mb4))" % c for c, _ in columns), table), database)
    return sorted((tidy({c: value(c, k, v) for (c, k), v in zip(columns, row)}) for row in cells), key=repr)


def test_the_tables_are_what_the_events_say_also_when_the_server_was_killed(platform, mariadb):
    database = mariadb.create_database("ev_" + uuid.uuid4().hex[:8])
    platform.add_tenant("mytenant", url=mariadb.url(database))
    mariadb.ask("set global innodb_flush_log_at_trx_commit = 2")  # else a killed server forgets what it has committed
    maker, model = Maker("mytenant", 1), Model()
    for i in range(6):
        events = [maker.event() for _ in range(60)]
        platform.send("mytenant", events)
        platform.send("mytenant", events[:5])  # known by their ids
        for e in events:
            model.apply(e)
        if i == 3:
            mariadb.halt()
            mariadb.launch()
    wait_until(lambda: mariadb.ask("select count(*) from applied_event", database) == [["360"]], 60 * harness.TIME_FACTOR, "all are applied", 0.3)
    for table in TABLES:
        assert rows(mariadb, database, table) == model.rows(table), table
    wait_until(lambda: not platform.held(), 30, "no lane is left", 0.2)
