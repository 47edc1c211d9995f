"""The audit log: administrative actions and denied requests, and what a flood or an outage does to it."""
import json
import uuid

import pytest

import contract
import harness
from cli import Cli
from harness import wait_until
from test_api_keys import Guarded, init
from test_permissions import key_for, push, request
from tokens import bearer

# Changes that are no administrative actions: audited only if they are denied. A route that is not here must be audited.
UNAUDITED = {
    "/api/v1/push", "/api/v1/push/queue/{queue}", "/api/v1/push/queue/{queue}/partition/{partition}", "/api/v1/ack", "/api/v1/ack/batch",
    "/api/v1/transaction", "/api/v1/lease/{leaseId}/extend", "/streams/v1/queries", "/streams/v1/state/get", "/streams/v1/cycle",
    "/api/v1/traces", "/api/v1/stats/refresh", "/internal/api/notify"}
OWNERS = "/owners/"


@pytest.fixture(scope="module")
def site(pg, tmp_path_factory):
    path, key = init(tmp_path_factory.mktemp("audit"))
    return pg.env(pg.create_database("audit_" + uuid.uuid4().hex[:8])), path, key


@pytest.fixture(scope="module")
def guarded(site):
    env, path, key = site
    b = harness.begin({**env, "SIDECAR_POOL_SIZE": "4", "QUEEN_ADMIN_KEY_FILE": path, "WORKER_ID": "audited"})
    yield Guarded(b, key)
    harness.end(b, clean_exit=True)


def records(guarded, **filters):
    query = "&".join("%s=%s" % f for f in filters.items())
    return guarded.call(guarded.admin, path="/api/v1/audit?limit=1000&" + query).expect(200).json["records"]


def wait_for(guarded, n=1, **filters):
    wait_until(lambda: len(records(guarded, **filters)) >= n, 30, "%d audit records %s" % (n, filters))
    return records(guarded, **filters)


def is_audited(path):
    return path not in UNAUDITED and OWNERS not in path


def test_every_route_that_changes_something_is_audited(guarded):
    """Generated from the document: a new route is audited unless it is named above."""
    expected, silent = {}, {}
    document = contract.load()["paths"]
    everything = [(verb.upper(), path) for path, item in document.items() for verb, op in item.items()
                  if verb not in ("get", "parameters") and op["x-access"] != "public"]
    assert len(everything) > 40
    for method, path in everything:
        queue = "audit." + uuid.uuid4().hex[:8]
        push(guarded, queue)
        message = guarded.call(guarded.admin, path="/api/v1/pop/queue/%s" % queue).expect(200).json["messages"][0]
        url, body = request(method, path, queue, message)
        before = expected if is_audited(path) else silent
        before[(method, url)] = guarded.call(guarded.admin, method, url, body).status
    for (method, url), status in expected.items():
        found = wait_until(lambda: [r for r in records(guarded, subject="key:admin-key-file") if (r["method"], r["path"]) == (method, url)], 30,
                           "a record of %s %s, which was answered with %d" % (method, url, status))
        assert found[-1]["status"] == status and found[-1]["address"] == "127.0.0.1" and found[-1]["server"] == "audited", found
    paths = {(r["method"], r["path"]) for r in records(guarded)}
    assert not paths & set(silent), "these must not be audited"


def test_the_list_of_exceptions_names_routes(guarded):
    assert UNAUDITED <= set(contract.load()["paths"])


def test_a_denied_request_of_any_route_is_recorded(guarded):
    weak = key_for(guarded, "push:nothing")
    name = [k["name"] for k in guarded.call(guarded.admin, path="/api/v1/keys").json["keys"] if k["allow"] == "push:nothing"][0]
    for method, path, body in [("POST", "/api/v1/push", {"items": [{"queue": "x", "payload": 1}]}), ("GET", "/api/v1/pop/queue/orders", None),
                               ("DELETE", "/api/v1/resources/queues/orders", None), ("GET", "/api/v1/audit", None)]:
        guarded.call(weak, method, path, body).expect(403)
        r = wait_until(lambda: [r for r in records(guarded, subject="key:" + name, result="denied") if r["path"] == path], 30, "the denial of " + path)
        assert (r[0]["status"], r[0]["method"], r[0]["count"], r[0]["detail"]) == (403, method, 1, None)
    assert "audit.denied" in guarded.broker.log_text()


def test_a_record_says_what_was_done(guarded):
    queue = "q" + uuid.uuid4().hex[:8]
    guarded.call(guarded.admin, "POST", "/api/v1/configure", {"queue": queue, "options": {"leaseTime": 7}}).expect(200)
    guarded.call(guarded.admin, "DELETE", "/api/v1/resources/queues/%s" % queue).expect(200)
    newest, oldest = wait_for(guarded, 2, target=queue)
    assert (oldest["operation"], oldest["result"], oldest["subject"]) == ("configure", "ok", "key:admin-key-file")
    assert oldest["detail"] == {"queue": queue, "options": {"leaseTime": 7}}
    assert (newest["operation"], newest["method"], newest["status"], newest["detail"]) == ("delete_queue", "DELETE", 200, None)
    assert 'target="%s"' % queue in guarded.broker.log_text() or "target=" + queue in guarded.broker.log_text()


def test_secrets_are_not_recorded(guarded):
    made = guarded.create("read-only")
    guarded.call(guarded.admin, "POST", "/api/v1/migration/test-connection",
                 {"host": "127.0.0.1", "port": 1, "database": "d", "user": "u", "password": "hunter22"})
    guarded.call(guarded.admin, "POST", "/api/v1/schedules",
                 {"name": "s" + uuid.uuid4().hex[:8], "queue": "q", "cron": "@yearly", "payload": {"card": "4111"}})
    wait_for(guarded, operation="create_schedule")
    text = json.dumps(records(guarded)) + guarded.broker.log_text()
    assert made["name"] in text
    for secret in (made["key"], "hunter22", "4111", guarded.admin):
        assert secret not in text


def test_pages_and_filters(guarded):
    queues = ["p%d.%s" % (i, uuid.uuid4().hex[:6]) for i in range(5)]
    for q in queues:
        guarded.call(guarded.admin, "POST", "/api/v1/configure", {"queue": q}).expect(200)
    wait_for(guarded, target=queues[-1])
    seen, before = [], ""
    while True:
        page = guarded.call(guarded.admin, path="/api/v1/audit?operation=configure&limit=2" + before).expect(200).json
        seen += page["records"]
        if page["next"] is None:
            break
        before = "&before=%d" % page["next"]
    ids = [r["id"] for r in seen]
    assert ids == sorted(set(ids), reverse=True)
    assert set(queues) <= {r["target"] for r in seen} and {r["operation"] for r in seen} == {"configure"}
    assert records(guarded, to="2020-01-01T00:00:00Z") == []
    assert records(guarded, address="192.0.2.1") == []
    for bad in ("result=maybe", "from=yesterdayish", "queue=x"):
        guarded.call(guarded.admin, path="/api/v1/audit?" + bad).expect(400)
    for role in ("read-only", "read-write"):
        guarded.call(guarded.create(role)["key"], path="/api/v1/audit").expect(403)


def test_a_flood_of_denied_requests_is_counted(guarded):
    marker = "flood" + uuid.uuid4().hex[:6]
    weak = key_for(guarded, "push:" + marker)
    for _ in range(300):
        guarded.call(weak, "DELETE", "/api/v1/resources/queues/" + marker).expect(403)
    found = wait_for(guarded, target=marker)
    assert len(found) <= 2, "one record for each of two workers"
    assert guarded.call(guarded.admin, path="/metrics/prometheus").expect(200).text.count("queen_audit_records_total{") == 2


def test_failed_logins_are_logged_and_recorded(site):
    env, path, key = site
    b = harness.begin({**env, "QUEEN_ADMIN_KEY_FILE": path, "NUM_WORKERS": "1"})
    try:
        for _ in range(20):
            b.request("GET", "/api/v1/resources/queues", headers=bearer("qk_0123456789abcdef_" + "x" * 43)).expect(401)
        assert b.log_text().count("audit.denied") == 1, "one line for equal requests"
        wait_until(lambda: records(Guarded(b, key), result="denied", operation="list_queues"), 30, "the record")
    finally:
        b.terminate()
        # The count of the window that was open is written at the end.
        assert "count=19" in b.log_text()
        harness.end(b)


def test_the_last_actions_are_stored_before_the_end(site, pg):
    env, path, key = site
    b = harness.begin({**env, "QUEEN_ADMIN_KEY_FILE": path})
    queue = "last" + uuid.uuid4().hex[:8]
    Guarded(b, key).call(key, "POST", "/api/v1/configure", {"queue": queue}).expect(200)
    harness.end(b, clean_exit=True)
    with pg.connect(database=env["PG_DB"]) as db, db.cursor() as cur:
        cur.execute("select count(*) from queen.audit where target = %s", (queue,))
        assert cur.fetchone()[0] == 1


def test_an_outage_loses_neither_answers_nor_records(make_broker, frail_pg, tmp_path):
    """Denials during an outage are answered at once, and stored when the database is back."""
    path, key = init(tmp_path)
    database = frail_pg.create_database("audit_" + uuid.uuid4().hex[:8])
    g = Guarded(make_broker(server=frail_pg, database=database, QUEEN_ADMIN_KEY_FILE=path, NUM_WORKERS="1"), key)
    weak = key_for(g, "push:outage")
    frail_pg.halt()
    try:
        wait_until(lambda: g.call(key, path="/health").status != 200, 60, "the outage is noticed")
        g.call(weak, "DELETE", "/api/v1/resources/queues/gone").expect(403)
        wait_until(lambda: "audit.store_failed" in g.broker.log_text(), 60, "an attempt has failed")
    finally:
        frail_pg.launch()
    wait_until(lambda: g.call(key, path="/api/v1/audit?target=gone").status == 200, 90, "the database is back")
    found = wait_for(g, target="gone")
    assert len(found) == 1 and found[0]["result"] == "denied"


def test_old_records_are_removed(site, pg, guarded):
    env = site[0]
    with pg.connect(database=env["PG_DB"]) as db, db.cursor() as cur:
        cur.execute("insert into queen.audit (record, at, method, path, status, count) select gen_random_uuid(), now() - n * interval '1 day', 'GET', '/old', 403, 1 "
                    "from generate_series(1, 200) n")
        cur.execute("select queen.trim_audit(90, 50)")
        assert cur.fetchone()[0] is True
        cur.execute("select queen.trim_audit(90, 1000)")
        assert cur.fetchone()[0] is False
        cur.execute("select count(*) from queen.audit where path = '/old'")
        assert cur.fetchone()[0] in (89, 90)


def test_the_command(guarded, tmp_path):
    cli = Cli(guarded.broker, tmp_path)
    queue = "cmd" + uuid.uuid4().hex[:8]
    guarded.call(guarded.admin, "POST", "/api/v1/configure", {"queue": queue}).expect(200)
    wait_for(guarded, target=queue)
    shown = cli("audit", "--target", queue, QUEEN_TOKEN=guarded.admin).expect(0)
    assert queue in shown.out and "configure" in shown.out
    assert json.loads(cli("audit", "--limit", "1", "--json", QUEEN_TOKEN=guarded.admin).expect(0).out)
    assert cli("audit", "--result", "maybe", QUEEN_TOKEN=guarded.admin).code != 0
