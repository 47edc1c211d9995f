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
    """A cell of `mariadb -B` as a Python value; hex distinguishes NULL from the word."""
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


def test_the_tables_match_the_events_after_the_server_was_killed(platform, mariadb):
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


def test_texts_of_every_language_are_stored_in_a_latin1_database(platform, mariadb):
    database = "latin_" + uuid.uuid4().hex[:8]
    mariadb.ask("create database %s character set latin1 collate latin1_swedish_ci" % database)
    platform.add_tenant("latin", url=mariadb.url(database))
    customer, tags = str(uuid.uuid4()), ["друг", "é/", "😀", "a\tb", "a\"b\\", "\x1f", "\x7f", " "]
    platform.send("latin", [{"id": str(uuid.uuid4()), "type": "customer.upserted", "at": "2026-11-16T04:05:06Z",
                             "data": {"customer_id": customer, "first_name": "Анна 😀", "tags": tags}},
                            {"id": str(uuid.uuid4()), "type": "customer.patched", "at": "2026-11-16T04:05:07Z",
                             "data": {"customer_id": customer, "last_name": "Иванова"}}])
    wait_until(lambda: mariadb.ask("select count(*) from applied_event", database) == [["2"]], 30 * harness.TIME_FACTOR, "both are applied", 0.1)
    assert mariadb.ask("select hex(convert(concat(first_name, last_name) using utf8mb4)) from customer", database) == \
        [["Анна 😀Иванова".encode().hex().upper()]]
    for tag in tags:  # the request has escaped them
        status, answer = platform.ask("POST", "/api/v1/tenants/latin/segments/count",
                                      {"filter": {"attribute": "tags", "operator": "any", "value": [tag]}})
        assert (status, answer["count"]) == (200, 1), (tag, answer)


def test_events_are_known_over_the_turn_of_the_day(platform, broker, mariadb):
    database = mariadb.create_database("day_" + uuid.uuid4().hex[:8])
    platform.add_tenant("daytenant", url=mariadb.url(database))

    def ask(text):
        return mariadb.ask(text, database)

    def visit():
        return {"id": str(uuid.uuid4()), "type": "visit.recorded", "at": "2026-11-16T04:05:06Z", "tenant": "daytenant",
                "data": {"customer_id": str(uuid.uuid4()), "id": str(uuid.uuid4())}}

    def push(*events):
        broker.push([{"queue": platform.env["PLATFORM_QUEUE"], "partitionKey": "daytenant", "payload": e} for e in events]).expect(201)
    known, fresh, before = visit(), visit(), platform.numbers()
    push(known)
    wait_until(lambda: ask("select count(*) from applied_event") == [["1"]], 20 * harness.TIME_FACTOR, "it is applied", 0.1)
    ((today,),) = ask("select slot from applied_event")
    yesterday = str((int(today) + 3) % 4)
    ask("update applied_event set slot = %s" % yesterday)
    ask("insert into applied_event (slot, id) values (%s, uuid())" % today)  # of four days ago
    ask("update applied_day set day = utc_date() - interval if(slot = %s, 4, 1) day where slot in (%s, %s)" % (today, today, yesterday))
    push(known, fresh)
    wait_until(lambda: ask("select count(*) from visit_log") == [["2"]], 20 * harness.TIME_FACTOR, "the new one is applied", 0.1)
    assert platform.numbers()["duplicate"] - before["duplicate"] == 1
    assert sorted(map(tuple, ask("select slot, id from applied_event"))) == sorted([(yesterday, known["id"]), (today, fresh["id"])])


def test_a_write_that_waits_too_long_for_the_rotation_fails(platform, mariadb):
    """Its ids would be in a slot that is about to be emptied."""
    database = mariadb.create_database("turn_" + uuid.uuid4().hex[:8])
    platform.add_tenant("turntenant", url=mariadb.url(database))
    mark, event = json.dumps([{"name": "p", "position": 1, "stamp": 1, "seen": 0}]), json.dumps([str(uuid.uuid4())])
    ingest = "call ingest('q', '%s', '%s', '[]', %s)" % (mark, event, ", ".join(["null"] * 9))
    lock = "concat('queen.applied_day.', md5('%s'))" % database
    other = harness.Background(lambda: mariadb.ask("do get_lock(%s, 0); do sleep(1000)" % lock, check=False))
    wait_until(lambda: mariadb.ask("select is_used_lock(%s)" % lock) != [["NULL"]], 20, "another one has the lock", 0.1)
    ((number,),) = mariadb.ask("select is_used_lock(%s)" % lock)
    with pytest.raises(AssertionError, match="turn of the day"):
        mariadb.ask(ingest, database)
    assert mariadb.ask("select count(*) from applied_event", database) == [["0"]]
    mariadb.ask("kill %s" % number)
    other.result()
    assert mariadb.ask(ingest, database) == []
    assert mariadb.ask("select count(*) from applied_event", database) == [["1"]]


def test_an_event_in_two_partitions_at_the_turn_of_the_day_is_applied_once(platform, mariadb):
    """One transaction begins on the old day and goes on after another has turned the day and has not committed yet."""
    database = mariadb.create_database("two_" + uuid.uuid4().hex[:8])
    platform.add_tenant("twotenant", url=mariadb.url(database))
    event, customer = str(uuid.uuid4()), str(uuid.uuid4())

    def ingest(partition, event, deleted=(), before=""):
        marks = json.dumps([{"name": partition, "position": 1, "stamp": 1, "seen": 0}])
        return mariadb.ask("%scall ingest('q', '%s', '%s', '%s', %s)" % (before, marks, json.dumps([event]), json.dumps(list(deleted)),
                                                                        ", ".join(["null"] * 9)), database)

    def hold(sql, seconds):
        """A session that has executed `sql` and does not commit: a function that ends it."""
        session = harness.Background(lambda: mariadb.ask("begin; %s; do sleep(%d)" % (sql, seconds), database, check=False))
        look = "select id from information_schema.processlist where db = '%s' and info = 'do sleep(%d)'" % (database, seconds)
        ((number,),) = wait_until(lambda: mariadb.ask(look), 10 * harness.TIME_FACTOR, "the lock is held", 0.05)

        def release():
            mariadb.ask("kill %s" % number)
            session.result()
        return release

    def waiting(n):
        look = "select count(*) from information_schema.innodb_trx where trx_state = 'LOCK WAIT'"
        wait_until(lambda: mariadb.ask(look) == [[str(n)]], 10 * harness.TIME_FACTOR, "%d transactions wait" % n, 0.1)

    for partition in ("a", "b"):
        ingest(partition, str(uuid.uuid4()))  # today has its slot
    mariadb.ask("insert into customer (customer_uuid, created_at, updated_at) values ('%s', utc_timestamp(), utc_timestamp())" % customer, database)
    release_partition = hold("update ingest_checkpoint set position = 2 where queue = 'q' and `partition` = 'a'", 41)
    release_customer = hold("update customer set city = 'x' where customer_uuid = '%s'" % customer, 42)
    today = harness.Background(lambda: ingest("a", event))
    waiting(1)
    tomorrow = harness.Background(lambda: ingest("b", event, [customer], "set timestamp = unix_timestamp() + 86400; "))
    waiting(2)
    release_partition()
    waiting(2)  # one for the id that the other has written
    release_customer()
    assert sorted([today.result(), tomorrow.result()]) == [[], [[event]]]
    assert mariadb.ask("select count(*) from applied_event where id = '%s'" % event, database) == [["1"]]


@pytest.mark.parametrize("days", [4, 40])
def test_an_event_is_known_after_days_without_events_and_days_of_a_wrong_clock(platform, mariadb, days):
    """A write in doubt of a tenant that was away was applied twice, and a clock that was ahead emptied the slot of today."""
    database, tenant = mariadb.create_database("days_" + uuid.uuid4().hex[:8]), "days%d" % days
    platform.add_tenant(tenant, url=mariadb.url(database))
    marks = json.dumps([{"name": "p", "position": 1, "stamp": 1, "seen": 0}])

    def ingest(event, ahead=0):
        return mariadb.ask("set timestamp = unix_timestamp() + %d; call ingest('q', '%s', '%s', '[]', %s)"
                           % (ahead * 86400, marks, json.dumps([event]), ", ".join(["null"] * 9)), database)
    in_doubt, wrong_clock = str(uuid.uuid4()), str(uuid.uuid4())
    assert ingest(in_doubt) == []
    assert ingest(in_doubt, days) == [[in_doubt]], "away for days"
    assert ingest(wrong_clock, days) == [], "a clock that is ahead"
    assert ingest(in_doubt) == [[in_doubt]] and ingest(wrong_clock) == [[wrong_clock]], "and is right again"


def test_a_late_write_of_the_former_owner_does_not_look_like_a_loss(platform, mariadb):
    """Its stamp is older than that of the next owner, who took the checkpoint for one from a backup."""
    database = mariadb.create_database("late_" + uuid.uuid4().hex[:8])
    platform.add_tenant("latetenant", url=mariadb.url(database))

    def ingest(stamp, seen):
        marks = json.dumps([{"name": "p", "position": stamp, "stamp": stamp, "seen": seen}])
        return mariadb.ask("call ingest('q', '%s', '%s', '[]', %s)" % (marks, json.dumps([str(uuid.uuid4())]), ", ".join(["null"] * 9)), database)
    ingest(100, 0)
    ingest(300, 100)  # the next owner
    ingest(200, 100)  # a write of the former owner that had waited
    assert ingest(301, 300) == []
    mariadb.ask("update ingest_checkpoint set at = '1970-01-01 00:00:00.000299'", database)
    with pytest.raises(AssertionError, match="went back behind its checkpoint"):
        ingest(302, 301)


def test_a_server_that_is_not_strict_refuses_what_a_column_cannot_hold(platform, mariadb):
    """It stored the largest value instead, where PostgreSQL refuses the event."""
    database, wallet = mariadb.create_database("loose_" + uuid.uuid4().hex[:8]), str(uuid.uuid4())
    ((mode,),) = mariadb.ask("select @@global.sql_mode")
    mariadb.ask("set global sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'")
    try:
        platform.add_tenant("loosetenant", url=mariadb.url(database))
        event = {"id": str(uuid.uuid4()), "type": "visit.recorded", "at": "2026-11-16T04:05:06Z",
                 "data": {"customer_id": str(uuid.uuid4()), "id": str(uuid.uuid4())}}
        platform.send("loosetenant", event)
        wait_until(lambda: mariadb.ask("select count(*) from visit_log", database) == [["1"]], 20 * harness.TIME_FACTOR, "it is applied", 0.1)
    finally:
        mariadb.ask("set global sql_mode = '%s'" % mode)
    marks = json.dumps([{"name": "p", "position": 1, "stamp": 1, "seen": 0}])

    def adjust(delta):
        rows = json.dumps([{"at": "2026-11-16T04:05:06.000000Z", "customer_id": str(uuid.uuid4()), "id": wallet, "delta": delta}])
        mariadb.ask("set sql_mode = ''; call ingest('q', '%s', '%s', '[]', null, null, null, null, '%s', null, null, null, null)"
                    % (marks, json.dumps([str(uuid.uuid4())]), rows), database)
    adjust(999999999999.99)
    with pytest.raises(AssertionError, match="Out of range value"):
        adjust(999999999999.99)
    assert mariadb.ask("select balance from wallet_account", database) == [["999999999999.99"]]


def test_looking_for_known_ids_does_not_read_all_of_them(platform, mariadb):
    database = mariadb.create_database("many_" + uuid.uuid4().hex[:8])
    platform.add_tenant("manytenant", url=mariadb.url(database))
    mariadb.ask("insert into applied_event (slot, id) select seq % 4, uuid() from seq_1_to_4000; analyze table applied_event", database)
    mark, event = json.dumps([{"name": "p", "position": 1, "stamp": 1, "seen": 0}]), str(uuid.uuid4())
    for answer in ([], [[event]]):
        *told, read = mariadb.ask("call ingest('q', '%s', '%s', '[]', %s); select sum(variable_value) from information_schema.session_status "
                                  "where variable_name like 'handler_read%%'" % (mark, json.dumps([event]), ", ".join(["null"] * 9)), database)
        assert told == answer and float(read[0]) < 1000, read


def test_a_slow_write_ends_at_the_server_and_costs_no_connection(pg, broker, mariadb):
    """It was cut off by us: the server went on with it, others piled up behind it, and the breaker of a healthy database opened."""
    database = mariadb.create_database("slow_" + uuid.uuid4().hex[:8])
    p = Platform(pg, broker.url, PLATFORM_QUEUE="slow-" + uuid.uuid4().hex[:8], PLATFORM_PARTITIONS=1, database="platform_slow", PLATFORM_WRITE_LIMIT_MS=500)
    p.start()
    try:
        p.add_tenant("slowtenant", url=mariadb.url(database))
        event = {"id": str(uuid.uuid4()), "type": "visit.recorded", "at": "2026-11-16T04:05:06Z",
                 "data": {"customer_id": str(uuid.uuid4()), "id": str(uuid.uuid4())}}

        def writes():
            return int(mariadb.ask("select count(*) from information_schema.processlist where db = '%s' and info like '%%ingest%%' "
                                   "and info not like '%%processlist%%'" % database)[0][0])
        lock = harness.Background(lambda: mariadb.ask("lock tables visit_log write; do sleep(1001)", database, check=False))
        ((number,),) = wait_until(lambda: mariadb.ask("select id from information_schema.processlist where info = 'do sleep(1001)'"), 20, "locked", 0.05)
        p.send("slowtenant", event)
        most = 0

        def held_twice():
            nonlocal most
            most = max(most, writes())
            return p.held().get("slowtenant", {}).get("attempts", 0) >= 3
        wait_until(held_twice, 20 * harness.TIME_FACTOR, "it was tried some times", 0.05)
        assert most <= 1, "the server ends what has taken too long"
        pools = p.pools()
        assert pools["down"] == 0 and "tenant.down" not in p.log_text(), pools
        mariadb.ask("kill %s" % number)
        lock.result()
        wait_until(lambda: mariadb.ask("select count(*) from visit_log", database) == [["1"]], 20 * harness.TIME_FACTOR, "it is applied", 0.1)
    finally:
        assert p.terminate() == 0, p.log_tail()
