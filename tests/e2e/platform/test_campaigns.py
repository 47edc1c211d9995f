"""Campaigns and subscriptions that share a segment, fail, or are made while the broker is away."""
import http.server
import json
import threading
import urllib.error
import urllib.request
import uuid

import harness
import naive
import psycopg2
import pytest
from process import Platform
from segment_rig import Tenant, ask, rig  # noqa: F401
from test_segments import RICH, events, make_poor, make_rich


@pytest.fixture(scope="module")
def tenant(rig):  # noqa: F811
    t = Tenant(rig, "acme")
    t.write(naive.generate(3, 60, t.sql("select now()")[0][0].astimezone(naive.UTC)))
    return t


def watched(tenant, name):
    return harness.wait_until(lambda: tenant.sql("select watched_since from crm.segment where name = %s", name)[0][0], 30, "the first look")


def schedules(rig):  # noqa: F811
    return [s["name"] for s in rig.broker.get("/api/v1/schedules").json["schedules"]]


def test_runs_that_cannot_be_sent_do_not_hold_back_other_campaigns(tenant, rig):  # noqa: F811
    """More runs that fail again and again than one page of announcements has room for."""
    tenant.expect(201, "POST", "/segments", {"name": "door", "filter": RICH})
    bad = tenant.expect(201, "POST", "/campaigns", {"name": "bad", "segment": "door", "when": "entering", "queue": "bad", "channel": "other"})
    tenant.expect(201, "POST", "/campaigns", {"name": "good", "segment": "door", "when": "entering", "queue": "good"})
    tenant.expect(200, "PUT", "/segments/door/subscription", {"queue": "door.events", "everySeconds": 1})
    watched(tenant, "door")
    # The broker refuses its messages.
    tenant.sql("update crm.campaign set retry_policy = '{\"mode\": \"nonsense\"}' where id = %s", bad["id"])
    tenant.sql("""insert into crm.campaign_run (campaign_id, key, recipients, announced)
                  select %s, 'entering:stuck:' || i, 1, false from generate_series(1, 120) i""", bad["id"])
    tenant.sql("""insert into crm.campaign_recipient (run_id, n, customer_uuid)
                  select id, 1, (select customer_uuid from crm.customer where not is_blocked limit 1)
                  from crm.campaign_run where key like 'entering:stuck:%%'""")
    who = str(uuid.uuid4())
    make_rich(tenant, who)
    got = []
    harness.wait_until(lambda: got.extend(rig.broker.drain("good", consumerGroup="mailer")) or got, 40, "the good campaign")
    assert [m["data"]["customer"] for m in got] == [who]
    for name in ("bad", "good"):
        tenant.expect(200, "DELETE", "/campaigns/" + name)
    tenant.expect(200, "DELETE", "/segments/door/subscription")


def test_a_subscription_after_a_campaign_starts_afresh(tenant, rig):  # noqa: F811
    """Deleting the last campaign ends the watching: its members and unsent events are not those of the next subscription."""
    tenant.expect(201, "POST", "/segments", {"name": "fresh", "filter": RICH})
    tenant.expect(201, "POST", "/campaigns", {"name": "c", "segment": "fresh", "when": "entering", "queue": "c"})
    watched(tenant, "fresh")
    members = "select count(*) from crm.segment_member m join crm.segment s on s.id = m.segment_id where s.name = 'fresh'"
    assert tenant.sql(members)[0][0] > 0
    leaver = tenant.sql("select m.customer_uuid::text from crm.segment_member m join crm.segment s on s.id = m.segment_id where s.name = 'fresh'")[0][0]
    tenant.expect(200, "DELETE", "/campaigns/c")
    assert tenant.sql(members)[0][0] == 0
    make_poor(tenant, leaver)
    inside = tenant.count(RICH)["count"]
    tenant.expect(200, "PUT", "/segments/fresh/subscription", {"queue": "fresh.events", "everySeconds": 1, "initial": True})
    got = []
    harness.wait_until(lambda: got.extend(events(rig, "fresh.events")) or len(got) >= inside, 30, "all who are inside")
    assert {g[0] for g in got} == {"segment.entered"} and len({g[1] for g in got}) == inside and leaver not in {g[1] for g in got}
    tenant.expect(200, "DELETE", "/segments/fresh/subscription")


def test_initial_reports_the_members_of_a_segment_that_is_watched_already(tenant, rig):  # noqa: F811
    tenant.expect(201, "POST", "/segments", {"name": "known", "filter": RICH})
    tenant.expect(201, "POST", "/campaigns", {"name": "k", "segment": "known", "when": "entering", "queue": "k"})
    watched(tenant, "known")
    inside = tenant.count(RICH)["count"]
    put = {"queue": "known.events", "everySeconds": 1, "initial": True}
    tenant.expect(200, "PUT", "/segments/known/subscription", put)
    got = []
    harness.wait_until(lambda: got.extend(events(rig, "known.events")) or len(got) >= inside, 30, "all who are inside")
    tenant.expect(200, "PUT", "/segments/known/subscription", put)  # repeated: nothing more
    assert tenant.sql("select count(*) from crm.segment_outbox")[0][0] == 0
    assert {g[0] for g in got} == {"segment.entered"} and len(got) == len({g[1] for g in got}) == inside
    # An event that the old queue did not get is not for the next one.
    seg = tenant.expect(200, "GET", "/segments/known")["id"]
    tenant.sql("update crm.segment set watch_every_s = 3000 where id = %s", seg)
    tenant.sql("insert into crm.segment_outbox (segment_id, customer_uuid, entered) values (%s, gen_random_uuid(), true)", seg)
    tenant.expect(200, "DELETE", "/segments/known/subscription")
    assert tenant.sql("select count(*) from crm.segment_outbox")[0][0] == 0
    tenant.expect(200, "DELETE", "/campaigns/k")


def test_a_look_and_a_subscription_wait_for_each_other(tenant, rig):  # noqa: F811
    """A look that has added a member and is not committed: the new subscription reports that member too."""
    seg = tenant.expect(201, "POST", "/segments", {"name": "race", "filter": RICH})["id"]
    tenant.sql("update crm.segment set watch_every_s = 3000, watched_since = now() where id = %s", seg)
    other = psycopg2.connect(tenant.connection.dsn)
    who = str(uuid.uuid4())
    args = json.dumps({"segment": "race", "queue": "q", "initial": True, "everySeconds": 3000})
    begun = threading.Thread(target=lambda: tenant.sql("select status from crm.watch_segment(%s)", args))
    try:
        with other.cursor() as cur:  # as compile_watch() does
            cur.execute("select from crm.segment where id = %s and watch_every_s is not null for no key update", (seg,))
            cur.execute("insert into crm.segment_member (segment_id, customer_uuid) values (%s, %s)", (seg, who))
        begun.start()
        harness.wait_until(lambda: waiting(other), 20, "the subscription waits for the look")
        other.commit()
    finally:
        other.close()  # or the tests that follow would wait, too
    begun.join(harness.patience(20))
    assert tenant.sql("select customer_uuid::text from crm.segment_outbox where segment_id = %s", seg) == [(who,)]
    tenant.sql("delete from crm.segment where id = %s", seg)


def waiting(connection):
    with connection.cursor() as cur:
        cur.execute("select pg_stat_clear_snapshot()")  # a transaction sees the activity of its first look otherwise
        cur.execute("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%%crm.watch_segment%%'")
        return cur.fetchone()[0] > 0


def test_a_campaign_named_like_the_id_of_another_can_be_deleted(tenant):
    tenant.expect(201, "POST", "/segments", {"name": "names", "filter": RICH})
    when = {"when": {"at": "2030-01-01T00:00:00Z"}, "queue": "q", "segment": "names"}
    first = tenant.expect(201, "POST", "/campaigns", {"name": "first", **when})
    second = tenant.expect(201, "POST", "/campaigns", {"name": first["id"], **when})
    assert tenant.expect(200, "GET", "/campaigns/" + first["id"])["id"] == second["id"], "the name comes first"
    assert tenant.expect(200, "DELETE", "/campaigns/" + first["id"])["deleted"] == second["id"]
    assert tenant.expect(200, "DELETE", "/campaigns/" + first["id"])["deleted"] == first["id"]


def test_a_filter_that_no_path_supports_is_not_saved(tenant):
    many = {"and": [{"attribute": "wallet_balance", "operator": "between", "value": [i, i + 50]} for i in range(21)]}
    answer = tenant.expect(400, "POST", "/segments", {"name": "wide", "filter": many})
    assert "too many values" in answer["error"]
    most = {"and": many["and"][:19]}
    tenant.expect(201, "POST", "/segments", {"name": "wide", "filter": most})
    tenant.expect(200, "POST", "/segments/wide/count")


def test_a_day_has_24_hours_in_every_time_zone(tenant):
    """An interval of days follows the zone of the session, in which a day may have 23 or 25 hours."""
    attributes = ask(tenant.rig.platform, "GET", "/api/v1/segments/attributes")[1]["attributes"]
    name = next(a["name"] for a in attributes if "in_last_days" in a["operators"] and a["type"] != "date")
    tenant.count({"attribute": name, "operator": "in_last_days", "value": 30})
    asked = tenant.sql("select query from pg_stat_activity where query like '%make_interval(%' and pid <> pg_backend_pid()")
    assert asked and not [q for q, in asked if "make_interval(days" in q]


def test_large_messages_go_in_smaller_pages(tenant, rig):  # noqa: F811
    """60 KB for each of the customers is more than one body; the run is complete all the same."""
    tenant.expect(201, "POST", "/segments", {"name": "large", "filter": {"all": True}})
    inside = tenant.count({"all": True})["count"]
    tenant.expect(201, "POST", "/campaigns", {"name": "large", "segment": "large", "when": "now", "queue": "large", "channel": "other",
                                              "template": {"to": "{{customer}}", "text": "x" * 60000}})

    def finished():
        run = (tenant.expect(200, "GET", "/campaigns/large/runs")["runs"] or [{}])[0]
        return run if run.get("finishedAt") else None
    run = harness.wait_until(finished, 60, "the run to be finished")
    assert run["sent"] + run["skipped"]["blocked"] == inside and run["sent"] > 40
    biggest = rig.broker.drain("large", consumerGroup="m")
    assert len({m["data"]["to"] for m in biggest}) == run["sent"]


def test_a_message_that_is_much_too_large_is_a_dead_letter(tenant, rig):  # noqa: F811
    """A template may repeat a name, and the owner of the database may have stored a very long one: it took up to 1 GB of memory."""
    tenant.sql("""insert into crm.customer (customer_uuid, source, first_name, created_at, updated_at)
                  values (gen_random_uuid(), 'huge', repeat('x', 100000), now(), now())""")
    tenant.sql("select crm.changed(array(select customer_uuid from crm.customer where source = 'huge'), true, true)")
    tenant.expect(201, "POST", "/segments", {"name": "huge", "filter": {"attribute": "source", "operator": "eq", "value": "huge"}})
    id = tenant.expect(201, "POST", "/campaigns", {"name": "huge", "segment": "huge", "when": "now", "queue": "huge", "channel": "other",
                                                   "template": {"text": "{{first_name}}" * 1000}})["id"]

    def letters():
        return [m["errorMessage"] for m in rig.broker.get("/api/v1/dlq?queue=platform.triggers").json["messages"] if id in m["transactionId"]]
    assert "larger than" in harness.wait_until(letters, 60, "a dead letter")[0]
    tenant.sql("delete from crm.customer where source = 'huge'")
    tenant.expect(200, "DELETE", "/campaigns/huge")


def test_without_the_broker_a_campaign_is_refused_with_503_and_not_kept(tenant, rig):  # noqa: F811
    tenant.ask("POST", "/segments", {"name": "away", "filter": RICH})
    rig.broker.kill()
    try:
        for n, when in enumerate(("now", {"cron": "0 9 * * *"})):
            answer = tenant.expect(503, "POST", "/campaigns", {"name": "away%d" % n, "segment": "away", "when": when, "queue": "q"})
            assert "the broker did not accept the trigger" in answer["error"]
            tenant.expect(404, "GET", "/campaigns/away%d" % n)
    finally:
        rig.broker.start()


def test_a_campaign_that_cannot_be_taken_back_is_named(tenant, rig):  # noqa: F811
    """The answer was the error of the removal. It contained neither that the campaign exists nor the broker's error."""
    tenant.ask("POST", "/segments", {"name": "stuck", "filter": RICH})
    tenant.sql("create function crm.refuse() returns trigger language plpgsql as $$ begin raise exception 'not now' using errcode = '55000'; end $$")
    tenant.sql("create trigger refuse before delete on crm.campaign for each row execute function crm.refuse()")
    rig.broker.kill()
    try:
        answer = tenant.expect(503, "POST", "/campaigns", {"name": "stuck", "segment": "stuck", "when": {"cron": "0 9 * * *"}, "queue": "q"})
        assert "the broker did not accept the trigger" in answer["error"] and "delete it" in answer["error"]
        tenant.expect(200, "GET", "/campaigns/stuck")
    finally:
        rig.broker.start()
        tenant.sql("drop function crm.refuse cascade")
    tenant.expect(200, "DELETE", "/campaigns/stuck")


class LostAnswers(http.server.BaseHTTPRequestHandler):
    """Passes requests on to a broker and loses the answers to new schedules."""
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = urllib.request.Request(self.server.broker + self.path, body or None, {"Content-Type": "application/json"}, method=self.command)
        try:
            with urllib.request.urlopen(request, timeout=90) as r:
                status, answer = r.status, r.read()
        except urllib.error.HTTPError as e:
            status, answer = e.code, e.read()
        if self.path == "/api/v1/schedules" and self.command == "POST":
            self.server.lost.append(status)
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = pass_on

    def log_message(self, *args):
        pass


def test_a_schedule_whose_answer_was_lost_is_removed_from_the_broker(rig):  # noqa: F811
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", harness.free_port()), LostAnswers)
    proxy.daemon_threads, proxy.broker, proxy.lost = True, rig.broker.url, []
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    platform = Platform({"PLATFORM_PG_HOST": rig.pg.host, "PLATFORM_PG_PORT": rig.pg.port, "PLATFORM_PG_USER": rig.pg.user, "PLATFORM_PG_PASSWORD": "x",
                         "PLATFORM_PG_DB": "platform_lost", "PLATFORM_QUEUE": "lost.events", "PLATFORM_TRIGGER_QUEUE": "lost.triggers",
                         "QUEEN_URL": "http://127.0.0.1:%d" % proxy.server_port}).start()
    try:
        platform.add_tenant("lost")
        platform.post("/api/v1/tenants/lost/segments", {"name": "s", "filter": RICH}).expect(201)
        answer = platform.post("/api/v1/tenants/lost/campaigns", {"name": "c", "segment": "s", "when": {"cron": "0 9 * * *"}, "queue": "q"}, timeout=60)
        assert answer.status == 503 and 201 in proxy.lost, (answer.json, proxy.lost)
        assert platform.get("/api/v1/tenants/lost/campaigns/c").status == 404
        with urllib.request.urlopen(rig.broker.url + "/api/v1/schedules") as r:
            assert b"lost" not in r.read()
    finally:
        platform.dispose()
        proxy.shutdown()
        proxy.server_close()


# ---- checks that are overtaken ----

class Gate:
    """While it is closed, a check of a segment waits in the middle of its statement."""

    def __init__(self, tenant):
        self.tenant, self.key = tenant, psycopg2.connect(tenant.connection.dsn)
        self.key.autocommit = True
        tenant.build(views=False)
        tenant.sql("""create or replace function crm.gate() returns boolean language plpgsql volatile as
                      'begin perform pg_advisory_xact_lock_shared(4711); return true; end'""")
        tenant.sql("alter table crm.customer_attributes_live rename to attributes_kept")
        tenant.sql("create view crm.customer_attributes_live as select * from crm.attributes_kept where crm.gate()")

    def lock(self, function):
        with self.key.cursor() as cur:
            cur.execute("select %s(4711)" % function)

    def close(self):
        self.lock("pg_advisory_lock")

    def open(self):
        self.lock("pg_advisory_unlock")

    def has_waiter(self):
        return self.tenant.sql("select count(*) from pg_locks where locktype = 'advisory' and objid = 4711 and not granted")[0][0] > 0

    def remove(self):
        self.key.close()
        self.tenant.sql("drop view crm.customer_attributes_live")
        self.tenant.sql("alter table crm.attributes_kept rename to customer_attributes_live")


@pytest.fixture
def gate(tenant, rig):  # noqa: F811
    rig.broker.forget()  # other tests restart it
    made = Gate(tenant)
    yield made
    made.remove()


def test_a_check_that_began_before_a_new_subscription_sends_to_the_new_queue(tenant, rig, gate):  # noqa: F811
    tenant.expect(201, "POST", "/segments", {"name": "moved", "filter": RICH})
    tenant.expect(200, "PUT", "/segments/moved/subscription", {"queue": "moved.old", "everySeconds": 1})
    watched(tenant, "moved")
    gate.close()
    harness.wait_until(gate.has_waiter, 30, "a check waits")
    comer = tenant.sql("select m.customer_uuid::text from crm.segment_member m join crm.segment s on s.id = m.segment_id where s.name = 'moved'")[0][0]
    tenant.sql("delete from crm.segment_member where customer_uuid = %s", comer)  # so it enters, for a check that begins now
    tenant.sql("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid = 4711 and not granted")
    harness.wait_until(lambda: not gate.has_waiter(), 30, "the first check has ended")
    harness.wait_until(gate.has_waiter, 60 * harness.TIME_FACTOR, "another one waits")
    tenant.expect(200, "PUT", "/segments/moved/subscription", {"queue": "moved.new", "everySeconds": 1})
    gate.open()
    got = []
    harness.wait_until(lambda: got.extend(events(rig, "moved.new")) or got, 30 * harness.TIME_FACTOR, "the new queue gets it")
    assert [g[:2] for g in got] == [("segment.entered", comer)]
    assert events(rig, "moved.old") == []
    tenant.expect(200, "DELETE", "/segments/moved/subscription")


def test_a_check_that_a_new_subscription_overtakes_reports_nobody_who_was_inside(tenant, rig, gate):  # noqa: F811
    tenant.expect(201, "POST", "/segments", {"name": "again", "filter": RICH})
    tenant.expect(200, "PUT", "/segments/again/subscription", {"queue": "again.events", "everySeconds": 1})
    watched(tenant, "again")
    gate.close()
    harness.wait_until(gate.has_waiter, 30, "a check waits")
    tenant.expect(200, "DELETE", "/segments/again/subscription")
    tenant.expect(200, "PUT", "/segments/again/subscription", {"queue": "again.events", "everySeconds": 1})
    gate.open()
    watched(tenant, "again")
    looked = tenant.sql("select evaluated_at from crm.segment where name = 'again'")[0][0]
    harness.wait_until(lambda: tenant.sql("select evaluated_at from crm.segment where name = 'again'")[0][0] > looked, 30, "another check")
    assert tenant.sql("select count(*) from crm.segment_member m join crm.segment s on s.id = m.segment_id where s.name = 'again'")[0][0] \
        == tenant.count(RICH)["count"]
    assert events(rig, "again.events") == []
    tenant.expect(200, "DELETE", "/segments/again/subscription")


# ---- consent ----

@pytest.mark.parametrize("channel", ["email", "sms", "other"])
def test_customers_who_did_not_agree_get_no_message(tenant, rig, channel):  # noqa: F811
    name = "consent-" + channel
    reasons = ["deleted", "blocked", "no_consent", "no_address", None]
    who = {reason: str(uuid.uuid4()) for reason in reasons}
    for reason, customer in who.items():
        agreed = reason != "no_consent"
        tenant.sql("""insert into crm.customer (customer_uuid, source, email, phone, email_opt_in, sms_opt_in, is_blocked, created_at, updated_at)
                      values (%s, %s, %s, %s, %s, %s, %s, now(), now())""", customer, name, " " if reason == "no_address" else "a@b.c",
                   None if reason == "no_address" else "+39 1", agreed and channel == "email", agreed and channel == "sms", reason == "blocked")
    tenant.sql("select crm.changed(%s::uuid[], true, true)", list(who.values()))
    tenant.expect(201, "POST", "/segments", {"name": name, "filter": {"attribute": "source", "operator": "eq", "value": name}})
    gone = """create function crm.goes() returns trigger language plpgsql as
              'begin delete from crm.customer where customer_uuid = ''%s''; return new; end'""" % who["deleted"]
    tenant.sql(gone)  # after it was listed as a recipient
    tenant.sql("create trigger goes after insert on crm.campaign_run for each row execute function crm.goes()")
    try:
        tenant.expect(201, "POST", "/campaigns", {"name": name, "segment": name, "when": "now", "queue": name, "channel": channel})

        def run():
            return (tenant.expect(200, "GET", "/campaigns/%s/runs" % name)["runs"] or [{}])[0]
        harness.wait_until(lambda: run().get("finishedAt"), 30 * harness.TIME_FACTOR, "the run is complete")
    finally:
        tenant.sql("drop trigger goes on crm.campaign_run")
        tenant.sql("drop function crm.goes()")
    free = channel == "other"
    done = run()
    assert done["recipients"] == 5 and done["sent"] == (3 if free else 1)
    assert done["skipped"] == {"blocked": 1, "noConsent": 0 if free else 1, "noAddress": 0 if free else 1, "deleted": 1}
    got = rig.broker.drain(name, consumerGroup="g")
    expected = {None, "no_consent", "no_address"} if free else {None}
    assert {m["data"]["customer"] for m in got} == {who[r] for r in expected}
    for reason, customer in who.items():
        answer = tenant.expect(200, "GET", "/campaigns/%s/runs/%s/recipients/%s" % (name, done["run"], customer))
        if reason in expected:
            assert answer["status"] != "SKIPPED"
        else:
            assert answer == {"status": "SKIPPED", "skipped": reason}
    assert tenant.expect(200, "GET", "/campaigns/" + name)["channel"] == channel
    tenant.expect(404, "GET", "/campaigns/%s/runs/%s/recipients/%s" % (name, uuid.uuid4(), customer))
    tenant.expect(400, "GET", "/campaigns/%s/runs/x/recipients/%s" % (name, customer))
    assert "channel must be" in tenant.expect(400, "POST", "/campaigns", {"name": "x", "segment": name, "when": "now", "queue": "q", "channel": "fax"})["error"]


@pytest.mark.parametrize("what", ["run", "outbox"])
def test_a_database_that_keeps_no_progress_fails_the_trigger(tenant, rig, what):  # noqa: F811
    """Its owner has a trigger that cancels our writes: the same page was sent again and again, as fast as possible."""
    table, action, result = {"run": ("campaign_run", "update", "progress of the run"), "outbox": ("segment_outbox", "delete", "delete what was sent")}[what]
    name = "stuck-" + what
    tenant.expect(201, "POST", "/segments", {"name": name, "filter": {"all": True}})
    tenant.sql("create function public.cancel() returns trigger language plpgsql as $$ begin return null; end $$")
    tenant.sql("create trigger cancel before %s on crm.%s for each row execute function public.cancel()" % (action, table))
    try:
        if what == "run":
            tenant.expect(201, "POST", "/campaigns", {"name": name, "segment": name, "when": "now", "queue": name, "channel": "other"})
        else:
            tenant.sql("""insert into crm.customer (customer_uuid, created_at, updated_at)
                          select gen_random_uuid(), now(), now() from generate_series(1, 600)""")
            tenant.expect(200, "PUT", "/segments/%s/subscription" % name, {"queue": name, "everySeconds": 1, "initial": True})
        harness.wait_until(lambda: "does not " in rig.platform.log_text() and result in rig.platform.log_text(), 30 * harness.TIME_FACTOR, "it failed")
    finally:
        tenant.sql("drop function public.cancel cascade")
    # The next attempt of the trigger goes on.
    n = tenant.sql("select count(*) from crm.customer where not is_blocked or %s", what == "outbox")[0][0]
    got = []
    harness.wait_until(lambda: got.extend(rig.broker.drain(name, consumerGroup="reader")) or len(got) == n, 90 * harness.TIME_FACTOR, "all are sent")
    assert len({m["data"]["customer"] for m in got}) == n
    if what == "outbox":
        tenant.expect(200, "DELETE", "/segments/%s/subscription" % name)


@pytest.mark.parametrize("own", ["platform.triggers", "platform.events", "platform.events.held"])
def test_nothing_of_a_tenant_goes_to_the_queues_of_the_platform(tenant, rig, own):  # noqa: F811
    """Their messages act on any tenant: neither a request nor the owner of the tenant's database may name them."""
    name = "own" + own.rsplit(".", 1)[-1]
    tenant.expect(201, "POST", "/segments", {"name": name, "filter": RICH})
    assert "own queues" in tenant.expect(400, "PUT", "/segments/%s/subscription" % name, {"queue": own})["error"]
    campaign = {"name": name, "segment": name, "when": "now", "channel": "other"}
    assert "own queues" in tenant.expect(400, "POST", "/campaigns", {**campaign, "queue": own})["error"]
    later = {**campaign, "when": {"cron": "0 0 1 1 *"}, "queue": "elsewhere"}
    id = tenant.expect(201, "POST", "/campaigns", later)["id"]
    tenant.sql("update crm.campaign set queue = %s where id = %s", own, id)
    payload = {"kind": "campaign", "tenant": tenant.name, "id": id}
    rig.broker.push([{"queue": "platform.triggers", "partition": tenant.name, "payload": payload, "transactionId": "run-" + id}]).expect(201)

    def dead():
        letters = rig.broker.get("/api/v1/dlq?queue=platform.triggers").json["messages"]
        return [m for m in letters if m["transactionId"] == "run-" + id]
    assert "queue of the platform" in harness.wait_until(dead, 60, "a dead letter")[0]["errorMessage"]
