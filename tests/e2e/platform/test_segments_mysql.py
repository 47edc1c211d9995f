"""Segments of a tenant on MySQL: the fallback in that dialect, against the same oracle, on a real MariaDB."""
import datetime
import decimal
import json
import random
import uuid

import harness
import naive
from harness import wait_until

SEED = 11
TREES = 80
# Columns as the write model has them; those of ingestion's own migration stay if they are there.
TYPES = {"int": "int", "date": "date", "datetime": "datetime(6)", "Decimal": "decimal(14,2)", "bool": "boolean", "list": "json"}


def literal(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (int, decimal.Decimal)):
        return str(value)
    if isinstance(value, datetime.datetime):
        return "'%s'" % value.strftime("%Y-%m-%d %H:%M:%S.%f")
    if isinstance(value, list):
        value = json.dumps(value)
    return "'%s'" % str(value).replace("\\", "\\\\").replace("'", "''")


def create(table, rows):
    columns = []
    for column in rows[0]:
        kind = next((type(row[column]).__name__ for row in rows if row[column] is not None), "str")
        columns.append("%s %s" % (column, TYPES.get(kind, "varchar(255)")))
    if table == "customer":
        columns.insert(0, "id bigint auto_increment primary key")
    return "create table if not exists %s (%s)" % (table, ", ".join(columns))


def test_the_fallback_agrees_with_a_naive_evaluation(make_platform, mariadb):
    database = mariadb.create_database("segments")
    platform = make_platform(PLATFORM_SEGMENT_TIMEOUT_MS="30000")
    platform.add_tenant("my", url=mariadb.url(database))
    now = datetime.datetime.strptime(mariadb.ask("select utc_timestamp(6)", database)[0][0], "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=naive.UTC)
    tables = naive.generate(SEED, 80, now)
    for table, rows in tables.items():
        mariadb.ask(create(table, rows), database)
        mariadb.ask("insert into %s (%s) values %s" % (table, ", ".join(rows[0]),
                                                       ", ".join("(%s)" % ", ".join(literal(v) for v in row.values()) for row in rows)), database)
    people = naive.People(tables, now)
    catalogue = platform.get("/api/v1/segments/attributes").expect(200).json
    here = {**catalogue, "attributes": [a for a in catalogue["attributes"] if a["mysql"]]}
    r = random.Random(SEED)
    leaves = [naive.random_leaf(r, {**here, "attributes": [a]}, people) for a in here["attributes"]]
    for tree in leaves + [naive.random_tree(r, here, people) for _ in range(TREES)]:
        answer = platform.post("/api/v1/tenants/my/segments/count", {"filter": tree, "maxAgeMs": 0}).expect(200).json
        expected = people.inside(tree)
        assert (answer["count"], answer["path"]) == (len(expected), "fallback"), tree
    page = platform.post("/api/v1/tenants/my/segments/preview", {"filter": tree, "limit": 1000}).expect(200).json
    assert {c["customer"] for c in page["customers"]} == expected
    who = sorted(people.known)[0]
    told = platform.post("/api/v1/tenants/my/segments/explain", {"filter": tree, "customer": who}).expect(200).json
    assert told["inSegment"] == people.holds(who, tree)

    # what needs read models, or PostgreSQL
    leaf = {"attribute": "favourite_service", "operator": "is_set"}
    for body, status in (({"filter": leaf}, 501), ({"filter": {"all": True}, "path": "live"}, 501)):
        assert platform.post("/api/v1/tenants/my/segments/count", body).status == status
    assert platform.post("/api/v1/tenants/my/segments", {"name": "x", "filter": {"all": True}}).status == 501


def test_texts_are_compared_exactly(make_platform, mariadb):
    """Case, accents and spaces at the end count, as on PostgreSQL, whatever the collation of the database is."""
    database = mariadb.create_database("exact")
    mariadb.ask("alter database exact character set latin1 collate latin1_swedish_ci", database)
    platform = make_platform()
    platform.add_tenant("my", url=mariadb.url(database))
    people = [("ROM", ["ROM"]), ("rom", ["rom"]), ("Rom ", ["Rom "]), ("R\u00d3M", ["R\u00d3M"]), ("", ["ROM", "rom"])]
    for n, (text, places) in enumerate(people):
        who = "00000000-0000-4000-8000-%012d" % n
        mariadb.ask("""insert into customer (customer_uuid, city, email, tags, created_at, updated_at)
                       values ('%s', '%s', '%s', '%s', utc_timestamp(), utc_timestamp())"""
                    % (who, text, " " if n == 0 else "", json.dumps(places, ensure_ascii=False)), database)
        for place in places:
            mariadb.ask("insert into visit_log (id, customer_id, location_code, visited_at) values (uuid(), '%s', '%s', utc_timestamp())"
                        % (who, place), database)

    def count(attribute, operator, value):
        leaf = {"attribute": attribute, "operator": operator, "value": value}
        return platform.post("/api/v1/tenants/my/segments/count", {"filter": leaf, "maxAgeMs": 0}).expect(200).json["count"]

    for attribute in ("visit_locations", "tags"):
        assert count(attribute, "any", ["ROM"]) == 2, attribute
        assert count(attribute, "any", ["Rom"]) == 0, attribute
        assert count(attribute, "any", ["R\u00d3M"]) == 1, attribute
        assert count(attribute, "all", ["ROM", "rom"]) == 1, attribute
        assert count(attribute, "any", ["ROM", "rom", "ROM"]) == 3, attribute
    assert count("city", "eq", "ROM") == 1
    assert count("city", "in", ["Rom", "R\u00d3M"]) == 1
    # searches ignore case and nothing else
    assert count("city", "contains", "ROM") == 3
    assert count("city", "starts_with", "r\u00f3") == 1
    assert count("has_email", "eq", True) == 1


def test_a_slow_count_ends_at_the_server_and_costs_no_connection(make_platform, mariadb):
    """It was cut off by us: the server went on with it, others piled up behind it, and the breaker of a healthy database opened."""
    database = mariadb.create_database("slow_count_" + uuid.uuid4().hex[:8])
    platform = make_platform(PLATFORM_SEGMENT_TIMEOUT_MS="300")
    platform.add_tenant("slow", url=mariadb.url(database))
    counts = "select count(*) from information_schema.processlist where db = '%s' and info like '%%customer%%' and info not like '%%processlist%%'" % database
    lock = harness.Background(lambda: mariadb.ask("lock tables customer write; do sleep(41)", database, check=False))
    ((number,),) = wait_until(lambda: mariadb.ask("select id from information_schema.processlist where info = 'do sleep(41)'"), 10, "locked", 0.05)
    for _ in range(5):
        r = platform.post("/api/v1/tenants/slow/segments/count", {"filter": {"all": True}, "maxAgeMs": 0})
        assert r.status == 503 and "took longer than 300 ms" in r.json["error"], r.json
    assert mariadb.ask(counts) == [["0"]], "the server ends what has taken too long"
    assert platform.pools()["down"] == 0 and "tenant.down" not in platform.log_text()
    mariadb.ask("kill %s" % number)
    lock.result()
    platform.post("/api/v1/tenants/slow/segments/count", {"filter": {"all": True}, "maxAgeMs": 0}).expect(200)


def test_a_host_name_with_several_addresses_is_tried_with_each(make_platform, mariadb):
    """localhost may be ::1 first, and the server listens on 127.0.0.1 only."""
    database = mariadb.create_database("by_name_" + uuid.uuid4().hex[:8])
    platform = make_platform()
    platform.add_tenant("named", url=mariadb.url(database).replace("127.0.0.1", "localhost"))
    platform.post("/api/v1/tenants/named/segments/count", {"filter": {"all": True}}).expect(200)
