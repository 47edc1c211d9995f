"""Permissions: every route with every kind of identity, and what rules permit in particular."""
import json
import re
import signal
import socket
import uuid
from urllib.parse import quote

import pytest

import contract
import harness
from harness import Background, wait_until
from test_api_keys import Guarded, init
from tokens import SECRET, bearer, token

DUMMY = "00000000-0000-7000-8000-000000000001"


@pytest.fixture(scope="module")
def site(pg, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    path, key = init(folder)
    rules = str(folder / "rules")
    with open(rules, "w") as f:
        f.write("# subjects\nfiled read:filed.*\n")
    return pg.env(pg.create_database("rules_" + uuid.uuid4().hex[:8])), path, key, rules


@pytest.fixture(scope="module")
def guarded(site):
    env, path, key, rules = site
    b = harness.begin({**env, "SIDECAR_POOL_SIZE": "4", "QUEEN_ADMIN_KEY_FILE": path, "QUEEN_RULES_FILE": rules,
                       "NUM_WORKERS": "1", "JWT_ENABLED": "true", "JWT_SECRET": SECRET, "QUEEN_ENCRYPTION_KEY": "ab" * 32})
    yield Guarded(b, key)
    harness.end(b, clean_exit=True)


def key_for(guarded, rules):
    return guarded.call(guarded.admin, "POST", "/api/v1/keys",
                        {"name": "k" + uuid.uuid4().hex[:10], "allow": rules}).expect(201).json["key"]


def push(guarded, *queues, payload=1):
    guarded.call(guarded.admin, "POST", "/api/v1/push", {"items": [{"queue": q, "payload": payload} for q in queues]}).expect(201)


# --- the matrix -----------------------------------------------------------------------------------------------------

def routes():
    return [(verb.upper(), path, op["x-access"], op.get("x-permission", ""))
            for path, item in contract.load()["paths"].items() for verb, op in item.items() if op["x-access"] != "public"]


def request(method, path, queue, message):
    """A request that concerns the queue: its path and body."""
    values = {"queue": quote(queue, safe=""), "partition": "Default", "group": "g", "partitionId": message["partitionId"],
              "transactionId": message["transactionId"], "leaseId": message["leaseId"], "id": DUMMY, "traceName": "t", "key": "nobody"}
    url = re.sub(r"{(\w+)}", lambda m: values[m.group(1)], path)
    ack = {"transactionId": message["transactionId"], "partitionId": message["partitionId"], "status": "completed"}
    bodies = {
        "/api/v1/push": {"items": [{"queue": queue, "payload": 1}]},
        "/api/v1/ack": ack, "/api/v1/ack/batch": {"acknowledgments": [ack]},
        "/api/v1/transaction": {"operations": [{"type": "push", "queue": queue, "payload": 1}, {"type": "ack", **ack}]},
        "/api/v1/configure": {"queue": queue},
        "/api/v1/schedules": {"name": "s" + uuid.uuid4().hex[:8], "queue": queue, "cron": "@yearly"},
        "/api/v1/dlq/redrive": {"queue": queue, "all": True},
        "/api/v1/traces": {"partitionId": message["partitionId"], "transactionId": message["transactionId"], "data": {"text": "x"}},
    }
    return url, bodies.get(path, {}) if method in ("POST", "PATCH", "PUT") else None


@pytest.fixture(scope="module")
def identities(guarded):
    expired = guarded.create("admin", expiresInSeconds=1)["key"]
    wait_until(lambda: guarded.call(expired).status == 401, 15, "the key has expired")
    return {"none": None, "expired": expired, "read-only": guarded.create("read-only")["key"],
            "other": key_for(guarded, "push+pop+read+configure+delete:other.*"), "own": key_for(guarded, "*:mine.*"),
            "admin": guarded.admin, "admin rule": key_for(guarded, "admin")}


@pytest.mark.parametrize("method, path, access, permission", routes(), ids=lambda x: str(x))
def test_matrix(guarded, identities, method, path, access, permission):
    """A route without a declared permission is for administrators; x-permission of each document is that of the compiled table."""
    target = permission.rsplit(": ", 1)[-1]
    assert target in ("admin", "free", "all", "path", "query", "list", "partition", "body"), permission
    for kind, key in identities.items():
        queue = "mine." + uuid.uuid4().hex[:8]
        push(guarded, queue)
        message = guarded.call(guarded.admin, path="/api/v1/pop/queue/%s" % queue).expect(200).json["messages"][0]
        url, body = request(method, path, queue, message)
        if (target == "query" or path == "/api/v1/pop") and kind in ("own", "other"):
            url += "?queue=" + queue
        status = guarded.call(key, method, url, body).status
        if kind in ("none", "expired"):
            allowed, wanted = status == 401, "401"
        elif kind == "read-only":
            allowed, wanted = (status == 403) == (access != "read-only") and status != 401, "by its role"
        elif kind in ("admin", "admin rule"):
            allowed, wanted = status not in (401, 403), "permitted"
        elif target in ("free", "list"):
            allowed, wanted = status not in (401, 403), "permitted"
        elif kind == "other":
            allowed, wanted = status == 403, "403"
        else:
            allowed, wanted = (status == 403) == (target in ("admin", "all")) and status != 401, "by its rules"
        assert allowed, "%s %s as %s (%s): %s, must be %s" % (method, url, kind, permission, status, wanted)


# --- particulars ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("ordering", ["partition", "none"])
def test_batches_cannot_smuggle_another_queue(guarded, queue, ordering):
    """Anything but the first item, in pushes, transactions, CloudEvents and acknowledgements."""
    mine, theirs = "mine." + queue, "theirs." + queue
    key = key_for(guarded, "push+pop:mine.*")
    for name in (mine, theirs):
        guarded.call(guarded.admin, "POST", "/api/v1/configure", {"queue": name, "options": {"ordering": ordering}}).expect(200)
    push(guarded, mine, theirs)
    items = [{"queue": mine, "payload": 1}, {"queue": mine, "payload": 2}, {"queue": theirs, "payload": 3}]
    r = guarded.call(key, "POST", "/api/v1/push", {"items": items}).expect(403)
    assert theirs in r.json["error"]
    guarded.call(key, "POST", "/api/v1/transaction", {"operations": [{"type": "push", "items": items}]}).expect(403)
    event = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "data": 1}
    for url, events in [("/api/v1/push", [{**event, "queue": mine}, {**event, "id": "2", "queue": theirs}]),
                        ("/api/v1/push/queue/" + theirs, [event])]:
        r = guarded.broker.request("POST", url, events, headers={**bearer(key), "Content-Type": "application/cloudevents-batch+json"})
        assert r.status == 403, r
    ids = [guarded.call(guarded.admin, path="/api/v1/pop/queue/" + q).expect(200).json["messages"][0] for q in (mine, theirs)]
    acks = [{"transactionId": m["transactionId"], "partitionId": m["partitionId"], "status": "completed"} for m in ids]
    guarded.call(key, "POST", "/api/v1/ack/batch", {"acknowledgments": acks}).expect(403)
    guarded.call(key, "POST", "/api/v1/ack", acks[1]).expect(403)
    guarded.call(key, "POST", "/api/v1/transaction", {"operations": [{"type": "ack", **a} for a in acks]}).expect(403)
    guarded.call(key, "POST", "/api/v1/lease/%s/extend" % ids[1]["leaseId"], {"seconds": 60}).expect(403)
    guarded.call(key, "POST", "/api/v1/lease/%s/extend" % ids[1]["leaseId"].upper(), {"seconds": 60})
    guarded.call(key, "POST", "/api/v1/lease/%s/extend" % ids[0]["leaseId"], {"seconds": 60}).expect(200)
    # Nothing was changed: both are acknowledged by the administrator only now.
    done = guarded.call(guarded.admin, "POST", "/api/v1/ack/batch", {"acknowledgments": acks}).expect(200).json
    assert all(e["success"] for e in done), done
    assert guarded.call(guarded.admin, path="/api/v1/pop/queue/" + theirs).status == 204


def test_names_in_the_path_are_decoded_once(guarded):
    """%2E, %2F and %25 in the path mean the same name to the check and to the handler."""
    unique = uuid.uuid4().hex[:8]
    name = "mine/%s %%2A*,;:+" % unique
    key = key_for(guarded, "push+pop:" + "".join("%%%02X" % b for b in name.encode()))
    guarded.call(key, "POST", "/api/v1/push", {"items": [{"queue": name, "payload": 1}]}).expect(201)
    guarded.call(key, path="/api/v1/pop/queue/" + quote(name, safe="")).expect(200)
    guarded.call(key, path="/api/v1/pop/queue/" + quote(quote(name, safe=""), safe="")).expect(403)
    plain = "mine" + unique
    other = key_for(guarded, "pop:" + plain)
    guarded.call(other, path="/api/v1/pop/queue/%6D" + plain[1:]).expect(204)
    guarded.call(other, path="/api/v1/pop/queue/" + plain.upper()).expect(403)
    guarded.call(other, path="/api/v1/pop/queue/%s%%00" % plain).expect(403)


def test_groups(guarded, queue):
    key = key_for(guarded, "pop:queue=mine.*;group=billing-*")
    name = "mine." + queue
    push(guarded, name)
    guarded.call(key, path="/api/v1/pop/queue/%s" % name).expect(403)
    guarded.call(key, path="/api/v1/pop/queue/%s?consumerGroup=shipping" % name).expect(403)
    m = guarded.call(key, path="/api/v1/pop/queue/%s?consumerGroup=billing-1" % name).expect(200).json["messages"][0]
    ack = {"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": m["leaseId"], "status": "completed"}
    guarded.call(key, "POST", "/api/v1/ack", {**ack, "consumerGroup": "shipping"}).expect(403)
    guarded.call(key, "POST", "/api/v1/ack", ack).expect(403)
    assert guarded.call(key, "POST", "/api/v1/ack", {**ack, "consumerGroup": "billing-1"}).expect(200).json[0]["success"]
    guarded.call(key, "POST", "/api/v1/consumer-groups/shipping/queues/%s/seek" % name, {"timestamp": "now"}).expect(403)


def test_a_wildcard_pop_sees_only_permitted_queues(guarded):
    """It neither takes messages of other queues nor subscribes its group to them."""
    space = "ns" + uuid.uuid4().hex[:8]
    mine, theirs = space + ".mine", space + ".theirs"
    push(guarded, mine, theirs)
    key = key_for(guarded, "pop:*.mine")
    url = "/api/v1/pop?namespace=%s&consumerGroup=g&batch=10&partitions=10&autoAck=true&subscriptionMode=new" % space
    url_all = url.replace("&subscriptionMode=new", "")
    got = guarded.call(key, path=url_all).expect(200).json["messages"]
    assert [m["queue"] for m in got] == [mine]
    assert guarded.call(key, path=url).status == 204
    # The group is not on the other queue: there it begins where the administrator has put it, with all messages.
    got = guarded.call(guarded.admin, path=url_all).expect(200).json["messages"]
    assert [m["queue"] for m in got] == [theirs]


def test_a_waiting_wildcard_pop_is_not_woken_by_other_queues(guarded):
    space = "ns" + uuid.uuid4().hex[:8]
    mine, theirs = space + ".mine", space + ".theirs"
    push(guarded, mine, theirs)
    guarded.call(guarded.admin, path="/api/v1/pop?namespace=%s&batch=10&partitions=10&autoAck=true" % space).expect(200)
    key = key_for(guarded, "pop:*.mine")
    waiting = harness.Background(lambda: harness.Client(guarded.broker.host, guarded.broker.port).get(
        "/api/v1/pop?namespace=%s&wait=true&timeout=40000&autoAck=true" % space, headers=bearer(key), timeout=90))
    push(guarded, theirs, payload="secret")
    push(guarded, mine, payload="ours")
    assert [m["data"] for m in waiting.result(60).expect(200).json["messages"]] == ["ours"]


def test_lists_show_only_what_is_permitted(guarded):
    unique = uuid.uuid4().hex[:8]
    mine, theirs = "m_%s.a" % unique, "mx%s.a" % unique  # _ is no wildcard
    push(guarded, mine, theirs)
    for q in (mine, theirs):
        guarded.call(guarded.admin, path="/api/v1/pop/queue/%s?consumerGroup=gr" % q).expect(200)
    guarded.call(guarded.admin, "POST", "/api/v1/stats/refresh").expect(200)
    key = key_for(guarded, "read:m_%s.*" % unique)
    for path in ["/api/v1/resources/queues", "/api/v1/status/queues", "/api/v1/resources/partitions", "/api/v1/consumer-groups",
                 "/api/v1/resources/namespaces"]:
        shown, everything = guarded.call(key, path=path).expect(200).text, guarded.call(guarded.admin, path=path).expect(200).text
        assert "m_" + unique in shown and "mx" + unique not in shown, (path, shown)
        assert "mx" + unique in everything, path
    assert guarded.call(key, path="/api/v1/resources/queues?queue=%s&allowed=1" % theirs).status in (400, 403)
    for path in ["/api/v1/messages", "/api/v1/dlq", "/api/v1/scheduled", "/api/v1/schedules", "/api/v1/analytics/queue-lag"]:
        guarded.call(key, path=path).expect(403)
        guarded.call(key, path=path + "?queue=" + theirs).expect(403)
        guarded.call(key, path=path + "?queue=%s&queue=%s" % (theirs, mine)).expect(403)
        guarded.call(key, path=path + "?queue=" + mine).expect(200)
        text = guarded.call(key, path=path + "?queue=%s&queue=%s" % (mine, theirs)).text
        assert theirs not in text


def test_read_only_does_not_read_encrypted_payloads(guarded, queue):
    name = "mine." + queue
    guarded.call(guarded.admin, "POST", "/api/v1/configure", {"queue": name, "options": {"encryptionEnabled": True}}).expect(200)
    push(guarded, name, payload={"card": "4111"})
    keys = {"role": guarded.create("read-only")["key"], "rule": key_for(guarded, "read:mine.*"),
            "allowed": key_for(guarded, "read+read-encrypted:mine.*"), "writer": guarded.create("read-write")["key"]}
    m = guarded.call(guarded.admin, path="/api/v1/messages?queue=" + name).expect(200).json["messages"][0]
    paths = ["/api/v1/messages/%s/%s" % (m["partitionId"], m["transactionId"])]
    for path in paths:
        for who, key in keys.items():
            assert ("4111" in guarded.call(key, path=path).expect(200).text) == (who in ("allowed", "writer")), (path, who)
    guarded.call(guarded.create("read-only")["key"], path="/api/v1/pop/queue/" + name).expect(403)


def test_storage_options_need_their_own_permission(guarded, queue):
    name = "mine." + queue
    weak, strong = key_for(guarded, "configure:mine.*"), key_for(guarded, "configure+configure-storage:mine.*")

    def configure(key, **options):
        return guarded.call(key, "POST", "/api/v1/configure", {"queue": name, "options": options})
    configure(weak, leaseTime=10).expect(200)
    for option in [{"encryptionEnabled": True}, {"retentionSeconds": 5}, {"completedRetentionSeconds": 5}, {"ttl": 5},
                   {"maxWaitTimeSeconds": 5}, {"retentionEnabled": True}]:
        r = configure(weak, **option).expect(403)
        assert "rules do not permit" in r.json["error"]
    configure(strong, encryptionEnabled=True, retentionSeconds=500, retentionEnabled=True).expect(200)
    # Leaving an option out would reset it.
    configure(weak, leaseTime=20).expect(403)
    configure(weak, leaseTime=20, encryptionEnabled=True, retentionSeconds=500, retentionEnabled=True).expect(200)
    configure(key_for(guarded, "push:mine.*")).expect(403)


def test_redrive_needs_both_queues(guarded, queue):
    key = key_for(guarded, "pop+push:mine.*")
    name = "mine." + queue
    push(guarded, name)
    guarded.call(key, "POST", "/api/v1/dlq/redrive", {"all": True}).expect(403)
    guarded.call(key, "POST", "/api/v1/dlq/redrive", {"queue": name, "targetQueue": "theirs", "all": True}).expect(403)
    guarded.call(key, "POST", "/api/v1/dlq/redrive", {"queue": name, "que\\u0075e": "theirs", "all": True})
    guarded.call(key, "POST", "/api/v1/dlq/redrive", {"queue": name, "targetQueue": name, "all": True}).expect(200)
    raw = '{"queue":"%s","queue":"theirs","all":true}' % name
    r = guarded.broker.request("POST", "/api/v1/dlq/redrive", raw.encode(), headers={**bearer(key), "Content-Type": "application/json"})
    assert r.status in (400, 403)


@pytest.mark.parametrize("extra", ["", "&wait=true&timeout=100", "&partition=Default", "&namespace=mine"])
def test_a_pop_by_parameter_needs_the_queue(guarded, queue, extra):
    mine, theirs = "mine." + queue, "theirs." + queue
    push(guarded, mine, theirs)
    key = key_for(guarded, "pop:queue=mine.*;group=billing")
    for url in ["queue=%s&consumerGroup=billing" % theirs, "queue=%s" % mine, "queue=%s&consumerGroup=g" % mine]:
        assert guarded.call(key, path="/api/v1/pop?%s%s" % (url, extra)).status == 403, url
    guarded.call(key, path="/api/v1/pop?queue=%s&consumerGroup=billing%s" % (mine, extra)).expect(200)


def test_a_full_cache_of_partitions_forgets_no_denial(guarded, queue):
    """While an acknowledgement waits for the lookup of one partition, another request empties the cache."""
    mine, theirs = "mine." + queue, "theirs." + queue
    push(guarded, mine, theirs)
    key = key_for(guarded, "push+pop:mine.*")
    m = guarded.call(guarded.admin, path="/api/v1/pop/queue/" + theirs).expect(200).json["messages"][0]
    ack = {"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": m["leaseId"], "status": "completed"}
    guarded.call(key, "POST", "/api/v1/ack", ack).expect(403)  # now the partition is in the broker's memory

    def raw(acks):
        body = json.dumps({"acknowledgments": acks}).encode()
        return (b"POST /api/v1/ack/batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (key.encode(), len(body))) + body

    def unknown(n):
        return [{"transactionId": "x", "partitionId": str(uuid.uuid4()), "status": "completed"} for _ in range(n)]
    emptying = raw(unknown(50001))
    for _ in range(3):
        with socket.create_connection((guarded.broker.host, guarded.broker.port)) as a, \
             socket.create_connection((guarded.broker.host, guarded.broker.port)) as b:
            a.settimeout(60)
            b.settimeout(60)
            b.sendall(emptying[:-1])
            a.sendall(raw([ack] + unknown(5000)))
            b.sendall(emptying[-1:])
            assert a.recv(100).startswith(b"HTTP/1.1 403 "), "the acknowledgement was permitted"
            b.recv(100)
    assert guarded.call(guarded.admin, "POST", "/api/v1/ack", ack).expect(200).json[0]["success"]


def test_a_group_condition_holds_for_actions(guarded, queue):
    """A sender that may act as one group only cannot change the messages that other groups get."""
    name = "mine." + queue
    push(guarded, name, name)
    one = key_for(guarded, "*:queue=mine.*;group=billing")
    for group in ("billing", "shipping"):
        m = guarded.call(guarded.admin, path="/api/v1/pop/queue/%s?consumerGroup=%s&autoAck=true" % (name, group)).expect(200).json["messages"][0]
    url = "/api/v1/messages/%s/%s" % (m["partitionId"], m["transactionId"])
    for body in [{}, None, {"consumerGroup": "shipping"}, {"consumerGroup": None}]:
        guarded.call(one, "POST", url + "/dlq", body).expect(403)
    guarded.call(one, "POST", url + "/dlq", {"consumerGroup": "billing"}).expect(200)
    guarded.call(guarded.admin, "POST", url + "/dlq", {"consumerGroup": "shipping"}).expect(200)
    guarded.call(one, "POST", url + "/retry").expect(403)
    guarded.call(one, "POST", "/api/v1/dlq/redrive", {"queue": name}).expect(403)
    guarded.call(one, "POST", "/api/v1/dlq/redrive", {"queue": name, "consumerGroup": "shipping"}).expect(403)
    guarded.call(one, "POST", "/api/v1/dlq/redrive", {"queue": name, "consumerGroup": "billing"}).expect(200)
    guarded.call(one, "DELETE", url).expect(403)
    guarded.call(one, "DELETE", "/api/v1/queues/%s/clear" % name).expect(403)
    guarded.call(one, "DELETE", "/api/v1/resources/queues/" + name).expect(403)
    guarded.call(one, "POST", "/api/v1/configure", {"queue": name}).expect(403)
    guarded.call(one, "DELETE", "/api/v1/consumer-groups/shipping/queues/" + name).expect(403)
    guarded.call(one, "DELETE", "/api/v1/consumer-groups/billing/queues/" + name).expect(200)
    guarded.call(one, "POST", "/api/v1/push", {"items": [{"queue": name, "payload": 1}]}).expect(201)  # concerns no group


def test_changing_a_recurring_message_needs_push(guarded, queue):
    """It decides which messages are pushed, and where."""
    body = {"name": queue, "queue": "mine." + queue, "cron": "@yearly", "payload": 1}
    id = guarded.call(guarded.admin, "POST", "/api/v1/schedules", body).expect(201).json["id"]
    weak, strong = key_for(guarded, "configure:*"), key_for(guarded, "configure+push:*")
    for change in [{"payload": 2}, {"queue": "theirs"}]:
        guarded.call(weak, "PATCH", "/api/v1/schedules/" + id, change).expect(403)
    guarded.call(weak, "POST", "/api/v1/schedules/%s/run" % id).expect(403)
    guarded.call(weak, "POST", "/api/v1/schedules/%s/pause" % id).expect(200)
    guarded.call(strong, "PATCH", "/api/v1/schedules/" + id, {"payload": 2}).expect(200)
    guarded.call(strong, "POST", "/api/v1/schedules/%s/run" % id).expect(200)


@pytest.mark.parametrize("prefix", ["key:", "cert:"])
def test_a_token_cannot_be_a_key_or_certificate(guarded, prefix):
    """An issuer that chooses the subjects of tokens would get the rules and limits of others, and their name in the audit log."""
    assert guarded.call(token(sub=prefix + "admin-key-file"), path="/api/v1/resources/queues").status == 401
    assert guarded.call(token(sub="my" + prefix), path="/api/v1/resources/queues").status == 200


def test_prometheus_names_all_queues(pg, make_broker, tmp_path):
    """Where a setting protects it, rules must permit reading everything."""
    path, key = init(tmp_path)
    b = make_broker(database=pg.create_database("rules_prometheus"), QUEEN_ADMIN_KEY_FILE=path, JWT_SKIP_PATHS="/health")
    g = Guarded(b, key)
    assert g.call(None, path="/metrics/prometheus").status == 401
    for rules, status in [("read:mine.*", 403), ("push:*", 403), ("read:*", 200)]:
        assert g.call(key_for(g, rules), path="/metrics/prometheus").status == status, rules
    assert g.call(g.create("read-only")["key"], path="/metrics/prometheus").status == 200


def test_rules_of_tokens(guarded, queue):
    name = "mine." + queue

    def status(t, q=name):
        return guarded.call(t, "POST", "/api/v1/push", {"items": [{"queue": q, "payload": 1}]}).status
    assert status(token(queen_rules="push:mine.*")) == 201
    assert status(token(queen_rules=["read:x", "push:mine.*"])) == 201
    assert status(token(queen_rules="push:mine.*"), "theirs") == 403  # although its role is admin
    assert status(token(queen_rules=[])) == 401
    assert status(token(queen_rules="")) == 401
    assert status(token(queen_rules={"push": "*"})) == 401
    assert status(token(queen_rules=[1])) == 401
    assert status(token(queen_rules="pull:x")) == 401


def test_rules_of_a_file(guarded, site):
    t = token(sub="filed")
    assert guarded.call(t, path="/api/v1/dlq?queue=filed.x").status == 200
    assert guarded.call(t, path="/api/v1/dlq?queue=other").status == 403
    assert guarded.call(t, path="/api/v1/keys").status == 403
    with open(site[3], "w") as f:
        f.write("filed read:other\n")
    guarded.broker.process.send_signal(signal.SIGHUP)
    wait_until(lambda: guarded.call(t, path="/api/v1/dlq?queue=other").status == 200, 15, "the new rules hold")
    assert guarded.call(t, path="/api/v1/dlq?queue=filed.x").status == 403
    with open(site[3], "w") as f:
        f.write("filed nonsense\n")
    guarded.broker.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "auth.reload_failed" in guarded.broker.log_text(), 15, "the failure is logged")
    assert guarded.call(t, path="/api/v1/dlq?queue=other").status == 200


def test_keys_need_a_role_or_rules(guarded):
    for body, says in [({"name": "x"}, "role or allow"), ({"name": "x", "role": "admin", "allow": "admin"}, "role or allow"),
                       ({"name": "x", "allow": "pull:x"}, "invalid rule"), ({"name": "x", "allow": ""}, "rules")]:
        assert says in guarded.call(guarded.admin, "POST", "/api/v1/keys", body).expect(400).json["error"]


def test_lookups_do_not_wait_for_reports(pg, make_broker, tmp_path, queue):
    """Reports that hold all connections for reports delay neither acknowledgements and leases of senders with rules nor pushes by key."""
    path, key = init(tmp_path)
    database = pg.create_database("lookups_" + uuid.uuid4().hex[:8])
    g = Guarded(make_broker(database=database, QUEEN_ADMIN_KEY_FILE=path, NUM_WORKERS=1, SIDECAR_POOL_SIZE=12, QUEEN_CUSTOM_MAX_CONCURRENT=2), key)
    bounded = key_for(g, "push+pop:%s*" % queue)
    g.call(key, "POST", "/api/v1/configure", {"queue": queue + "-keys", "options": {"partitions": 4}}).expect(200)
    push(g, queue, queue)
    messages = g.call(bounded, path="/api/v1/pop/queue/%s?batch=2" % queue).expect(200).json["messages"]
    ack = {"transactionId": messages[0]["transactionId"], "partitionId": messages[0]["partitionId"], "leaseId": messages[0]["leaseId"], "status": "completed"}

    def waiting():
        with pg.connect() as db, db.cursor() as cur:
            cur.execute("select count(*) from pg_stat_activity where datname = %s and wait_event_type = 'Lock' and query like '%%list_audit%%'", (database,))
            return cur.fetchone()[0]
    with pg.connect(database=database) as lock, lock.cursor() as cur:
        cur.execute("lock table queen.audit in access exclusive mode")
        reports = [Background(lambda: g.call(key, path="/api/v1/audit")) for _ in range(6)]
        wait_until(lambda: waiting() == 2, 30, "the reports hold their connections")
        for method, url, body in [("POST", "/api/v1/lease/%s/extend" % messages[0]["leaseId"], {"seconds": 60}), ("POST", "/api/v1/ack", ack),
                                  ("POST", "/api/v1/push", {"items": [{"queue": queue + "-keys", "partitionKey": "a", "payload": 1}]})]:
            assert Background(lambda m=method, u=url, b=body: g.call(bounded, m, u, b)).result(20).status in (200, 201), url
        assert waiting() == 2 and not any(r.done for r in reports)
        lock.rollback()
    assert {r.result(60).status for r in reports} == {200}
