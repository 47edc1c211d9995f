"""A server of somebody else: the role owns one database, and has no superuser, extension or ALTER SYSTEM."""
import json
import subprocess
import uuid

import psycopg2
import pytest

from harness import BIN, START_TIMEOUT, TIME_FACTOR


class Tenant:
    """A role with a database of its own, in which other schemas are in use."""

    def __init__(self, pg):
        self.pg, name = pg, "app-" + uuid.uuid4().hex[:8]
        self.role, self.database = name, name
        self.admin('create role "%s" login nosuperuser nocreatedb nocreaterole' % name, 'create database "%s" owner "%s"' % (name, name),
                   'revoke all on database "%s" from public' % name)
        self.sql("create schema shop", "create table shop.queues (id int primary key, name text)", "insert into shop.queues values (1, 'mine')",
                 "create table public.messages (id int)", "create function public.push(text) returns text language sql as 'select $1'")

    def admin(self, *statements):
        c = self.pg.connect()
        for s in statements:
            c.cursor().execute(s)
        c.close()

    def sql(self, *statements, role=None):
        c = self.connect(role)
        rows = None
        with c.cursor() as cur:
            for s in statements:
                cur.execute(s)
                rows = cur.fetchall() if cur.description else None
        c.close()
        return rows

    def connect(self, role=None):
        c = psycopg2.connect(host=self.pg.host, port=self.pg.port, user=role or self.role, dbname=self.database)
        c.autocommit = True
        return c

    def conninfo(self):
        return "host=%s port=%d user=%s dbname=%s" % (self.pg.host, self.pg.port, self.role, self.database)

    def doctor(self):
        r = subprocess.run([BIN, "doctor", "--json", "--url", "http://127.0.0.1:1", "--pg", self.conninfo()], capture_output=True, text=True,
                           timeout=60)
        return [json.loads(line) for line in r.stdout.splitlines()]

    def dispose(self):
        self.admin('drop database "%s" with (force)' % self.database, 'drop role "%s"' % self.role)


@pytest.fixture
def tenant(pg):
    t = Tenant(pg)
    yield t
    t.dispose()


def rows_of(checks, name):
    return [c for c in checks if c["check"] == name]


def test_everything_works_as_the_owner_of_one_database(tenant, make_broker, queue):
    b = make_broker(database=tenant.database, PG_USER=tenant.role)
    b.put(queue, [1, 2, 3, 4], partition="p")
    one, two, three, four = b.take(queue, "p", batch=4)
    assert b.ack(one)["success"] and b.ack(two, "dlq")["success"] and b.ack(three)["success"] and b.ack(four)["success"]
    b.post("/api/v1/push", {"items": [{"queue": queue, "payload": 9, "delayMs": 200}]})
    b.put(queue + "-w", [1, 2])
    b.post("/api/v1/stats/refresh").expect(200)
    assert b.get("/api/v1/dlq?queue=" + queue).expect(200).json["messages"]
    assert b.get("/api/v1/analytics/postgres-stats").expect(200)
    b.request("DELETE", "/api/v1/resources/queues/" + queue + "-w").expect(200)
    # SQL, in the same database, by the role itself
    tenant.sql("select queen.push_messages_v2('[{\"queue\": \"%s\", \"partition\": \"sql\", \"payload\": 5}]')" % queue)
    (m,) = b.take(queue, "sql")
    assert m["data"] == 5
    assert "permission denied" not in b.log_text() and "must be " not in b.log_text()
    # the other schemas are as before
    assert tenant.sql("select id, name from shop.queues") == [(1, "mine")]
    assert tenant.sql("select count(*) from public.messages") == [(0,)]
    assert tenant.sql("select public.push('x')") == [("x",)]
    assert tenant.sql("select nspname from pg_namespace where nspname !~ '^pg_' order by 1") == [
        (n,) for n in ("information_schema", "public", "queen", "queen_streams", "shop")]
    verdicts = {c["check"]: c["verdict"] for c in tenant.doctor()}
    for name in ("rights", "writable", "encoding", "plpgsql", "monitoring"):
        assert verdicts[name] == "fine", verdicts


def test_a_missing_right_is_named_with_its_statement(tenant, make_broker):
    tenant.admin('alter database "%s" owner to postgres' % tenant.database, 'grant connect on database "%s" to "%s"' % (tenant.database, tenant.role))
    b = make_broker(start=False, database=tenant.database, PG_USER=tenant.role).spawn()
    assert b.process.wait(START_TIMEOUT * max(1, TIME_FACTOR)) == 2
    assert "permission denied for database %s" % tenant.database in b.log_text()
    missing = rows_of(tenant.doctor(), "rights")
    assert [c["verdict"] for c in missing] == ["bad", "bad"], missing
    statement = missing[0]["advice"]
    assert statement == 'grant create on database "%s" to "%s"' % (tenant.database, tenant.role)
    tenant.admin(statement)
    b.start()
    assert [c["verdict"] for c in rows_of(tenant.doctor(), "rights")] == ["fine", "fine"]


def test_another_role_is_told_how_to_use_the_schema(tenant, make_broker):
    b = make_broker(database=tenant.database, PG_USER=tenant.role)
    assert b.terminate() == 0
    other = Tenant(tenant.pg)
    try:
        tenant.admin('grant connect on database "%s" to "%s"' % (tenant.database, other.role))
        owner, tenant.role = tenant.role, other.role
        found = rows_of(tenant.doctor(), "rights")
        assert [c["verdict"] for c in found] == ["warn", "warn"] and owner in found[0]["found"]
        tenant.admin(found[0]["advice"])
        assert [c["verdict"] for c in rows_of(tenant.doctor(), "rights")] == ["fine", "fine"]
        make_broker(database=tenant.database, PG_USER=other.role)
        tenant.role = owner
    finally:
        tenant.sql('drop owned by "%s"' % other.role, role="postgres")
        other.dispose()


def test_a_role_that_only_reads_by_default(tenant):
    tenant.sql('alter role "%s" set default_transaction_read_only = on' % tenant.role)
    (found,) = rows_of(tenant.doctor(), "writable")
    assert found["verdict"] == "bad" and "read-only" in found["found"]
    c = tenant.connect()
    c.cursor().execute("set default_transaction_read_only = off")
    c.cursor().execute(found["advice"])
    c.close()
    (found,) = rows_of(tenant.doctor(), "writable")
    assert found["verdict"] == "fine"


def test_an_encoding_that_cannot_hold_messages(tenant):
    name = tenant.database + "-latin"
    tenant.admin('create database "%s" encoding \'LATIN1\' locale \'C\' template template0' % name)
    try:
        first, tenant.database, tenant.role = tenant.database, name, "postgres"
        (found,) = rows_of(tenant.doctor(), "encoding")
        assert found["verdict"] == "bad" and found["found"] == "LATIN1"
        assert found["advice"] == 'create database "%s_utf8" encoding \'UTF8\' template template0' % name
    finally:
        tenant.database, tenant.role = first, first
        tenant.admin('drop database "%s"' % name)
