"""Segments through the platform's interface: questions, answers, freshness, errors, saved ones."""
import json
import subprocess
import uuid

import harness
import naive
import pytest
from process import Platform
from segment_rig import Tenant, ask, rig  # noqa: F401

RICH = {"and": [{"attribute": "is_active_subscriber", "operator": "eq", "value": True},
                {"attribute": "wallet_balance", "operator": "gt", "value": 50}]}


@pytest.fixture(scope="module")
def tenant(rig):  # noqa: F811
    t = Tenant(rig, "acme")
    t.write(naive.generate(3, 60, t.sql("select now()")[0][0].astimezone(naive.UTC)))
    return t


def make_rich(tenant, who):
    """The events of a customer who becomes a subscriber with credit, as ingestion writes them."""
    tenant.sql("""insert into crm.customer (customer_uuid, first_name, email, email_opt_in, created_at, updated_at)
                  values (%s, 'Ada "L"', 'ada@example.org', true, now(), now()) on conflict do nothing""", who)
    tenant.sql("insert into crm.subscription_account (id, customer_id, status, updated_at) values (%s, %s, 1, now())", str(uuid.uuid4()), who)
    tenant.sql("insert into crm.wallet_account (id, customer_id, balance, updated_at) values (%s, %s, 80, now())", str(uuid.uuid4()), who)
    tenant.sql("select crm.changed(array[%s]::uuid[], true, false)", who)


def make_poor(tenant, who):
    tenant.sql("update crm.wallet_account set balance = 0 where customer_id = %s", who)
    tenant.sql("select crm.changed(array[%s]::uuid[], true, false)", who)


def test_a_new_tenant_is_answered_by_the_fallback(tenant):
    tenant.sql("update crm.read_model set mode = mode")  # there are models, but none may be built yet
    answer = tenant.count(RICH, "fallback")
    assert answer["path"] == "fallback" and answer["staleMs"] == 0 and answer["count"] >= 0
    assert tenant.count({"all": True})["count"] == 60


def test_the_best_path_is_used_and_its_age_reported(tenant):
    tenant.build(live=False)
    tenant.sql("update crm.read_model set mode = 'views'")
    try:
        assert tenant.count(RICH)["path"] == "views"
        make_rich(tenant, str(uuid.uuid4()))
        stale = tenant.count(RICH)
        assert stale["path"] == "views" and stale["staleMs"] > 0
        assert tenant.count(RICH, "fallback")["count"] == stale["count"] + 1
    finally:
        tenant.sql("update crm.read_model set mode = 'live'")
    tenant.build(views=False)
    live = tenant.count(RICH)
    assert (live["path"], live["staleMs"], live["count"]) == ("live", 0, stale["count"] + 1)
    # in no read model
    assert tenant.count({"attribute": "note", "operator": "contains", "value": "allergy"})["path"] == "fallback"


def test_a_cached_count_is_marked_as_cached(tenant):
    tree = {"attribute": "visit_count", "operator": "gte", "value": 1}
    first = tenant.expect(200, "POST", "/segments/count", {"filter": tree, "maxAgeMs": 60000})
    again = tenant.expect(200, "POST", "/segments/count", {"filter": tree, "maxAgeMs": 60000})
    assert (first["cached"], again["cached"]) == (False, True)
    assert again["count"] == first["count"] and again["asOf"] == first["asOf"] and again["staleMs"] >= again["ageMs"] >= 0
    assert not tenant.expect(200, "POST", "/segments/count", {"filter": tree, "maxAgeMs": 0})["cached"]


def test_a_count_from_memory_is_not_one_of_an_earlier_tenant_of_the_name(rig):  # noqa: F811
    """Also when another process has removed it and made it anew."""
    same = {name: value for name, value in rig.platform.env.items() if name.startswith("PLATFORM_PG_") or name == "QUEEN_URL"}
    other = Platform({**same, "PLATFORM_DIRECTORY_MS": "100"})
    harness.living.append(other)
    other.start()
    try:
        def count(of):
            got = of.post("/api/v1/tenants/again/segments/count", {"filter": {"all": True}, "maxAgeMs": 3600000})
            return got.json["count"] if got.status == 200 else got.status

        first = Tenant(rig, "again")
        make_rich(first, str(uuid.uuid4()))
        first.connection.close()
        assert (count(rig.platform), count(other)) == (1, 1)
        rig.platform.remove_tenant("again").expect(200)
        assert count(rig.platform) == 404
        Tenant(rig, "again").connection.close()
        assert count(rig.platform) == 0
        harness.wait_until(lambda: count(other) == 0, 10, "the other process counts the new tenant")
    finally:
        rig.platform.remove_tenant("again")
        harness.end(other)


def test_an_explanation_shows_where_a_change_is_stuck(tenant):
    who = str(uuid.uuid4())
    unknown = tenant.expect(200, "POST", "/segments/explain", {"filter": RICH, "customer": who})
    assert unknown["inSegment"] is None and "not in the write model" in unknown["because"]
    tenant.build(live=False)
    tenant.sql("update crm.read_model set mode = 'views'")
    try:
        make_rich(tenant, who)
        told = tenant.expect(200, "POST", "/segments/explain", {"filter": RICH, "customer": who})
        assert (told["path"], told["inSegment"], told["inWriteModel"]) == ("views", None, True)
        assert "does not have the customer yet" in told["because"]
    finally:
        tenant.sql("update crm.read_model set mode = 'live'")
    told = tenant.expect(200, "POST", "/segments/explain", {"filter": RICH, "customer": who})
    assert told["path"] == "live" and told["inSegment"] is True
    assert [f["verdict"] for f in told["filters"]] == [True, True] and told["filters"][1]["value"] == 80
    make_poor(tenant, who)
    told = tenant.expect(200, "POST", "/segments/explain", {"filter": RICH, "customer": who})
    assert told["inSegment"] is False and told["because"].startswith("filter/and/1 is false: Credit in all wallets")
    assert {m["model"] for m in told["readModels"]} == {"customer_attributes", "customer_transactions"}


def test_subscribers_who_came_often_are_found_whenever_they_subscribed(tenant):
    """One index of the model of transactions contains them, because it has copies of the subscriptions."""
    subscriber = RICH["and"][0]
    busy = {"attribute": "transaction_count", "operator": "gte", "value": 3, "withinDays": 30}
    here = {"attribute": "location_codes", "operator": "any", "value": ["HERE", "LOC_1"]}
    trees = {"all": {"and": [subscriber, busy, here]}, "both": {"and": [busy, subscriber]}, "not one": {"and": [busy, {"not": subscriber}]},
             "elsewhere": {"and": [busy, subscriber, {"attribute": "location_codes", "operator": "none", "value": ["HERE"]}]},
             "either": {"or": [busy, here]}, "everywhere": {"and": [busy, subscriber, {"attribute": "location_codes", "operator": "all", "value": ["HERE"]}]}}

    def found():
        """Which of them have the customer, the same on both paths, compared with before."""
        live = {name: tenant.count(tree, "live")["count"] for name, tree in trees.items()}
        assert live == {name: tenant.count(tree, "fallback")["count"] for name, tree in trees.items()}
        more = {name for name in trees if before and live[name] == before[name] + 1}
        assert not before or all(live[name] == before[name] for name in set(trees) - more)
        return live, more

    def change(text, attributes):
        tenant.sql(text, who)
        tenant.sql("select crm.changed(array[%s]::uuid[], %s, %s)", who, attributes, not attributes)
        return found()[1]

    tenant.build()
    who, before = str(uuid.uuid4()), None
    before, _ = found()
    make_rich(tenant, who)
    assert found()[1] == set()
    for _ in range(3):
        tenant.sql("insert into crm.transaction_log (id, customer_id, kind, amount, created_at) values (%s, %s, 'sale', 1, now())", str(uuid.uuid4()), who)
    assert change("update crm.transaction_log set amount = 2 where customer_id = %s", False) == {"both", "elsewhere", "either"}
    assert change("update crm.subscription_account set location_code = 'HERE' where customer_id = %s", True) == {"all", "both", "either", "everywhere"}
    assert change("update crm.subscription_account set status = 4 where customer_id = %s", True) == {"not one", "either"}
    tenant.build(live=False)
    assert {name: tenant.count(tree, "views")["count"] for name, tree in trees.items()} == found()[0]


@pytest.mark.parametrize("body, status, sentence", [
    (b"[1", 400, "Invalid JSON"),
    ({"filter": []}, 400, "filter: must be an object"),
    ({}, 400, "filter must be given; {\"all\": true} matches every customer"),
    ({"filter": {}}, 400, "filter: must not be empty"),
    ({"filtre": {"all": True}}, 400, "unknown member \"filtre\"; did you mean \"filter\"?"),
    ({"filter": {"all": True}, "maxAge": 0}, 400, "unknown member \"maxAge\"; did you mean \"maxAgeMs\"?"),
    ({"filter": {"atribute": "city", "operator": "is_set"}}, 400, "filter: unknown member \"atribute\"; did you mean \"attribute\"?"),
    ({"filter": {"and": [{"all": True}] * 32 + [{"and": [{"all": True}] * 400000}]}}, 400, "filter: must be at most 1048576 bytes long"),
    ({"filter": {"attribute": "wallet_balanse", "operator": "gt", "value": 1}}, 400, "did you mean wallet_balance"),
    ({"filter": {"and": [{"attribute": "city", "operator": "gt", "value": 1}]}}, 400, "filter/and/0: operator gt does not apply to city"),
    ({"filter": {"all": True}, "path": "fast"}, 400, "path must be live, views or fallback"),
    ({"filter": {"all": True}, "limit": 0}, 400, "limit must be"),
    ({"filter": {"all": True}, "customer": "me"}, 400, "customer must be a UUID"),
    ({"filter": {"attribute": "note", "operator": "is_set"}, "path": "live"}, 409, "no read model contains"),
])
def test_invalid_segment_requests_get_an_error(tenant, body, status, sentence):
    got, answer = tenant.ask("POST", "/segments/preview", body)
    assert got == status and sentence in answer["error"], answer


def test_segments_of_an_unknown_tenant_get_404(rig):  # noqa: F811
    for path in ("/segments/count", "/segments/preview"):
        assert ask(rig.platform, "POST", "/api/v1/tenants/nobody%s" % path, {"filter": {"all": True}})[0] == 404
    assert ask(rig.platform, "GET", "/api/v1/tenants/nobody/segments")[0] == 404


def test_a_query_that_takes_too_long_is_given_up(tenant, rig):  # noqa: F811
    blocker = tenant.connection
    blocker.autocommit = False
    try:
        with blocker.cursor() as cur:
            cur.execute("lock table crm.customer in access exclusive mode")
            status, answer = tenant.ask("POST", "/segments/count", {"filter": {"all": True}, "maxAgeMs": 0})
            assert status == 503 and "took longer than 1500 ms" in answer["error"], answer
    finally:
        blocker.rollback()
        blocker.autocommit = True
    assert tenant.count({"all": True})["count"] >= 60  # the connection is still good


# ---- saved ones ----

def test_segments_are_saved_counted_and_forgotten(tenant):
    made = tenant.expect(201, "POST", "/segments", {"name": "rich", "filter": RICH})
    assert made["filter"] == RICH and made["lastCount"] is None
    changed = tenant.expect(200, "POST", "/segments", {"name": "rich", "filter": {"and": RICH["and"][:1]}})
    assert changed["id"] == made["id"] and changed["filter"] != RICH
    counted = tenant.expect(200, "POST", "/segments/rich/count")
    assert counted["count"] == tenant.count(changed["filter"])["count"]
    tenant.expect(200, "POST", "/segments/%s/count" % made["id"])
    history = tenant.expect(200, "GET", "/segments/rich/counts?limit=10")
    assert [h["count"] for h in history["counts"]] == [counted["count"]] * 2
    assert [s["name"] for s in tenant.expect(200, "GET", "/segments")["segments"]] == ["rich"]
    tenant.expect(200, "DELETE", "/segments/rich")
    tenant.expect(404, "GET", "/segments/rich")
    tenant.expect(404, "POST", "/segments/rich/count")
    tenant.expect(404, "DELETE", "/segments/rich")
    tenant.expect(400, "POST", "/segments", {"name": "", "filter": {"all": True}})
    tenant.expect(400, "POST", "/segments", {"name": "x", "filter": {"attribute": "no"}})
    tenant.expect(400, "POST", "/segments", {"name": "x"})
    assert "did you mean" in tenant.expect(400, "POST", "/segments", {"name": "x", "filtre": {"all": True}})["error"]
    assert "did you mean" in tenant.expect(400, "GET", "/segments?limt=1")["error"]
    tenant.expect(404, "GET", "/segments/x")


def test_an_unexpected_answer_of_the_database_is_an_error_and_not_a_silence(tenant):
    tenant.expect(201, "POST", "/segments", {"name": "odd", "filter": RICH})
    kept = tenant.sql("select pg_get_functiondef('crm.get_segment'::regproc)")[0][0]
    tenant.sql("""create or replace function crm.get_segment(p_args json) returns table (status int, body text) language sql as
                  $$ select 200, '{"id": "none", "filter": {"all": true}}' $$""")
    try:
        status, answer = tenant.ask("POST", "/segments/odd/count")
        assert status >= 500 and answer["error"]
    finally:
        tenant.sql(kept.replace("%", "%%"))
    tenant.expect(200, "POST", "/segments/odd/count")
    tenant.expect(200, "DELETE", "/segments/odd")


# ---- commands ----

def command(rig, *args):  # noqa: F811
    done = subprocess.run([harness.BIN, "segment", *args, "--url", rig.platform.url, "--json"], capture_output=True, text=True, timeout=60)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_commands(tenant, rig, tmp_path):  # noqa: F811
    who = str(uuid.uuid4())
    make_rich(tenant, who)
    (tmp_path / "rich.json").write_text(json.dumps(RICH))
    code, saved, _ = command(rig, "save", "acme", "cli", "@%s" % (tmp_path / "rich.json"))
    assert code == 0 and saved[0]["filter"] == RICH
    inside = tenant.count(RICH)["count"]
    for question in ("cli", json.dumps(RICH)):
        code, counted, _ = command(rig, "count", "acme", question, "--path", "fallback")
        assert code == 0 and (counted[0]["count"], counted[0]["path"]) == (inside, "fallback")
    code, people, _ = command(rig, "preview", "acme", "cli", "-n", "1000")
    assert code == 0 and len(people) == inside and who in {p["customer"] for p in people}
    code, told, _ = command(rig, "explain", "acme", who, "cli")
    assert code == 0 and told[0]["inSegment"] is True
    assert [s["name"] for s in command(rig, "ls", "acme")[1]] == ["cli"]
    assert len(command(rig, "attributes")[1]) >= 65
    assert command(rig, "count", "acme", "nothing")[0] == 4
    assert command(rig, "count", "acme", '{"attribute": "x"}')[0] == 3
    assert command(rig, "count", "acme", "{")[0] == 1
    tenant.expect(200, "DELETE", "/segments/cli")


# ---- subscriptions ----

def events(rig, queue):  # noqa: F811
    return [(m["data"]["type"], m["data"]["customer"], m["transactionId"]) for m in rig.broker.drain(queue)]


def test_comings_and_goings_become_events_once(tenant, rig):  # noqa: F811
    seg = tenant.expect(201, "POST", "/segments", {"name": "watched", "filter": RICH})
    tenant.expect(400, "PUT", "/segments/watched/subscription", {"queue": "told", "everySeconds": 0})
    tenant.expect(404, "PUT", "/segments/nothing/subscription", {"queue": "told"})
    tenant.expect(200, "PUT", "/segments/watched/subscription", {"queue": "told", "everySeconds": 1})
    look = "select watched_since from crm.segment where name = 'watched'"
    harness.wait_until(lambda: tenant.sql(look)[0][0], 30, "the first look")
    assert tenant.sql("select count(*) from crm.segment_outbox")[0][0] == 0  # who is inside did not come in
    who = str(uuid.uuid4())
    make_rich(tenant, who)
    got = []

    def told(n):
        got.extend(events(rig, "told"))
        return len(got) >= n
    harness.wait_until(lambda: told(1), 30, "the event of a customer who came")
    make_poor(tenant, who)
    harness.wait_until(lambda: told(2), 30, "the event of a customer who left")
    assert [g[:2] for g in got] == [("segment.entered", who), ("segment.left", who)]
    assert all(g[2].startswith("segment:%s:" % seg["id"]) for g in got)
    # A crash between pushing and noting that: the row is still there, and is pushed again.
    tenant.sql("insert into crm.segment_outbox (id, segment_id, customer_uuid, entered) overriding system value values (%s, %s, %s, true)",
               int(got[0][2].split(":")[2]), seg["id"], who)
    harness.wait_until(lambda: tenant.sql("select count(*) from crm.segment_outbox")[0][0] == 0, 30, "the outbox to be empty")
    assert events(rig, "told") == []
    ended = tenant.expect(200, "DELETE", "/segments/watched/subscription")
    assert ended["subscription"] is None and not ended["watched"]
    assert not [s for s in rig.broker.get("/api/v1/schedules").json["schedules"] if seg["id"] in s["name"]]
    tenant.expect(200, "DELETE", "/segments/watched")


# ---- campaigns ----

def recipients(rig, queue):  # noqa: F811
    return rig.broker.drain(queue, consumerGroup="mailer")


def test_a_campaign_sends_to_everybody_once(tenant, rig):  # noqa: F811
    who = str(uuid.uuid4())
    make_rich(tenant, who)
    tenant.expect(201, "POST", "/segments", {"name": "all", "filter": RICH})
    inside = tenant.count(RICH)["count"]
    made = tenant.expect(201, "POST", "/campaigns", {
        "name": "hello", "segment": "all", "when": "now", "queue": "mail",
        "template": {"to": "{{email}}", "text": "Dear {{first_name}} of {{tenant}}", "n": 1}})

    def finished():
        run = tenant.expect(200, "GET", "/campaigns/hello/runs")["runs"][0]
        return run if run["status"] == "DELIVERED" and run["finishedAt"] else None
    run = harness.wait_until(finished, 30, "the run to be delivered")
    assert run["recipients"] == inside == run["sent"] + sum(run["skipped"].values()) and run["finishedAt"]
    got = recipients(rig, "mail")
    assert len(got) == run["sent"] > 0 and len({m["transactionId"] for m in got}) == run["sent"]
    mine = [m for m in got if m["transactionId"].endswith(who)][0]
    assert mine["data"] == {"to": "ada@example.org", "text": 'Dear Ada "L" of acme', "n": 1}
    # The trigger again, as after a crash before its acknowledgement: nothing new.
    # (Its run has that trigger's key before the trigger is there: else whoever takes it makes a run of its own.)
    tenant.sql("update crm.campaign_run set sent = 0, finished_at = null, key = 'again-1' where id = %s", run["run"])
    rig.broker.push([{"queue": "platform.triggers", "partition": "acme", "transactionId": "again-1", "payload":
                      {"kind": "campaign", "tenant": "acme", "id": made["id"]}}])
    harness.wait_until(lambda: tenant.sql("select finished_at from crm.campaign_run where id = %s", run["run"])[0][0], 30, "the run again")
    assert recipients(rig, "mail") == []
    done = subprocess.run([harness.BIN, "campaign", "runs", "acme", "hello", "--url", rig.platform.url, "--json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and json.loads(done.stdout.splitlines()[0])["skipped"]["blocked"] >= 0, done.stderr
    done = subprocess.run([harness.BIN, "campaign", "ls", "acme", "--url", rig.platform.url, "--json"], capture_output=True, text=True, timeout=60)
    assert [json.loads(line)["channel"] for line in done.stdout.splitlines()] == ["email"], done.stderr
    status, timeline = tenant.ask("GET", "/campaigns/hello/runs/%s/recipients/%s" % (run["run"], who))
    assert status == 200 and timeline["status"] == "DELIVERED"
    tenant.expect(409, "POST", "/campaigns", {"name": "hello", "segment": "all", "when": "now", "queue": "mail"})
    tenant.expect(409, "DELETE", "/segments/all")
    tenant.expect(200, "DELETE", "/campaigns/hello")
    tenant.expect(404, "GET", "/campaigns/hello")
    tenant.expect(404, "GET", "/campaigns/hello/runs")


def test_a_campaign_waits_for_its_time_or_repeats(tenant, rig):  # noqa: F811
    tenant.expect(201, "POST", "/segments", {"name": "later", "filter": RICH})
    tenant.expect(201, "POST", "/campaigns", {"name": "then", "segment": "later", "when": {"at": "2030-01-01T00:00:00Z"}, "queue": "q"})
    waiting = tenant.expect(200, "GET", "/campaigns/then/runs")["runs"]
    assert [(w["status"], w["run"], w["nextAttemptAt"]) for w in waiting] == [("SCHEDULED", None, "2030-01-01T00:00:00.000Z")]
    tenant.expect(201, "POST", "/campaigns", {"name": "often", "segment": "later", "when": {"cron": "* * * * * *"}, "queue": "q"})
    harness.wait_until(lambda: len(tenant.expect(200, "GET", "/campaigns/often/runs")["runs"]) >= 2, 30, "two runs")
    tenant.expect(200, "DELETE", "/campaigns/often")
    assert not [s for s in rig.broker.get("/api/v1/schedules").json["schedules"] if s["name"].startswith("campaign:")]
    tenant.expect(200, "DELETE", "/campaigns/then")


def test_a_campaign_on_entry_is_sent_to_entering_customers(tenant, rig):  # noqa: F811
    tenant.expect(201, "POST", "/segments", {"name": "door", "filter": RICH})
    tenant.expect(200, "PUT", "/segments/door/subscription", {"queue": "door.events", "everySeconds": 1})
    tenant.expect(201, "POST", "/campaigns", {"name": "welcome", "segment": "door", "when": "entering", "queue": "welcome"})
    harness.wait_until(lambda: tenant.sql("select watched_since from crm.segment where name = 'door'")[0][0], 30, "the first look")
    who = str(uuid.uuid4())
    make_rich(tenant, who)
    got = []
    harness.wait_until(lambda: got.extend(recipients(rig, "welcome")) or got, 30, "the welcome")
    assert [m["data"]["customer"] for m in got] == [who]
    tenant.expect(200, "DELETE", "/segments/door/subscription")  # the campaign still wants it looked at
    assert tenant.expect(200, "GET", "/segments/door")["watched"]
    tenant.expect(200, "DELETE", "/campaigns/welcome")
    assert not tenant.expect(200, "GET", "/segments/door")["watched"]


def test_a_trigger_that_fails_is_retried_and_visible(tenant, rig):  # noqa: F811
    tenant.expect(201, "POST", "/segments", {"name": "broken", "filter": RICH})
    tenant.sql("alter table crm.campaign_recipient rename to elsewhere")
    try:
        tenant.expect(201, "POST", "/campaigns", {"name": "hurt", "segment": "broken", "when": "now", "queue": "q"})

        def hurt():
            run = tenant.expect(200, "GET", "/campaigns/hurt/runs")["runs"][0]
            return run if run["status"] == "RETRYING" else None
        run = harness.wait_until(hurt, 30, "the trigger to be retried")
        assert run["attempt"] >= 1 and run["nextAttemptAt"] and "campaign_recipient" in run["lastError"]
    finally:
        tenant.sql("alter table crm.elsewhere rename to campaign_recipient")
    tenant.expect(200, "DELETE", "/campaigns/hurt")


@pytest.mark.parametrize("change, sentence", [
    ({"when": "sometimes"}, "when must be"),
    ({"when": {"at": "tomorrow"}}, "when.at must be a time"),
    ({"when": {"cron": "nonsense"}}, "cron must have five fields"),
    ({"template": {"x": "{{nothing}}"}}, "unknown name {{nothing}}"),
    ({"queue": ""}, "queue must be"),
    ({"retryPolicy": 3}, "retryPolicy must be an object"),
    ({"retryPolicy": {"mode": "nonsense"}}, "retryPolicy.mode must be"),
    ({"retryPolicy": {"maxAttempts": 0}}, "retryPolicy.maxAttempts must be"),
    ({"retryPolicy": {"tries": 3}}, "retryPolicy.tries: unknown member"),
    ({"retryPolicy": {"floor": 9, "cap": 3}}, "retryPolicy.floor must be at most"),
])
def test_a_bad_campaign_is_refused_and_not_kept(tenant, change, sentence):
    tenant.ask("POST", "/segments", {"name": "base", "filter": RICH})
    status, answer = tenant.ask("POST", "/campaigns", {"name": "bad", "segment": "base", "when": "now", "queue": "q", **change})
    assert status == 400 and sentence in answer["error"], answer
    tenant.expect(404, "GET", "/campaigns/bad")


def test_numbers(tenant, rig):  # noqa: F811
    def of(line):
        return float(next(x for x in rig.platform.get("/metrics/prometheus").body.decode().splitlines() if x.startswith(line + " ")).split()[1])
    asked = of('queen_platform_segment_query_seconds_count{path="fallback"}')
    tenant.count(RICH, "fallback")
    assert of('queen_platform_segment_query_seconds_count{path="fallback"}') == asked + 1 == rig.platform.get("/metrics").json["segments"]["fallback"]
    assert of('queen_platform_triggers_total{kind="campaign",outcome="done"}') >= 3
    assert of('queen_platform_triggers_total{kind="campaign",outcome="failed"}') >= 1
    assert of('queen_platform_triggers_total{kind="watch",outcome="done"}') >= 1
