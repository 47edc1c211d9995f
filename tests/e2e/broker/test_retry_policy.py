"""Retry policies: validation, display, and the resulting delays."""
import json
import random

import pytest

from harness import urlencode

CAP = 604800
SCHEDULED = {"mode": "scheduled", "strategy": "fibonacci", "base": 10, "floor": 10, "cap": CAP, "jitter": 0, "maxAttempts": 29}


@pytest.fixture
def sql(broker, pg):
    conn = pg.connect()
    cur = conn.cursor()

    def ask(statement, *args):
        cur.execute(statement, args)
        return cur.fetchone()[0]
    yield ask
    conn.close()


def delay(sql, policy, attempt, rnd=0.5):
    return sql("select queen.retry_delay(queen.fill_retry_policy(%s::jsonb), %s, %s)", json.dumps(policy), attempt, rnd)


# ---- delays ----

def test_the_figures_of_fibonacci(sql):
    policy = {"mode": "scheduled"}
    figures = {1: 10, 2: 10, 3: 20, 4: 30, 5: 50, 6: 80, 7: 130, 8: 210, 9: 340, 10: 550, 20: 67650, 29: CAP, 50: CAP, 1000: CAP}
    assert {n: delay(sql, policy, n) for n in figures} == figures


def test_the_other_strategies(sql):
    assert [delay(sql, {"strategy": "fixed", "base": 7}, n) for n in (1, 2, 50)] == [7, 7, 7]
    assert [delay(sql, {"strategy": "exponential", "base": 0.5}, n) for n in (1, 2, 3, 10, 60, 1000)] == [0.5, 1, 2, 256, CAP, CAP]
    assert [delay(sql, {"strategy": "list", "delays": [1, 5, 15]}, n) for n in (1, 2, 3, 4, 99)] == [1, 5, 15, 15, 15]
    assert delay(sql, {"strategy": "list", "delays": [1, 5, 15], "floor": 3, "cap": 10}, 1) == 3
    assert delay(sql, {"strategy": "list", "delays": [1, 5, 15], "floor": 3, "cap": 10}, 3) == 10


def generated(rng):
    policy = {"mode": "scheduled", "strategy": rng.choice(["fibonacci", "exponential", "fixed", "list"])}
    if rng.random() < 0.7:
        policy["base"] = rng.choice([0.001, 0.5, 1, 3, 10, 600])
    if rng.random() < 0.5:
        policy["floor"] = rng.choice([0, 0.5, 5, 20])
    if rng.random() < 0.5:
        policy["cap"] = rng.choice([20, 60, 3600, CAP])
    if rng.random() < 0.5:
        policy["jitter"] = rng.choice([0.1, 0.5, 1])
    if policy["strategy"] == "list":
        policy["delays"] = sorted(rng.choice([0, 1, 5, 15, 100]) for _ in range(rng.randint(1, 5)))
    return policy


def test_delays_rise_between_floor_and_cap_for_every_policy(sql):
    rng = random.Random(4)
    for _ in range(60):
        policy = generated(rng)
        filled = sql("select queen.fill_retry_policy(%s::jsonb)", json.dumps(policy))
        plain = [delay(sql, policy, n) for n in range(1, 36)]
        assert plain == sorted(plain), policy
        for n, rnd in ((1, 0), (2, 0.25), (7, 1), (35, 0), (35, 1)):
            spread = delay(sql, policy, n, rnd)
            assert filled["floor"] <= spread <= filled["cap"], policy
            wanted = plain[n - 1] * (1 + filled["jitter"] * (2 * rnd - 1))
            if plain[n - 1] > filled["floor"]: # the floor hides what lies below it
                assert spread == pytest.approx(min(max(wanted, filled["floor"]), filled["cap"])), policy


# ---- configure ----

def options(broker, queue, policy):
    return broker.configure(queue, retryPolicy=policy)["options"]


def test_a_policy_is_answered_with_its_defaults_and_shown_with_the_queue(broker, queue):
    assert options(broker, queue, {"mode": "scheduled"})["retryPolicy"] == SCHEDULED
    assert broker.get("/api/v1/resources/queues/" + queue).expect(200).json["retryPolicy"] == SCHEDULED
    assert options(broker, queue, {})["retryPolicy"] == {"mode": "inline"}
    wanted = {"mode": "scheduled", "strategy": "list", "delays": [1, 5, 15], "base": 10, "floor": 0, "cap": CAP, "jitter": 0.1,
              "maxAttempts": 4, "nonRetryable": ["BAD_CARD"], "byType": {"invoice.paid": {"maxAttempts": 2}}}
    assert options(broker, queue, {k: wanted[k] for k in ("mode", "strategy", "delays", "jitter", "maxAttempts", "nonRetryable",
                                                          "byType")})["retryPolicy"] == wanted
    # Configuring replaces everything: what is not sent is gone.
    assert "retryPolicy" not in broker.configure(queue)["options"]
    assert "retryPolicy" not in broker.get("/api/v1/resources/queues/" + queue).expect(200).json
    assert "retryPolicy" not in options(broker, queue, None)


BAD = [
    ("text", "retryPolicy must be an object"),
    ({"mode": "later"}, "retryPolicy.mode"),
    ({"strategy": "random"}, "retryPolicy.strategy"),
    ({"strategy": "list"}, "retryPolicy.delays"),
    ({"base": 0}, "retryPolicy.base"),
    ({"base": "10"}, "retryPolicy.base"),
    ({"floor": -1}, "retryPolicy.floor"),
    ({"cap": 1e12}, "retryPolicy.cap"),
    ({"floor": 20, "cap": 10}, "retryPolicy.floor"),
    ({"jitter": 1.5}, "retryPolicy.jitter"),
    ({"maxAttempts": 0}, "retryPolicy.maxAttempts"),
    ({"maxAttempts": 2.5}, "retryPolicy.maxAttempts"),
    ({"delays": []}, "retryPolicy.delays"),
    ({"delays": [1, "2"]}, "retryPolicy.delays"),
    ({"nonRetryable": "X"}, "retryPolicy.nonRetryable"),
    ({"nonRetryable": [""]}, "retryPolicy.nonRetryable"),
    ({"byType": []}, "retryPolicy.byType"),
    ({"byType": {"a.b": {"base": -1}}}, "retryPolicy.byType.a.b.base"),
    ({"byType": {"a": {"byType": {}}}}, "retryPolicy.byType.a.byType"),
    ({"retries": 3}, "retryPolicy.retries"),
]


@pytest.mark.parametrize("policy, field", BAD)
def test_a_bad_policy_is_refused_by_the_name_of_its_field(broker, queue, policy, field):
    broker.configure(queue, retryPolicy={"mode": "scheduled"})
    r = broker.post("/api/v1/configure", {"queue": queue, "options": {"retryPolicy": policy}}).expect(400)
    assert field in r.json["error"]
    assert broker.get("/api/v1/resources/queues/" + queue).json["retryPolicy"] == SCHEDULED


@pytest.mark.parametrize("policy, field", [b for b in BAD if b[0] != {"strategy": "list"} and "byType" not in b[1]])
def test_a_bad_policy_of_a_message_is_refused_by_item_and_field(broker, queue, sql, policy, field):
    items = [{"queue": queue, "payload": 1}, {"queue": queue, "payload": 2, "retryPolicy": policy}]
    error = broker.post("/api/v1/push", {"items": items}).expect(400).json["error"]
    assert "item 1" in error and field.split(" ")[0] in error
    error = broker.post("/api/v1/transaction", {"operations": [{"type": "push", **items[1]}]}).expect(400).json["error"]
    assert "operation 0" in error and field.split(" ")[0] in error
    with pytest.raises(Exception, match="item 1: .*" + field.split(" ")[0]):
        sql("select queen.push_messages_v2(%s::jsonb)", json.dumps(items))
    assert broker.take(queue, batch=10) == []


def test_fields_of_messages_are_checked_too(broker, queue):
    for field, value in (("correlationId", 7), ("eventType", []), ("correlationId", "x" * 256), ("eventType", "x" * 256)):
        error = broker.post("/api/v1/push", {"items": [{"queue": queue, "payload": 1, field: value}]}).expect(400).json["error"]
        assert "item 0" in error and field in error
    assert broker.take(queue) == []


def test_fields_of_messages_come_back_and_others_pay_nothing(broker, queue, sql):
    policy = {"maxAttempts": 2, "strategy": "fixed", "base": 1}
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    broker.push([{"queue": queue, "payload": 1},
                 {"queue": queue, "payload": 2, "correlationId": "c \"7\"", "eventType": "invoice.paid", "retryPolicy": policy,
                  "traceparent": trace}])
    plain, full = broker.take(queue, batch=2)
    assert not {"correlationId", "eventType", "retryPolicy", "attempt"} & set(plain)
    assert (full["correlationId"], full["eventType"], full["retryPolicy"], full["traceparent"]) == \
        ("c \"7\"", "invoice.paid", policy, trace)
    assert sql("select count(*) from queen.correlations c join queen.lanes l on l.num = c.lane join queen.queues q on q.id = l.queue_id"
               " where q.name = %s", queue) == 1
    shown = broker.get("/api/v1/messages/timeline?" + urlencode({"correlationId": "c \"7\""})).expect(200).json
    assert [m["transactionId"] for m in shown["messages"]] == [full["transactionId"]]


@pytest.mark.parametrize("options, limit", [
    ({}, None), ({"retryPolicy": {"mode": "scheduled"}}, 20), ({"retryPolicy": {"mode": "inline"}}, None), ({"maxDeliveries": 3}, 3),
    ({"retryPolicy": {"mode": "scheduled"}, "maxDeliveries": 0}, None)])
def test_deliveries_are_limited_by_default_where_retries_are_scheduled(broker, queue, options, limit):
    assert broker.configure(queue, **options)["options"].get("maxDeliveries") == limit
    assert broker.get("/api/v1/resources/queues/" + queue).json["maxDeliveries"] == (limit or 0)
