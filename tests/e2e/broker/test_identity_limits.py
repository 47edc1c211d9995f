"""Limits per identity: requests, bytes, connections and stored bytes; others are not disturbed."""
import subprocess
import uuid

import pytest

import harness
from cli import Cli
from harness import Client, wait_until
from test_api_keys import Guarded, init
from tokens import SECRET, bearer, token


@pytest.fixture(scope="module")
def guarded(pg, tmp_path_factory):
    path, key = init(tmp_path_factory.mktemp("limits"))
    database = pg.create_database("limits_" + uuid.uuid4().hex[:8])
    env = pg.env(database)
    b = harness.begin({**env, "SIDECAR_POOL_SIZE": "4", "QUEEN_ADMIN_KEY_FILE": path, "JWT_ENABLED": "true", "JWT_SECRET": SECRET,
                       "QUEEN_LIMITS": "requests=100000,connections=1000"})
    g = Guarded(b, key)
    g.database, g.path = database, path
    yield g
    harness.end(b, clean_exit=True)


def limited(guarded, kind):
    text = guarded.call(guarded.admin, path="/metrics/prometheus").text
    return int(next(line.rsplit(" ", 1)[1] for line in text.splitlines() if line.startswith('queen_requests_limited_total{limit="%s"}' % kind)))


def test_requests_per_second(guarded):
    slow, other = guarded.create(limits="requests=1"), guarded.create()
    before = limited(guarded, "requests")
    answers = [guarded.call(slow["key"]) for _ in range(50)]
    refused = [r for r in answers if r.status == 429]
    assert refused and answers[0].status == 200
    assert int(refused[0].headers["retry-after"]) >= 1 and "too many requests per second" in refused[0].json["error"]
    assert limited(guarded, "requests") >= before + len(refused)
    assert guarded.call(other["key"]).status == 200 and guarded.call(guarded.admin).status == 200
    wait_until(lambda: guarded.call(slow["key"]).status == 200, 30, "the bucket has recovered", interval=1.2)


def test_a_push_with_a_body_is_refused_unread(guarded, queue):
    slow = guarded.create(limits="requests=1")["key"]
    body = {"items": [{"queue": queue, "payload": "x" * 100000}]}
    seen = {guarded.call(slow, "POST", "/api/v1/push", body).status for _ in range(30)}
    assert seen == {201, 429}


def test_denied_requests_count(guarded):
    weak = guarded.create("read-only", limits="requests=1")["key"]
    assert {guarded.call(weak, path="/api/v1/keys").status for _ in range(30)} == {403, 429}


def test_bytes_per_second(guarded, queue):
    """A large request is accepted once; then its sender waits as long as the limit requires."""
    slow = guarded.create(limits="bytes=10000")["key"]
    body = {"items": [{"queue": queue, "payload": "x" * 1000000}]}
    guarded.call(slow, "POST", "/api/v1/push", body).expect(201)
    r = guarded.call(slow).expect(429)
    assert int(r.headers["retry-after"]) > 30 and "bytes per second" in r.json["error"]
    assert guarded.call(guarded.admin).status == 200
    assert limited(guarded, "bytes") >= 1


def test_connections(guarded):
    """The third connection is refused and closed; when one ends, its place is free."""
    key = guarded.create(limits="connections=2")["key"]
    clients = [Client(guarded.broker.host, guarded.broker.port) for _ in range(3)]
    path = "/api/v1/resources/queues"
    assert [c.get(path, headers=bearer(key)).status for c in clients[:2]] == [200, 200]
    r = clients[2].get(path, headers=bearer(key)).expect(429)
    assert r.headers.get("connection", "").lower() == "close" and "connections" in r.json["error"]
    clients[0].forget()
    wait_until(lambda: clients[2].get(path, headers=bearer(key)).status == 200, 30, "a place is free")
    assert clients[1].get(path, headers=bearer(key)).status == 200
    assert clients[1].get(path, headers=bearer(guarded.create()["key"])).status == 200
    for c in clients:
        c.forget()


def test_a_body_on_one_connection_too_many(guarded, queue):
    key = guarded.create(limits="connections=1")["key"]
    first, second = [Client(guarded.broker.host, guarded.broker.port) for _ in range(2)]
    first.get("/api/v1/resources/queues", headers=bearer(key)).expect(200)
    second.post("/api/v1/push", {"items": [{"queue": queue, "payload": "x" * 300000}]}, headers=bearer(key)).expect(429)
    first.get("/api/v1/resources/queues", headers=bearer(key)).expect(200)


def push(guarded, key, queue, size=1000, path="/api/v1/push", **item):
    item = {"queue": queue, "payload": "x" * size, **item}
    if path == "/api/v1/transaction":
        return guarded.call(key, "POST", path, {"operations": [{"type": "push", **item}]})
    return guarded.call(key, "POST", path, {"items": [item]})


@pytest.mark.parametrize("how", ["push", "transaction", "delayed"])
def test_stored_bytes(guarded, queue, how):
    """The limit holds for all ways to push, at once; when the messages are gone the sender may push again."""
    key, other = guarded.create(limits="stored=10000")["key"], guarded.create()["key"]
    before = limited(guarded, "stored")
    more = {"path": "/api/v1/transaction"} if how == "transaction" else {"delaySeconds": 3600} if how == "delayed" else {}
    answers = [push(guarded, key, queue, 3000, **more) for _ in range(6)]
    assert [r.status for r in answers] == [200 if how == "transaction" else 201] * 4 + [429] * 2
    assert answers[4].headers["retry-after"] == "60" and "stored bytes" in answers[4].json["error"]
    assert limited(guarded, "stored") == before + 2
    assert push(guarded, key, queue, 1, path="/api/v1/transaction").status == 429
    assert push(guarded, other, queue).status == 201 and push(guarded, guarded.admin, queue).status == 201
    if how != "delayed":  # the sender can still consume, and acknowledge in transactions
        message = guarded.call(key, path=f"/api/v1/pop/queue/{queue}?batch=1").expect(200).json["messages"][0]
        guarded.call(key, "POST", "/api/v1/transaction", {"operations": [{"type": "ack", "transactionId": message["transactionId"], "partitionId": message["partitionId"],
                                                                         "status": "completed"}]}).expect(200)
    guarded.call(guarded.admin, "DELETE", f"/api/v1/resources/queues/{queue}").expect(200)
    if how != "delayed":
        wait_until(lambda: push(guarded, key, queue).status == 201, 30, "the messages are gone", interval=0.5)


def test_stored_bytes_are_remembered_and_shared(guarded, make_broker, queue):
    """A broker that starts later knows what was stored."""
    key = guarded.create(limits="stored=10000")["key"]
    assert [push(guarded, key, queue, 6000).status for _ in range(3)] == [201, 201, 429]
    b = Guarded(make_broker(database=guarded.database, QUEEN_ADMIN_KEY_FILE=guarded.path), guarded.admin)
    wait_until(lambda: push(b, key, queue, 1).status == 429, 30, "the sum was read", interval=0.5)
    assert push(b, b.create()["key"], queue, 1).status == 201


def test_only_senders_with_a_limit_are_counted(guarded, pg, queue):
    limited_key, free = guarded.create(limits="stored=1000000"), guarded.create()
    for key in (limited_key, free):
        assert push(guarded, key["key"], queue).status == 201

    def counted():
        with pg.connect(database=guarded.database) as db, db.cursor() as cur:
            cur.execute("select subject from queen.stored_bytes where subject = any (%s)", (["key:" + k["name"] for k in (limited_key, free)],))
            return cur.fetchall()
    wait_until(lambda: counted() == [("key:" + limited_key["name"],)], 30, "the push was counted")


def test_a_limit_of_stored_bytes_needs_a_subject(guarded, queue):
    nobody = token(sub=None, role="admin", queen_limits="stored=1000")
    r = push(guarded, nobody, queue)
    assert r.status == 403 and "subject" in r.json["error"]


def test_limits_of_tokens(guarded):
    slow = token(sub="slow" + uuid.uuid4().hex[:6], queen_limits="requests=1")
    assert {guarded.call(slow).status for _ in range(30)} == {200, 429}
    for bad in ("requests=0", "pushes=1", 5, ["requests=1"]):
        assert guarded.call(token(queen_limits=bad)).status == 401
    assert guarded.call(token(sub="x")).status == 200


def test_invalid_limits_are_refused(guarded):
    for bad in ("requests", "requests=0", "speed=1", "requests=1,requests=2", 7):
        r = guarded.call(guarded.admin, "POST", "/api/v1/keys", {"name": "x" + uuid.uuid4().hex[:6], "role": "admin", "limits": bad}).expect(400)
        assert "limit" in r.json["error"]


def test_the_command(guarded, tmp_path):
    cli = Cli(guarded.broker, tmp_path)
    name = "l" + uuid.uuid4().hex[:6]
    made = cli("key", "create", name, "--role", "read-only", "--limit-requests", "5", "--limit-connections", "3", "--json", QUEEN_TOKEN=guarded.admin).expect(0).rows[0]
    assert made["limits"] == "requests=5,connections=3"


def test_a_wrong_setting_prevents_the_start(tmp_path):

    r = subprocess.run([harness.BIN, "serve", "--limits", "requests=many"], capture_output=True, text=True, timeout=60)
    assert r.returncode != 0 and "QUEEN_LIMITS" in r.stderr
