"""Queues with a fixed set of partitions: owners, checkpoints and fencing."""
import pytest

from harness import in_parallel, wait_until

PATH = "/api/v1/consumer-groups/%s/queues/%s/owners"


def fnv_partition(key, n):
    """The hash of docs/guide/processor.md."""
    h = 2166136261
    for byte in key.encode():
        h = (h ^ byte) * 16777619 % 2**32
    return (h ^ h >> 16) % n


class Owners:
    def __init__(self, broker, queue, group):
        self.broker, self.queue, self.group, self.path = broker, queue, group, PATH % (group, queue)

    def post(self, action, body, status=200):
        return self.broker.post("%s/%s" % (self.path, action), body).expect(status).json

    def claim(self, owner, epochs, **more):
        return self.post("claim", {"owner": owner, "partitions": [{"partition": p, "epoch": e} for p, e in epochs.items()],
                                   **more})["results"]

    def list(self):
        return {o["partition"]: o for o in self.broker.get(self.path).expect(200).json["owners"]}

    def pop(self, partition, owner, epoch, **params):
        return self.broker.pop(self.queue, partition, consumerGroup=self.group, owner=owner, epoch=epoch, **params)


@pytest.fixture
def four(broker, queue, group):
    broker.configure(queue, partitions=4)
    return Owners(broker, queue, group)


# ---- the fixed set ----

def test_configure_creates_the_partitions_and_returns_their_number(broker, queue, sql):
    r = broker.post("/api/v1/configure", {"queue": queue, "options": {"partitions": 32}}).expect(200).json
    assert r["options"]["partitions"] == 32
    rows = sql("select p.name, p.id::text from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = %s", queue)
    assert sorted(int(n) for n, _ in rows) == list(range(32)), "and no Default"
    assert r["partitionId"] == dict(rows)["0"]
    again = broker.post("/api/v1/configure", {"queue": queue, "options": {"leaseTime": 9}}).expect(200).json
    assert again["options"]["partitions"] == 32, "not sent: it stays"


def test_other_queues_do_not_show_the_option(broker, queue):
    assert "partitions" not in broker.post("/api/v1/configure", {"queue": queue, "options": {}}).expect(200).json["options"]


@pytest.mark.parametrize("value, text", [(1025, "at most 1024"), (-1, "partitions"), ("x", "partitions")])
def test_a_bad_number_is_refused(broker, queue, value, text):
    assert text in broker.post("/api/v1/configure", {"queue": queue, "options": {"partitions": value}}).expect(400).json["error"]


def test_the_number_cannot_be_changed_and_is_for_new_queues(broker, queue):
    broker.configure(queue, partitions=4)
    for n in (3, 5):
        r = broker.post("/api/v1/configure", {"queue": queue, "options": {"partitions": n}}).expect(400).json
        assert r["error"] == "option partitions of this queue is 4 and cannot be changed"
    broker.configure(queue, partitions=4)
    used = queue + "-used"
    broker.put(used, [1])
    r = broker.post("/api/v1/configure", {"queue": used, "options": {"partitions": 4}}).expect(400).json
    assert "when a queue is created" in r["error"]
    unused = queue + "-unused"
    broker.configure(unused)
    broker.configure(unused, partitions=4)


def test_a_key_is_mapped_to_a_partition_by_its_hash(broker, queue):
    broker.configure(queue, partitions=8)
    keys = ["customer-%d" % i for i in range(40)] + ["ä", "A", "a"]
    broker.push([{"queue": queue, "partitionKey": k, "payload": k} for k in keys])
    assert {m["data"]: int(m["partition"]) for m in broker.drain(queue, partitions=8, batch=100)} == \
        {k: fnv_partition(k, 8) for k in keys}
    assert len({fnv_partition(k, 8) for k in keys}) == 8


def test_keys_work_in_transactions_and_partitions_can_be_named(broker, queue):
    broker.configure(queue, partitions=4)
    broker.transaction([{"type": "push", "items": [{"queue": queue, "partitionKey": "k", "payload": 1}]}])
    broker.push([{"queue": queue, "partition": "3", "payload": 2}])
    assert {m["data"]: m["partition"] for m in broker.drain(queue, partitions=4, batch=10)} == \
        {1: str(fnv_partition("k", 4)), 2: "3"}


@pytest.mark.parametrize("item", [{}, {"partition": "Default"}, {"partition": "4"}, {"partition": "01"}, {"partition": "x"}])
def test_another_partition_of_such_a_queue_is_refused(broker, queue, item):
    broker.configure(queue, partitions=4)
    r = broker.post("/api/v1/push", {"items": [{"queue": queue, "partition": "1", "payload": 0}, {"queue": queue, "payload": 1, **item}]})
    assert "fixed set of partitions" in r.expect(400).json["error"]
    assert broker.drain(queue) == [], "nothing of the request was stored"
    r = broker.post("/api/v1/transaction", {"operations": [{"type": "push", "items": [{"queue": queue, **item}]}]})
    assert r.status == 400 or not r.json["success"]
    broker.push([{"queue": queue + "-other", "payload": 1}])


def test_a_refused_partition_does_not_disturb_others_at_the_same_time(broker, queue):
    broker.configure(queue, partitions=4)

    def good(i):
        return lambda: broker.post("/api/v1/push", {"items": [{"queue": "%s-%d" % (queue, i), "partition": "p%d" % i, "payload": i}]}).status

    def bad(i):
        return lambda: broker.post("/api/v1/push", {"items": [{"queue": queue, "partition": "bad%d" % i, "payload": i}]}).status

    assert in_parallel([good(i) if i % 2 else bad(i) for i in range(12)]) == [201 if i % 2 else 400 for i in range(12)]


def test_a_key_needs_a_fixed_set_and_no_partition_beside_it(broker, queue):
    item = {"queue": queue, "partitionKey": "k", "payload": 1}
    r = broker.post("/api/v1/push", {"items": [item]}).expect(400).json
    assert r["error"] == "item 0: partitionKey is for queues with a fixed set of partitions"
    broker.configure(queue, partitions=4)
    broker.push([item])
    r = broker.post("/api/v1/push", {"items": [{**item, "partition": "1"}]}).expect(400).json
    assert "both given" in r["error"]


def test_sql_pushes_respect_the_fixed_set(broker, queue, sql):
    broker.configure(queue, partitions=2)
    with pytest.raises(Exception, match="fixed set of partitions"):
        sql("select queen.push_messages_v2(%s)", '[{"queue": "%s", "payload": 1}]' % queue)
    sql("select queen.push_messages_v2(%s)", '[{"queue": "%s", "partition": "1", "payload": 1}]' % queue)
    assert [m["partition"] for m in broker.drain(queue)] == ["1"]


# ---- owners ----

def test_partitions_are_claimed_renewed_and_released(four):
    assert [(o["owner"], o["epoch"], o["expired"]) for o in four.list().values()] == [(None, 0, True)] * 4
    r = four.claim("a", {"0": 0, "3": 0})
    assert [(x["partition"], x["success"], x["epoch"]) for x in r] == [("0", True, 1), ("3", True, 1)]
    assert [x["success"] for x in four.claim("b", {"0": 1, "1": 0})] == [False, True]
    owners = four.list()
    assert {p: o["owner"] for p, o in owners.items()} == {"0": "a", "1": "b", "2": None, "3": "a"}
    assert owners["0"]["since"] and not owners["0"]["expired"] and owners["0"]["freeMs"] is None

    r = four.post("renew", {"owner": "a", "partitions": [{"partition": "0", "epoch": 1}, {"partition": "3", "epoch": 9},
                                                         {"partition": "1", "epoch": 1}]})
    assert r == {"renewed": 1, "lost": ["3", "1"]}
    assert four.post("release", {"owner": "a", "partitions": [{"partition": "0", "epoch": 1}, {"partition": "1", "epoch": 1}]}) == {"released": 1}
    assert [x["epoch"] for x in four.claim("b", {"0": 2})] == [3]


def test_a_claim_is_compare_and_set(four):
    four.claim("a", {"0": 0})
    for owner, epochs, more, error in [("b", {"0": 0}, {"steal": True}, "the epoch has changed"),
                                       ("b", {"0": 1}, {}, "it has another owner"),
                                       ("b", {"9": 0}, {}, "no such partition")]:
        r = four.claim(owner, epochs, **more)[0]
        assert (r["success"], r["error"]) == (False, error)
    r = four.claim("b", {"0": 1}, steal=True)[0]
    assert (r["success"], r["owner"], r["epoch"]) == (True, "b", 2)


def test_one_of_many_concurrent_claims_succeeds(four):
    results = in_parallel([lambda i=i: four.claim("w%d" % i, {"0": 0, "1": 0}) for i in range(8)])
    for n in (0, 1):
        assert sum(r[n]["success"] for r in results) == 1


def test_a_hand_over_can_be_requested(four):
    four.claim("a", {"0": 0, "1": 0})
    ask = [{"partition": "0", "epoch": 1}, {"partition": "1", "epoch": 9}, {"partition": "2", "epoch": 0}]
    assert four.post("ask", {"owner": "b", "partitions": ask}) == {"asked": 1}
    assert four.post("ask", {"owner": "c", "partitions": ask[:1]}) == {"asked": 1}
    assert [o["wantedBy"] for o in four.list().values()] == ["b", None, None, None], "who came first"
    assert four.list()["0"]["wantedAt"]
    four.post("release", {"owner": "a", "partitions": [{"partition": "0", "epoch": 1}]})
    assert (four.list()["0"]["owner"], four.list()["0"]["wantedBy"]) == (None, "b"), "for whom it was given up"
    assert 0 <= four.list()["0"]["freeMs"] < 10000 and four.list()["1"]["freeMs"] is None
    four.claim("b", {"0": 2})
    assert four.list()["0"]["wantedBy"] is None


def test_an_expired_claim_is_anybodys(four):
    four.claim("a", {"0": 0}, expirySeconds=1)
    assert not four.claim("b", {"0": 1})[0]["success"]
    wait_until(lambda: four.list()["0"]["expired"], 5, "the claim expires")
    assert four.claim("b", {"0": 1})[0]["success"]


# ---- fencing ----

def test_after_a_steal_the_old_owner_gets_nothing_and_can_acknowledge_nothing(four):
    b = four.broker
    b.push([{"queue": four.queue, "partition": "0", "payload": i} for i in range(4)])
    four.claim("a", {"0": 0})
    mine = four.pop("0", "a", 1, batch=2).expect(200).json["messages"]
    assert [m["data"] for m in mine] == [0, 1]
    four.claim("b", {"0": 1}, steal=True)

    r = b.post("/api/v1/ack/batch", {"consumerGroup": four.group, "acknowledgments": [b.ack_entry(m) for m in mine]}).expect(200).json
    assert [x["error"] for x in r] == ["Invalid or expired lease"] * 2
    b.post("/api/v1/lease/%s/extend" % mine[0]["leaseId"], {}).expect(404)
    assert four.pop("0", "a", 1).expect(409).json["error"] == "the partition has another owner by now"
    theirs = four.pop("0", "b", 2, batch=10, wait="true", timeout=5000).expect(200).json["messages"]
    assert [m["data"] for m in theirs] == [0, 1, 2, 3], "from the start, at once, although the old lease would have run on"
    assert four.pop("0", "a", 1).status in (204, 409)
    assert all(x["success"] for x in b.ack_batch([b.ack_entry(m) for m in theirs], group=four.group))
    assert four.list()["0"]["lag"] == 0


def test_on_a_partition_with_an_owner_an_acknowledgement_needs_the_lease(four):
    b = four.broker
    b.push([{"queue": four.queue, "partition": "0", "payload": i} for i in range(4)])
    four.claim("a", {"0": 0})
    mine = four.pop("0", "a", 1, batch=2).expect(200).json["messages"]
    four.claim("b", {"0": 1}, steal=True)
    theirs = four.pop("0", "b", 2, batch=4, wait="true", timeout=5000).expect(200).json["messages"]
    bare = {"transactionId": mine[1]["transactionId"], "partitionId": mine[1]["partitionId"], "consumerGroup": four.group}
    for status in ("completed", "failed", "dlq", "retry"):
        (r,) = b.post("/api/v1/ack", {**bare, "status": status}).expect(200).json
        assert r["error"] == "Invalid or expired lease"
    ack = {"type": "ack", **bare}
    assert "lease" in b.transaction([ack])["error"]
    assert "lease" in b.transaction([ack], required=[mine[0]["leaseId"]])["error"]
    assert b.transaction([ack], required=[theirs[0]["leaseId"]])["success"] is True
    assert four.list()["0"]["lag"] == 2


def test_a_long_poll_of_the_old_owner_does_not_keep_messages_from_the_new_one(four):
    from harness import Background
    b = four.broker
    four.claim("a", {"0": 0})
    old = Background(lambda: four.pop("0", "a", 1, wait="true", timeout=4000))
    wait_until(lambda: not old.done, 1, "it waits")
    four.claim("b", {"0": 1}, steal=True)
    new = Background(lambda: four.pop("0", "b", 2, wait="true", timeout=4000))
    b.push([{"queue": four.queue, "partition": "0", "payload": 1}])
    assert [m["data"] for m in new.result().expect(200).json["messages"]] == [1]
    assert old.result().status in (204, 409)


def test_a_release_ends_the_lease_of_the_owner(four):
    b = four.broker
    b.push([{"queue": four.queue, "partition": "2", "payload": 1}])
    four.claim("a", {"2": 0})
    four.pop("2", "a", 1).expect(200)
    four.post("release", {"owner": "a", "partitions": [{"partition": "2", "epoch": 1}]})
    four.claim("b", {"2": 2})
    assert four.pop("2", "b", 3, wait="true", timeout=3000).expect(200).json["messages"][0]["data"] == 1


def test_an_owner_goes_with_a_partition(four):
    four.broker.pop(four.queue, consumerGroup=four.group, owner="a", epoch=1).expect(400)
    four.pop("0", "a", 1, autoAck="true").expect(400)


# ---- checkpoints ----

def checkpoint(four, owner, partition, epoch, message, **more):
    body = {"owner": owner, "partitions": [{"partition": partition, "epoch": epoch, "transactionId": message["transactionId"], **more}]}
    return four.post("checkpoint", body)["results"][0]


def test_everything_after_the_last_checkpoint_is_redelivered(four):
    b = four.broker
    b.push([{"queue": four.queue, "partition": "1", "payload": i} for i in range(6)])
    four.claim("a", {"1": 0}, manualCheckpoints=True)
    got = four.pop("1", "a", 1, batch=6).expect(200).json["messages"]
    assert checkpoint(four, "a", "1", 1, got[0], before=True)["success"], "nothing is done yet"
    assert checkpoint(four, "a", "1", 1, got[2])["success"]
    assert checkpoint(four, "a", "1", 1, got[1])["error"] == "a checkpoint never goes back"
    b.ack_batch([b.ack_entry(m) for m in got], group=four.group)
    assert four.list()["1"]["checkpoint"] == 3

    four.claim("b", {"1": 1}, steal=True, manualCheckpoints=True)
    assert checkpoint(four, "a", "1", 1, got[5])["error"] == "it has another owner"
    again = four.pop("1", "b", 2, batch=10, wait="true", timeout=3000).expect(200).json["messages"]
    assert [m["data"] for m in again] == [3, 4, 5]
    assert checkpoint(four, "b", "1", 2, {"transactionId": "nobody"})["error"] == "Message not found"


def test_without_manual_checkpoints_the_cursor_is_the_checkpoint(four):
    b = four.broker
    b.push([{"queue": four.queue, "partition": "1", "payload": i} for i in range(3)])
    four.claim("a", {"1": 0})
    got = four.pop("1", "a", 1, batch=2).expect(200).json["messages"]
    b.ack_batch([b.ack_entry(m) for m in got], group=four.group)
    o = four.list()["1"]
    assert (o["checkpoint"], o["lag"]) == (2, 1) and o["checkpointAt"]
    four.claim("b", {"1": 1}, steal=True)
    assert [m["data"] for m in four.pop("1", "b", 2, batch=9, wait="true", timeout=3000).expect(200).json["messages"]] == [2]


# ---- what is malformed ----

@pytest.mark.parametrize("action", ["claim", "renew", "release", "ask", "checkpoint"])
@pytest.mark.parametrize("body, text", [
    ({"partitions": [{"partition": "0", "epoch": 0}]}, "owner must be a string"),
    ({"owner": "", "partitions": [{"partition": "0", "epoch": 0}]}, "owner must be a string"),
    ({"owner": "x" * 256, "partitions": [{"partition": "0", "epoch": 0}]}, "owner is longer"),
    ({"owner": "a"}, "partitions must be an array"),
    ({"owner": "a", "partitions": []}, "partitions must be an array"),
    ({"owner": "a", "partitions": [{"partition": "0", "epoch": 0}, 1]}, "element 1"),
    ({"owner": "a", "partitions": [{"partition": 0, "epoch": 0}]}, "element 0"),
    ({"owner": "a", "partitions": [{"partition": "0", "epoch": -1}]}, "element 0"),
    ({"owner": "a", "partitions": [{"partition": "0"}]}, "element 0"),
])
def test_malformed_requests_are_refused(four, action, body, text):
    assert text in four.post(action, body, 400)["error"]


def test_a_queue_without_a_fixed_set_has_no_owners(broker, queue, group):
    broker.configure(queue)
    o = Owners(broker, queue, group)
    broker.get(o.path).expect(404)
    assert "fixed set" in o.post("claim", {"owner": "a", "partitions": [{"partition": "Default", "epoch": 0}]}, 400)["error"]
    four = {"owner": "a", "partitions": [{"partition": "0", "epoch": 0}]}
    broker.configure(queue + "-2", partitions=2)
    o = Owners(broker, queue + "-2", group)
    assert "expirySeconds" in o.post("claim", {**four, "expirySeconds": 0}, 400)["error"]
    assert "steal" in o.post("claim", {**four, "steal": "x"}, 400)["error"]
    assert "transactionId" in o.post("checkpoint", four, 400)["error"]


def test_owners_go_with_their_group_and_their_queue(broker, queue, group, sql):
    broker.configure(queue, partitions=2)
    o, other = Owners(broker, queue, group), Owners(broker, queue, group + "-2")
    o.claim("a", {"0": 0})
    other.claim("a", {"0": 0})
    broker.request("DELETE", "/api/v1/consumer-groups/%s/queues/%s" % (group, queue)).expect(200)
    assert o.list()["0"]["epoch"] == 0 and other.list()["0"]["epoch"] == 1
    broker.request("DELETE", "/api/v1/resources/queues/%s" % queue).expect(200)
    assert sql("select count(*) from queen.owners where grp like %s", group + "%") == [(0,)]


# ---- changes over time ----

def test_changes_of_owners_are_listed_newest_first(four, broker):
    four.claim("w-1", {"0": 0, "1": 0}, expirySeconds=1)
    wait_until(lambda: four.list()["1"]["expired"], 30, "the claim expires")
    four.claim("w-2", {"1": 1})
    four.claim("w-2", {"1": 1})  # refused: it changes nothing
    four.post("release", {"owner": "w-2", "partitions": [{"partition": "1", "epoch": 2}]})

    def changes(more=""):
        return broker.get(four.path + "/changes" + more).expect(200).json
    answer = changes()
    assert [(c["partition"], c["previous"], c["owner"], c["epoch"], c["expired"]) for c in answer["changes"][:2]] == [
        ("1", "w-2", None, 3, False), ("1", "w-1", "w-2", 2, True)]
    assert {(c["partition"], c["previous"], c["owner"], c["epoch"], c["expired"]) for c in answer["changes"][2:]} == {
        ("0", None, "w-1", 1, False), ("1", None, "w-1", 1, False)}
    assert answer["total"] == 4 and answer["buckets"] is None
    page = changes("?limit=1&bucketSeconds=600")
    assert len(page["changes"]) == 1 and page["total"] == 4 and len(page["buckets"]) == 6
    assert [sum(b[k] for b in page["buckets"]) for k in ("taken", "released", "expired")] == [2, 1, 1]
    assert changes("?to=2020-01-01T00:00:00Z")["changes"] == []
    assert broker.get(PATH % ("nobody", four.queue) + "/changes").expect(200).json["changes"] == []
    for bad in ("?from=yesterday-ish", "?from=2030-01-01T00:00:00Z", "?bucketSeconds=1&from=2020-01-01T00:00:00Z", "?bucketSeconds=-1"):
        broker.get(four.path + "/changes" + bad).expect(400)
    broker.get(PATH % ("g", "none-" + four.queue) + "/changes").expect(404)
