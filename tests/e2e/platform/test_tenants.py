"""The tenant directory: add, adopt, show, change, migrate, remove."""
import socket
import struct
import threading

import pytest

from harness import urlencode, wait_until

SCHEMA = "select count(*) from crm.schema_version"


def rows(pg, database, sql):
    conn = pg.connect(database=database)
    try:
        with conn.cursor() as cur:
            cur.execute(sql)
            return cur.fetchall()
    finally:
        conn.close()


def adopt_url(pg, database, password="secret"):
    return "postgresql://%s:%s@%s:%d/%s" % (pg.user, password, pg.host, pg.port, database)


def test_a_new_tenant_has_a_database_with_the_schema_at_once(platform, pg, tenant_name):
    t = platform.add_tenant(tenant_name)
    assert t["state"] == "ready" and t["made"] and t["database"] == "tenant_" + tenant_name and t["url"] is None
    listed = platform.get("/api/v1/tenants").expect(200).json
    assert t["schemaVersion"] == listed["latestVersion"] > 0
    assert platform.get("/api/v1/tenants/" + tenant_name).expect(200).json == t == platform.tenants()[tenant_name]
    assert rows(pg, t["database"], SCHEMA) == [(t["schemaVersion"],)]
    platform.remove_tenant(tenant_name).expect(200)


def test_lists_are_searched_sorted_and_paged_by_the_server(platform, pg, tenant_name):
    names = [tenant_name + "-" + c for c in "abc"]
    for name in names:
        platform.add_tenant(name)
    connection = pg.connect(database=platform.env["PLATFORM_PG_DB"])
    sql = connection.cursor()
    sql.execute("update platform.tenant set error = 'refused' where name = %s", (names[2],))

    def listed(what="tenants", **params):
        return platform.get("/api/v1/%s?%s" % (what, urlencode({"search": tenant_name.upper(), **params}))).expect(200).json
    assert [t["tenant"] for t in listed()["tenants"]] == names and (listed()["total"], listed()["troubled"]) == (3, 1)
    assert [t["tenant"] for t in listed(sort="trouble")["tenants"]] == [names[2], names[0], names[1]]
    assert [t["tenant"] for t in listed(limit=1, offset=1)["tenants"]] == [names[1]] and listed(limit=1)["total"] == 3
    wait_until(lambda: listed("read-models")["total"] == 6, 60, "the read models are known")
    # Views of the second tenant wait for a refresh; those of the first are live.
    sql.execute("update platform.read_model set mode = 'views', first_change_at = now() - interval '1 hour' where tenant = %s", (names[1],))
    sql.execute("update platform.read_model set mode = 'live', first_change_at = now() - interval '1 day' where tenant = %s", (names[0],))
    page = listed(sort="behind")
    assert page["tenants"][0]["tenant"] == names[1] and names[0] not in page["behind"]
    models = listed("read-models", sort="behind", limit=2)["readModels"]
    assert [m["tenant"] for m in models] == [names[1]] * 2
    for params in ("sort=age", "limit=0", "limit=x", "offset=-1", "other=1"):
        platform.get("/api/v1/tenants?" + params).expect(400)
    connection.close()
    for name in names:
        platform.remove_tenant(name)


def test_a_name_is_taken_once(platform, tenant):
    r = platform.post("/api/v1/tenants", {"name": tenant}).expect(409)
    assert r.json["error"] == "tenant %s already exists" % tenant


@pytest.mark.parametrize("body, words", [
    ("nonsense", "Invalid JSON"),
    ({}, "name must be"),
    ({"name": 7}, "name must be a string"),
    ({"name": "Acme"}, "name must be"),
    ({"name": "-acme"}, "name must be"),
    ({"name": "a" * 49}, "name must be"),
    ({"name": "a.b"}, "name must be"),
    ({"name": "x", "kind": "oracle"}, 'kind must be "postgresql" or "mysql"'),
    ({"name": "x", "kind": "mysql"}, "a mysql tenant requires a url"),
    ({"name": "x", "kind": "mysql", "url": "postgresql://h/d"}, "url must be the address of a mysql database"),
    ({"name": "x", "url": "http://h/d"}, "url: not an address of the form postgresql://"),
    ({"name": "x", "url": "postgresql://u@h"}, "the address names no database"),
    ({"name": "x", "url": "postgresql://u@h/d?password=p"}, "must not be a parameter"),
    ({"name": "x", "url": "mysql://u@h"}, "the address names no database"),
    ({"name": "x", "url": "mysql://u@h:port/d"}, "url: not an address of the form mysql://"),
    ({"name": "x", "password": "p"}, "require a url"),
    ({"name": "x", "url": "postgresql://u@h/d", "password": "p", "credential": "env:P"}, "password and credential must not both be given"),
    ({"name": "x", "url": "postgresql://u@h/d", "credential": "P"}, "credential must be env:NAME or file:/path"),
])
def test_bad_tenants_are_refused(platform, body, words):
    r = platform.post("/api/v1/tenants", body).expect(400)
    assert words in r.json["error"]
    assert "x" not in platform.tenants()


def test_a_database_is_adopted_and_its_password_never_shown(platform, pg, tenant_name):
    pg.create_database("adopted_" + tenant_name)
    t = platform.add_tenant(tenant_name, url=adopt_url(pg, "adopted_" + tenant_name, "verysecret"))
    assert not t["made"] and t["credential"] == "stored" and "verysecret" not in str(platform.tenants())
    assert t["url"] == "postgresql://%s@%s:%d/adopted_%s" % (pg.user, pg.host, pg.port, tenant_name)
    assert rows(pg, "adopted_" + tenant_name, SCHEMA) == [(t["schemaVersion"],)]
    refused = platform.remove_tenant(tenant_name, drop=True).expect(409)
    assert "was adopted" in refused.json["error"]
    assert platform.remove_tenant(tenant_name, drop=False).expect(200).json == {"tenant": tenant_name, "removed": True, "dropped": False}
    assert rows(pg, "adopted_" + tenant_name, SCHEMA)


def test_a_failed_add_leaves_nothing(platform, pg, tenant_name):
    r = platform.post("/api/v1/tenants", {"name": tenant_name, "url": "postgresql://u@127.0.0.1:1/d"}).expect(503)
    assert r.json["error"].startswith("tenant %s: " % tenant_name) and r.headers["retry-after"]
    assert tenant_name not in platform.tenants()
    platform.add_tenant(tenant_name)
    platform.remove_tenant(tenant_name).expect(200)


def test_removing_drops_what_was_made(platform, pg, tenant_name):
    t = platform.add_tenant(tenant_name)
    assert platform.remove_tenant(tenant_name).expect(200).json["dropped"]
    assert rows(pg, None, "select count(*) from pg_database where datname = '%s'" % t["database"]) == [(0,)]
    platform.get("/api/v1/tenants/" + tenant_name).expect(404)
    platform.remove_tenant(tenant_name).expect(404)
    again = platform.add_tenant(tenant_name)
    assert again["state"] == "ready"
    platform.remove_tenant(tenant_name).expect(200)


def test_forgetting_keeps_the_database_and_adding_finds_it(platform, pg, tenant_name):
    t = platform.add_tenant(tenant_name)
    rows(pg, t["database"], "create table kept (n int); select 1")
    assert not platform.remove_tenant(tenant_name, drop=False).expect(200).json["dropped"]
    platform.add_tenant(tenant_name)
    assert rows(pg, t["database"], "select count(*) from kept") == [(0,)]
    platform.remove_tenant(tenant_name).expect(200)


@pytest.mark.parametrize("method", ["get", "patch", "delete"])
@pytest.mark.parametrize("name", ["nobody", "No%20Body", "%ff"])
def test_an_unknown_tenant_is_404(platform, method, name):
    body = {"body": {"password": "p"}} if method == "patch" else {}
    assert getattr(platform, method)("/api/v1/tenants/" + name, **body).expect(404).json["error"].endswith("there is no such tenant")


def test_all_are_migrated_with_a_report(platform, pg, tenant, tenant_name):
    database = platform.tenants()[tenant]["database"]
    rows(pg, database, "delete from crm.schema_objects; select 1")
    report = platform.post("/api/v1/tenants/migrate", timeout=120).expect(200).json
    mine = {t["tenant"]: t for t in report["tenants"]}[tenant]
    assert mine["status"] == "migrated" and mine["objects"] > 0 and mine["error"] is None
    assert report["migrated"] >= 1 and report["version"] == platform.tenants()[tenant]["schemaVersion"]
    again = platform.post("/api/v1/tenants/migrate", timeout=120).expect(200).json
    assert {t["tenant"]: t["status"] for t in again["tenants"]}[tenant] == "current"


def test_a_migration_that_fails_is_reported_and_leaves_the_others(make_platform, pg, tenant_name):
    p = make_platform()
    p.add_tenant(tenant_name + "-a")
    p.add_tenant(tenant_name + "-b")
    bad = p.tenants()[tenant_name + "-a"]["database"]
    rows(pg, bad, "update crm.schema_version set sha256 = 'x' where version = 1; select 1")
    report = p.post("/api/v1/tenants/migrate", timeout=60).expect(200).json
    by_name = {t["tenant"]: t for t in report["tenants"]}
    assert by_name[tenant_name + "-a"]["status"] == "failed" and "different contents" in by_name[tenant_name + "-a"]["error"]
    assert by_name[tenant_name + "-b"]["status"] == "current" and report["failed"] == 1
    shown = p.tenants()[tenant_name + "-a"]
    assert shown["state"] == "failed" and "different contents" in shown["error"]
    for name in ("-a", "-b"):
        p.remove_tenant(tenant_name + name).expect(200)


def test_an_invalid_change_of_a_tenant_is_refused(platform, pg, tenant, tenant_name):
    assert "nothing to change" in platform.patch("/api/v1/tenants/" + tenant, {}).expect(400).json["error"]
    assert "the platform created" in platform.patch("/api/v1/tenants/" + tenant, {"password": "p"}).expect(409).json["error"]


def test_references_to_credentials_are_shown_and_changed(make_platform, pg, tmp_path):
    (tmp_path / "password").write_text("secret")
    platform = make_platform(PLATFORM_CREDENTIAL_DIR=tmp_path, PLATFORM_TENANT_BYREF="secret")
    name = "byref"
    pg.create_database("byref")
    url = adopt_url(pg, "byref").replace(":secret", "")
    t = platform.add_tenant(name, url=url, credential="env:PLATFORM_TENANT_BYREF")
    assert t["credential"] == "env:PLATFORM_TENANT_BYREF"
    t = platform.patch("/api/v1/tenants/" + name, {"credential": "file:%s/password" % tmp_path}).expect(200).json
    assert t["credential"] == "file:%s/password" % tmp_path
    for wrong in ("env:PATH", "env:JWT_SECRET", "file:/etc/hostname", "file:%s/../x" % tmp_path):
        assert "credential must be a" in platform.patch("/api/v1/tenants/" + name, {"credential": wrong}).expect(400).json["error"]
    assert platform.patch("/api/v1/tenants/" + name, {"credential": None}).expect(200).json["credential"] is None
    assert "the same kind of database" in platform.patch("/api/v1/tenants/" + name, {"url": "mysql://u@h/d"}).expect(409).json["error"]
    platform.remove_tenant(name, drop=False).expect(200)
    r = platform.post("/api/v1/tenants", {"name": name, "url": url, "credential": "env:PLATFORM_TENANT_NO_SUCH"})
    assert r.status == 500 and "no such variable" in r.json["error"]


def test_a_mysql_database_is_adopted_and_migrated(platform, mariadb, tenant_name):
    database = mariadb.create_database("my_" + tenant_name.replace("-", "_"))
    t = platform.add_tenant(tenant_name, url=mariadb.url(database))
    assert t["kind"] == "mysql" and t["state"] == "ready" and t["credential"] == "stored"
    assert t["url"] == "mysql://queen@127.0.0.1:%d/%s" % (mariadb.port, database)
    assert mariadb.ask("select count(*) from schema_version", database) == [[str(t["schemaVersion"])]]
    report = platform.post("/api/v1/tenants/migrate", timeout=60).expect(200).json
    assert {x["tenant"]: x["status"] for x in report["tenants"]}[tenant_name] == "current"
    platform.remove_tenant(tenant_name, drop=False).expect(200)


@pytest.mark.parametrize("theirs, name", [
    ("create table transaction_log (id int, customer_id int); insert into transaction_log values (1, 1)", "table transaction_log"),
    ("create table schema_version (installed_rank int, script text)", "table schema_version"),
    ("create procedure ingest() select 1", "procedure ingest"),
])
def test_a_mysql_database_with_tables_of_our_names_is_refused(platform, mariadb, tenant_name, theirs, name):
    database = mariadb.create_database("taken_" + tenant_name.replace("-", "_"))
    mariadb.ask(theirs, database)
    r = platform.post("/api/v1/tenants", {"name": tenant_name, "url": mariadb.url(database)}).expect(409)
    assert "already has a %s that the platform did not create" % name in r.json["error"]
    assert tenant_name not in platform.tenants()
    tables = mariadb.ask("show tables", database)
    assert tables == ([[name.split()[1]]] if name.startswith("table") else []), "nothing was created"


def test_a_mysql_migration_that_ended_half_way_is_continued(platform, mariadb, tenant_name):
    database = mariadb.create_database("half_" + tenant_name.replace("-", "_"))
    platform.add_tenant(tenant_name, url=mariadb.url(database))
    platform.remove_tenant(tenant_name, drop=False).expect(200)
    mariadb.ask("delete from schema_version; drop table visit_log", database)
    platform.add_tenant(tenant_name, url=mariadb.url(database))
    assert mariadb.ask("select count(*) from visit_log", database) == [["0"]]
    platform.remove_tenant(tenant_name, drop=False).expect(200)


def test_a_wrong_password_is_reported(platform, mariadb, tenant_name):
    url = mariadb.url(mariadb.create_database("wrong_" + tenant_name.replace("-", "_"))).replace(":bee@", ":wasp@")
    r = platform.post("/api/v1/tenants", {"name": tenant_name, "url": url}).expect(503)
    assert "Access denied" in r.json["error"] and tenant_name in r.json["error"]


class HostileServer(threading.Thread):
    """Speaks enough of PostgreSQL's protocol to ask for a password, and records what it receives."""
    def __init__(self, method):
        super().__init__(daemon=True)
        self.method, self.received, self.asked = method, b"", 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            with client:
                client.settimeout(5)
                try:
                    start = client.recv(4096)
                    if start[4:8] == struct.pack("!i", 80877103):  # SSLRequest
                        client.sendall(b"N")
                        client.recv(4096)
                    client.sendall(b"R" + struct.pack("!i", 4 + len(self.method)) + self.method)
                    self.asked += 1
                    self.received += client.recv(4096)
                except OSError:
                    pass


@pytest.mark.parametrize("method", [struct.pack("!i", 3), struct.pack("!i", 5) + b"salt"], ids=["clear text", "md5"])
def test_a_tenant_server_cannot_request_the_password(make_platform, method):
    server = HostileServer(method)
    p = make_platform(PLATFORM_TENANT_ANY_AUTH="false", PLATFORM_TENANT_PW="secret-of-another-tenant")
    r = p.post("/api/v1/tenants", {"name": "hostile", "url": "postgresql://u@127.0.0.1:%d/d" % server.port,
                                   "credential": "env:PLATFORM_TENANT_PW"})
    assert r.status >= 400 and "channel binding" in r.json["error"], r.text
    server.listener.close()
    assert server.asked > 0 and server.received == b""


@pytest.mark.parametrize("parameter", ["connect_timeout=600", "options=-cstatement_timeout%3D0", "passfile=/etc/shadow", "sslkey=/x"])
def test_an_address_with_other_parameters_is_refused(platform, parameter):
    r = platform.post("/api/v1/tenants", {"name": "param", "url": "postgresql://u@h/d?" + parameter}).expect(400)
    assert parameter.split("=")[0] in r.json["error"]


def test_a_database_is_that_of_one_tenant(platform, pg, tenant_name):
    names = [tenant_name + suffix for suffix in ("a", "b", "c")]
    admin = pg.connect()
    for n in names[:2]:
        admin.cursor().execute('create database "%s"' % n)
    url = "postgresql://%s@%s:%s/%%s" % (pg.user, pg.host, pg.port)
    platform.add_tenant(names[0], url=url % names[0])
    platform.add_tenant(names[1], url=url % names[1])
    refused = platform.post("/api/v1/tenants", {"name": names[2], "url": url % names[0]}, timeout=60).expect(409).json["error"]
    assert "the database is that of another tenant" in refused
    assert "the database is that of another tenant" in platform.patch("/api/v1/tenants/" + names[1], {"url": url % names[0]}).expect(409).json["error"]
    assert names[2] not in platform.tenants()
    platform.remove_tenant(names[0], drop=False)
    platform.add_tenant(names[2], url=url % names[0])  # it is nobody's now
    for n in names[1:]:
        platform.remove_tenant(n, drop=False)
    admin.close()


def test_a_database_that_the_platform_created_is_not_adopted_as_another_tenant(platform, pg, tenant_name):
    t = platform.add_tenant(tenant_name)
    other = tenant_name + "-b"
    url = "postgresql://%s@%s:%d/%s" % (pg.user, pg.host, pg.port, t["database"])
    refused = platform.post("/api/v1/tenants", {"name": other, "url": url}, timeout=60).expect(409).json["error"]
    assert "the database is that of tenant " + tenant_name in refused
    assert other not in platform.tenants() and platform.tenants()[tenant_name]["state"] == "ready"
    platform.remove_tenant(tenant_name, drop=False).expect(200)
    assert platform.add_tenant(other, url=url)["state"] == "ready"  # it is nobody's now
    again = platform.post("/api/v1/tenants", {"name": tenant_name}, timeout=60).expect(409).json["error"]  # finds its old database
    assert "the database is that of tenant " + other in again
    platform.remove_tenant(other, drop=False).expect(200)
    platform.add_tenant(tenant_name)
    platform.remove_tenant(tenant_name).expect(200)


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_another_spelling_of_an_address_is_the_same_database(platform, pg, mariadb, tenant_name, kind):
    other = tenant_name + "-b"
    if kind == "mysql":
        mariadb.create_database(tenant_name)
        url = mariadb.url(tenant_name)
    else:
        pg.create_database(tenant_name)
        url = adopt_url(pg, tenant_name, "x")
    assert "127.0.0.1" in url
    platform.add_tenant(tenant_name, url=url)
    refused = platform.post("/api/v1/tenants", {"name": other, "url": url.replace("127.0.0.1", "localhost")}, timeout=60).expect(409).json["error"]
    assert "the database is that of tenant " + tenant_name in refused
    assert other not in platform.tenants()
    platform.remove_tenant(tenant_name, drop=False).expect(200)
    platform.add_tenant(other, url=url.replace("127.0.0.1", "localhost"))
    platform.remove_tenant(other, drop=False).expect(200)


def test_the_control_database_does_not_become_a_tenant(platform, pg, tenant_name):
    url = "postgresql://%s@%s:%s/%s" % (pg.user, pg.host, pg.port, platform.env["PLATFORM_PG_DB"])
    answer = platform.post("/api/v1/tenants", {"name": tenant_name, "url": url}, timeout=60)
    assert answer.status == 400 and "the database is the control database of a platform" in answer.json["error"], (answer.status, answer.text)
    assert tenant_name not in platform.tenants()
