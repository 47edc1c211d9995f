"""API keys: made, used, revoked on all brokers, during an outage; the administrator's key."""
import json
import os
import signal
import subprocess
import uuid

import pytest

import harness
from cli import Cli
from harness import BIN, Background, wait_until
from tokens import SECRET, bearer, token

PROTECTED = ["GET /api/v1/resources/queues", "POST /api/v1/push", "GET /api/v1/keys"]


def init(folder, name="admin.key"):
    path = os.path.join(str(folder), name)
    made = json.loads(subprocess.run([BIN, "init", path], check=True, capture_output=True, text=True).stdout)
    assert made["file"] == path
    return path, made["key"]


class Guarded:
    """A broker and the administrator's key."""

    def __init__(self, broker, admin):
        self.broker, self.admin = broker, admin

    def call(self, key, method="GET", path="/api/v1/resources/queues", body=None, **more):
        return self.broker.request(method, path, body, headers=bearer(key) if key else None, **more)

    def create(self, role="read-write", name=None, **more):
        name = name or "k" + uuid.uuid4().hex[:10]
        return self.call(self.admin, "POST", "/api/v1/keys", {"name": name, "role": role, **more}).expect(201).json

    def revoke(self, key):
        return self.call(self.admin, "DELETE", "/api/v1/keys/" + key)


@pytest.fixture(scope="module")
def site(pg, tmp_path_factory):
    """A database of its own, and the file of the administrator's key."""
    path, key = init(tmp_path_factory.mktemp("keys"))
    return pg.env(pg.create_database("keys_" + uuid.uuid4().hex[:8])), path, key


@pytest.fixture(scope="module")
def guarded(site):
    env, path, key = site
    b = harness.begin({**env, "SIDECAR_POOL_SIZE": "4", "QUEEN_ADMIN_KEY_FILE": path})
    yield Guarded(b, key)
    harness.end(b, clean_exit=True)


@pytest.fixture(scope="module")
def second(site, guarded):
    """Another broker of the same database; it is not a peer of the first."""
    env, path, key = site
    b = harness.begin({**env, "SIDECAR_POOL_SIZE": "4", "QUEEN_ADMIN_KEY_FILE": path})
    yield Guarded(b, key)
    harness.end(b, clean_exit=True)


def test_init_makes_a_private_file_and_does_not_overwrite_it(tmp_path):
    path, key = init(tmp_path)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert open(path).read().strip() == key and key.startswith("qk_")
    again = subprocess.run([BIN, "init", path], capture_output=True, text=True)
    assert again.returncode == 3 and "exists already" in again.stderr
    assert open(path).read().strip() == key


def test_nothing_is_served_without_a_key(guarded):
    for what in PROTECTED:
        method, path = what.split()
        for key in [None, "qk_", guarded.admin[:-1], guarded.admin + "A", guarded.admin.upper(), "x", "a.b.c"]:
            r = guarded.call(key, method, path)
            assert r.status == 401, (what, key, r)
            assert r.headers["www-authenticate"].startswith("Bearer")
    assert guarded.broker.get("/health").status == 200


def test_a_wrong_secret_of_a_known_id_is_refused(guarded):
    made = guarded.create()
    flipped = made["key"][:-2] + ("B" if made["key"][-2] == "A" else "A") + made["key"][-1]
    assert guarded.call(flipped).status == 401
    assert guarded.call(made["key"]).status == 200
    assert guarded.call(flipped).status == 401


def test_roles_of_keys(guarded, queue):
    keys = {role: guarded.create(role)["key"] for role in ["read-only", "read-write", "admin"]}
    item = {"items": [{"queue": queue, "payload": 1}]}
    assert [guarded.call(keys[r], "POST", "/api/v1/push", item).status for r in keys] == [403, 201, 201]
    assert [guarded.call(keys[r]).status for r in keys] == [200, 200, 200]
    assert [guarded.call(keys[r], "GET", "/api/v1/keys").status for r in keys] == [403, 403, 200]
    assert [guarded.call(keys[r], "POST", "/api/v1/keys", {"name": "x" + uuid.uuid4().hex[:8], "role": "admin"}).status
            for r in keys] == [403, 403, 201]


def test_the_producer_is_the_name_of_the_key(guarded, queue):
    made = guarded.create()
    guarded.call(made["key"], "POST", "/api/v1/push", {"items": [{"queue": queue, "payload": 1}]}).expect(201)
    message = guarded.call(made["key"], path="/api/v1/pop/queue/%s?autoAck=true" % queue).expect(200).json["messages"][0]
    assert message["producerSub"] == "key:" + made["name"]


def test_secrets_are_shown_once_and_stored_hashed(guarded, site, pg):
    made = guarded.create(expiresInSeconds=3600)
    listed = guarded.call(guarded.admin, path="/api/v1/keys").expect(200)
    assert made["key"] not in listed.text and made["key"].rsplit("_", 1)[1] not in listed.text
    entry = next(k for k in listed.json["keys"] if k["id"] == made["id"])
    assert entry == {k: v for k, v in made.items() if k != "key"}
    assert entry["createdBy"] == "key:admin-key-file" and entry["expired"] is False
    with pg.connect(database=site[0]["PG_DB"]) as conn, conn.cursor() as cur:
        cur.execute("select k::text from queen.api_keys k")
        assert made["key"].rsplit("_", 1)[1] not in str(cur.fetchall())
    assert made["key"] not in guarded.broker.log_text() and guarded.admin not in guarded.broker.log_text()


@pytest.mark.parametrize("body, says", [
    ({}, "name"), ({"name": "", "role": "admin"}, "name"), ({"name": "a b", "role": "admin"}, "name"),
    ({"name": "a" * 64, "role": "admin"}, "name"), ({"name": "0123456789abcdef", "role": "admin"}, "name"),
    ({"name": "-a", "role": "admin"}, "name"), ({"name": "a\n", "role": "admin"}, "name"), ({"name": "ok"}, "role"),
    ({"name": "ok", "role": "Admin"}, "role"), ({"name": "ok", "role": 1}, "role"),
    ({"name": "ok", "role": "admin", "expiresInSeconds": 0}, "expiresInSeconds"),
    ({"name": "ok", "role": "admin", "expiresInSeconds": 1e12}, "expiresInSeconds"),
    ({"name": "ok", "role": "admin", "expiresInSeconds": "soon"}, "expiresInSeconds"),
])
def test_bad_requests_for_keys(guarded, body, says):
    r = guarded.call(guarded.admin, "POST", "/api/v1/keys", body).expect(400)
    assert says in r.json["error"]


def test_a_name_is_taken_once(guarded):
    made = guarded.create()
    r = guarded.call(guarded.admin, "POST", "/api/v1/keys", {"name": made["name"], "role": "admin"}).expect(409)
    assert made["name"] in r.json["error"]
    guarded.revoke(made["name"]).expect(200)
    guarded.create(name=made["name"])
    guarded.revoke("nobody").expect(404)


def test_an_expired_key_is_refused(guarded, second):
    made = guarded.create(expiresInSeconds=1)
    wait_until(lambda: guarded.call(made["key"]).status == 401, 15, "the key has expired")
    assert "expired" in guarded.call(made["key"]).json["error"]
    assert second.call(made["key"]).status == 401

    def shown():  # the broker refuses it up to a second before the database calls it expired
        keys = guarded.call(guarded.admin, path="/api/v1/keys").json["keys"]
        return next(k["expired"] for k in keys if k["id"] == made["id"])
    wait_until(shown, 15, "it is listed as expired")


def test_a_revoked_key_is_refused_at_once_here_and_soon_elsewhere(guarded, second):
    """By id and by name, on every worker of this broker at once, and on a broker that is not a peer."""
    for by in ["id", "name"]:
        made = guarded.create()
        wait_until(lambda: second.call(made["key"]).status == 200, 15, "the other broker knows the key")
        assert all(guarded.call(made["key"]).status == 200 for _ in range(4))
        guarded.revoke(made[by]).expect(200)
        wait_until(lambda: all(guarded.call(made["key"]).status == 401 for _ in range(4)), 15, "refused by all workers")
        wait_until(lambda: second.call(made["key"]).status == 401, 15, "refused by the other broker")


def test_a_waiting_pop_ends_when_its_key_is_revoked(guarded, second, queue):
    """At the broker that revokes and at another; a message that comes later goes to somebody else."""
    for place in [guarded, second]:
        made = guarded.create()
        wait_until(lambda: place.call(made["key"]).status == 200, 15, "the key is known")
        name = queue + str(place.broker.port)

        def pop():
            client = harness.Client(place.broker.host, place.broker.port)
            return client.get("/api/v1/pop/queue/%s?wait=true&timeout=60000" % name, headers=bearer(made["key"]), timeout=90)
        waiting = Background(pop)

        def parked():
            text = harness.Client(place.broker.host, place.broker.port).get("/metrics/prometheus", headers=bearer(guarded.admin)).text
            return [line for line in text.splitlines() if line.startswith("queen_parked") and not line.endswith(" 0")]
        wait_until(parked, 20, "the pop waits")
        guarded.revoke(made["id"]).expect(200)
        with pytest.raises(Exception):
            waiting.result(30)
        assert waiting.seconds < 50
        guarded.call(guarded.admin, "POST", "/api/v1/push", {"items": [{"queue": name, "payload": 7}]}).expect(201)
        got = guarded.call(guarded.admin, path="/api/v1/pop/queue/%s?wait=true&timeout=20000" % name).expect(200).json
        assert got["messages"][0]["data"] == 7


def test_keys_and_tokens_together(make_broker, site, queue):
    env, path, admin = site
    b = make_broker(JWT_ENABLED="true", JWT_SECRET=SECRET, QUEEN_ADMIN_KEY_FILE=path, PG_DB=env["PG_DB"])
    g = Guarded(b, admin)
    made = b.post("/api/v1/keys", {"name": "j" + uuid.uuid4().hex[:8], "role": "read-only"}, headers=bearer(token())).expect(201).json
    assert made["createdBy"] == "tester"
    assert g.call(made["key"]).status == 200 and g.call(token()).status == 200 and g.call(admin).status == 200
    # A token whose text begins like a key is a token, and a key is never tried as one.
    assert g.call("qk_" + token()).status == 401
    assert "key" in g.call("qk_0123456789abcdef_" + "A" * 43).json["error"]


def test_a_broker_without_the_setting_is_no_way_around(make_broker, site, guarded):
    """An unprotected broker requires keys as well once the database has one."""
    guarded.create()
    b = make_broker(PG_DB=site[0]["PG_DB"])
    wait_until(lambda: b.get("/api/v1/resources/queues").status == 401, 30, "it asks for keys")


def test_an_open_broker_makes_no_keys(broker):
    r = broker.post("/api/v1/keys", {"name": "ci", "role": "admin"}).expect(409)
    assert "QUEEN_ADMIN_KEY_FILE" in r.json["error"]


def test_an_invalid_key_file_prevents_the_start(make_broker, tmp_path):
    for text in [None, "", "secret", "qk_short"]:
        path = tmp_path / "key"
        if text is not None:
            path.write_text(text)
        b = make_broker(start=False, QUEEN_ADMIN_KEY_FILE=path)
        b.spawn()
        assert b.process.wait(60) == 1
        assert "QUEEN_ADMIN_KEY_FILE" in b.log_text()


def test_the_key_file_is_read_again_on_sighup(make_broker, tmp_path, site):
    path, old = init(tmp_path)
    b = make_broker(QUEEN_ADMIN_KEY_FILE=path, PG_DB=site[0]["PG_DB"])
    g = Guarded(b, old)
    assert g.call(old).status == 200
    os.unlink(path)
    _, new = init(tmp_path)
    b.process.send_signal(signal.SIGHUP)
    # Slowly: an address with many refused requests is barred, and a busy machine reloads late.
    wait_until(lambda: g.call(new).status == 200, 15, "the new key is accepted", interval=1)
    assert g.call(old).status == 401
    with open(path, "w") as f:
        f.write("nonsense")
    b.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "auth.reload_failed" in b.log_text(), 15, "the failure is logged")
    assert g.call(new).status == 200


def test_keys_stay_valid_during_an_outage(make_broker, frail_pg, tmp_path, queue):
    """Pushes with a key go on into the file buffer; an unknown key is refused."""
    path, admin = init(tmp_path)
    database = frail_pg.create_database("keys_" + uuid.uuid4().hex[:8])
    g = Guarded(make_broker(server=frail_pg, database=database, QUEEN_ADMIN_KEY_FILE=path), admin)
    made = g.create()
    item = {"items": [{"queue": queue, "payload": 1}]}
    g.call(made["key"], "POST", "/api/v1/push", item).expect(201)
    frail_pg.halt()
    try:
        def buffered():
            r = g.call(made["key"], "POST", "/api/v1/push", item, timeout=60).expect(201)
            return r.json[0]["status"] == "buffered"
        wait_until(buffered, 60, "pushes are buffered")
        assert g.call("qk_0123456789abcdef_" + "A" * 43).status == 401
        # A broker that has never read the table cannot decide: 503. The key of its file works.
        late = Guarded(make_broker(server=frail_pg, database=database, start=False, QUEEN_ADMIN_KEY_FILE=path), admin)
        late.broker.spawn()

        def answers():
            try:
                return late.call(made["key"], "POST", "/api/v1/push", item).status
            except OSError:
                return None
        assert wait_until(answers, 60, "it answers") == 503
        assert late.call(admin, "POST", "/api/v1/push", item, timeout=60).status == 201
    finally:
        frail_pg.launch()
    wait_until(lambda: g.call(made["key"]).status == 200, 60, "the database is back")
    g.revoke(made["id"]).expect(200)
    wait_until(lambda: g.call(made["key"]).status == 401, 15, "refused")


def test_commands(guarded, site, tmp_path):
    queen = Cli(guarded.broker, tmp_path)
    queen.env["QUEEN_TOKEN_FILE"] = site[1]
    made = queen("key", "create", "ci-" + uuid.uuid4().hex[:6], "--role", "read-write", "--expires", "90d", "--json").expect().rows[0]
    assert made["key"].startswith("qk_") and made["expiresAt"]
    assert made["id"] in [k["id"] for k in queen("key", "ls").expect().rows]
    queen("queue", "ls", QUEEN_TOKEN_FILE="", QUEEN_TOKEN=made["key"]).expect()
    queen("key", "ls", QUEEN_TOKEN_FILE="", QUEEN_TOKEN=made["key"]).expect(3)
    queen("key", "revoke", made["name"], "--yes").expect()
    queen("key", "revoke", made["name"], "--yes").expect(4)
    assert made["id"] not in [k["id"] for k in queen("key", "ls").expect().rows]


def test_denied_requests_are_counted(guarded):
    def count(reason):
        text = guarded.call(guarded.admin, path="/metrics/prometheus").text
        return int(next(line.rsplit(" ", 1)[1] for line in text.splitlines()
                        if line.startswith('queen_requests_denied_total{reason="%s"}' % reason)))
    weak = guarded.create("read-only")["key"]
    before = count("unauthenticated"), count("forbidden")
    guarded.call(None).expect(401)
    guarded.call("qk_").expect(401)
    guarded.call(weak, "DELETE", "/api/v1/keys/x").expect(403)
    assert (count("unauthenticated"), count("forbidden")) == (before[0] + 2, before[1] + 1)
