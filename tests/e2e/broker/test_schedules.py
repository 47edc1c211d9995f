"""Recurring messages: cron expressions, time zones, missed runs (docs/guide/scheduled-delivery.md)."""
import json
import random
import time
import uuid
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import psycopg2
import pytest

from harness import Background, in_parallel, is_blocked, wait_until
from test_scheduled import let_pass

NEVER = "0 0 1 1 *"


@pytest.fixture
def name():
    return "s-" + uuid.uuid4().hex[:12]


def create(broker, name, queue, cron=NEVER, **more):
    return broker.post("/api/v1/schedules", dict({"name": name, "queue": queue, "cron": cron}, **more)).expect(201).json


def act(broker, name, verb):
    return broker.post("/api/v1/schedules/%s/%s" % (name, verb))


def drop(broker, name):
    return broker.request("DELETE", "/api/v1/schedules/" + name)


def take_all(broker, queue, n, timeout=10):
    got = []
    wait_until(lambda: got.extend(broker.take(queue, autoAck=True, batch=100)) or len(got) >= n, timeout, "%d messages" % n)
    return got


# --- the routes ------------------------------------------------------------------------------------------------------

def test_a_schedule_is_made_shown_changed_and_deleted(broker, queue, name):
    made = create(broker, name, queue, "30 2 * * *", timezone="Europe/Berlin", payload={"n": 1}, partition="p", missed="once")
    assert made["nextRunAt"] and made["lastRunAt"] is None and made["runs"] == 0 and made["paused"] is False
    assert (made["queue"], made["partition"], made["cron"], made["timezone"], made["payload"], made["missed"]) == (
        queue, "p", "30 2 * * *", "Europe/Berlin", {"n": 1}, "once")
    for key in (made["id"], name):
        assert broker.get("/api/v1/schedules/" + key).expect(200).json == made
    assert made in broker.get("/api/v1/schedules").expect(200).json["schedules"]
    assert broker.get("/api/v1/schedules?queue=" + queue).json["schedules"] == [made]
    changed = broker.request("PATCH", "/api/v1/schedules/" + name, {"cron": "0 3 * * *", "payload": None}).expect(200).json
    assert changed["cron"] == "0 3 * * *" and changed["payload"] is None and changed["timezone"] == "Europe/Berlin"
    assert changed["nextRunAt"] != made["nextRunAt"] and changed["id"] == made["id"]
    assert drop(broker, made["id"]).expect(200).json["id"] == made["id"]
    for gone in (drop(broker, name), broker.get("/api/v1/schedules/" + name), act(broker, name, "pause"), act(broker, name, "run"),
                 act(broker, name, "resume"), broker.request("PATCH", "/api/v1/schedules/" + name, {"queue": "x"})):
        gone.expect(404)


def test_defaults(broker, queue, name):
    made = create(broker, name, queue, "@daily")
    assert (made["partition"], made["timezone"], made["payload"], made["missed"]) == ("Default", "UTC", None, "skip")
    assert made["nextRunAt"].endswith("T00:00:00.000Z")
    drop(broker, name)


def test_a_name_is_taken_once(broker, queue, name):
    create(broker, name, queue)
    broker.post("/api/v1/schedules", {"name": name, "queue": queue, "cron": NEVER}).expect(409)
    other = create(broker, name + "-2", queue)
    broker.request("PATCH", "/api/v1/schedules/" + other["id"], {"name": name}).expect(409)
    drop(broker, name), drop(broker, name + "-2")


@pytest.mark.parametrize("fields, wrong", [
    ({"name": ""}, "name"), ({"name": 5}, "name"), ({"queue": None}, "queue"), ({"queue": "q" * 256}, "queue"), ({"cron": "* * * *"}, "five fields"),
    ({"cron": "60 * * * *"}, "minute"), ({"cron": "* 24 * * *"}, "hour"), ({"cron": "* * 0 * *"}, "day of the month"),
    ({"cron": "* * * 13 *"}, "month"), ({"cron": "* * * * 8"}, "day of the week"), ({"cron": "5-1 * * * *"}, "minute"),
    ({"cron": "*/0 * * * *"}, "minute"), ({"cron": "a * * * *"}, "minute"), ({"cron": "1,,2 * * * *"}, "minute"), ({"cron": "@often"}, "cron"),
    ({"timezone": "Mars/Olympus"}, "timezone"), ({"timezone": "+01:00"}, "timezone"), ({"missed": "never"}, "missed"),
    ({"paused": "yes"}, "paused"), ({"partition": 7}, "partition")])
def test_a_field_that_cannot_be_is_refused(broker, queue, name, fields, wrong):
    r = broker.post("/api/v1/schedules", dict({"name": name, "queue": queue, "cron": NEVER}, **fields)).expect(400)
    assert wrong in r.json["error"]
    broker.get("/api/v1/schedules/" + name).expect(404)
    broker.post("/api/v1/schedules", "[]").expect(400)


# --- running ---------------------------------------------------------------------------------------------------------

def test_it_runs_every_second_once_with_two_brokers(broker, broker2, queue, name):
    made = create(broker, name, queue, "* * * * * *", payload={"tick": True})
    got = take_all(broker2, queue, 3)
    act(broker, name, "pause").expect(200)
    time.sleep(0.1)
    got += broker.take(queue, autoAck=True, batch=100)
    ids = [m["transactionId"] for m in got]
    times = [datetime.fromisoformat(i.split(":", 2)[2].replace("Z", "+00:00")) for i in ids]
    assert all(i.startswith("schedule:%s:" % made["id"]) for i in ids) and all(m["data"] == {"tick": True} for m in got)
    assert [b - a for a, b in zip(times, times[1:])] == [timedelta(seconds=1)] * (len(times) - 1), "each second, in order, once"
    for m, when in zip(got, times):
        late = datetime.fromisoformat(m["createdAt"].replace("Z", "+00:00")) - when
        assert late >= timedelta(0), "never early"
    shown = broker.get("/api/v1/schedules/" + name).json
    assert shown["runs"] == len(got) and shown["lastMessageId"] == got[-1]["id"] and shown["nextRunAt"] is None
    drop(broker, name)


def test_paused_is_silent_and_run_works_all_the_same(broker, queue, name):
    create(broker, name, queue, "* * * * * *", paused=True)
    let_pass(broker, queue, 1)
    assert broker.take(queue) == []
    first = act(broker, name, "run").expect(200).json
    second = act(broker, name, "run").expect(200).json
    assert [(m["id"], m["transactionId"]) for m in take_all(broker, queue, 2)] == [
        (first["messageId"], first["transactionId"]), (second["messageId"], second["transactionId"])]
    act(broker, name, "resume").expect(200)
    take_all(broker, queue, 1)
    drop(broker, name)


@pytest.mark.parametrize("missed, runs", [("skip", 0), ("once", 1), ("all", 5)])
def test_missed_runs_follow_the_policy(broker, queue, name, sql, missed, runs):
    """Five times were missed, the last of them ten minutes ago."""
    (last,), = sql("select date_trunc('minute', now()) - interval '10 minutes'")
    made = create(broker, name, queue, "%d * * * *" % last.minute, missed=missed)
    sql("update queen.schedules set next_at = %s - interval '4 hours' where id = %s", last, made["id"])
    act(broker, name, "resume").expect(200)  # changes nothing, and makes the broker look
    shown = lambda: broker.get("/api/v1/schedules/" + name).json  # noqa: E731
    wait_until(lambda: shown()["nextRunAt"] == made["nextRunAt"], 10, "the next time is in the future")
    assert shown()["runs"] == runs
    got = broker.drain(queue)
    assert len(got) == runs
    if runs:
        ran = datetime.fromisoformat(got[-1]["transactionId"].split(":", 2)[2].replace("Z", "+00:00"))
        assert ran == last, "the last one missed, or all up to it"
    drop(broker, name)


def test_many_brokers_and_calls_run_a_time_once(broker, queue, name, pg, sql):
    create(broker, name, queue, NEVER)
    sql("update queen.schedules set next_at = now() - interval '1 second' where name = %s", name)

    def fire():
        conn = pg.connect()
        try:
            with conn.cursor() as cur:
                cur.execute("select queen.run_schedules(100)")
                return cur.fetchone()[0]
        finally:
            conn.close()

    in_parallel([fire] * 6)
    # If the broker is about to run it, the others pass over it and return first.
    wait_until(lambda: sql("select runs from queen.schedules where name = %s", name) != [(0,)], 20, "it was run")
    assert sql("select runs from queen.schedules where name = %s", name) == [(1,)]
    assert len(take_all(broker, queue, 1)) == 1 and broker.take(queue) == []
    drop(broker, name)


def test_a_run_beside_the_deletion_of_its_queue_is_not_lost(broker, queue, name, pg):
    """It has found the partition and waits for its lock; when it gets that, the partition is gone."""
    create(broker, name, queue)
    act(broker, name, "run").expect(200)
    with pg.connect(autocommit=False) as conn, conn.cursor() as cur:
        cur.execute("delete from queen.queues where name = %s", (queue,))
        run = Background(lambda: act(broker, name, "run"))
        wait_until(lambda: is_blocked(pg), 10, "the run waits for the partition")
        conn.commit()
    ran = run.result().expect(200).json
    assert [m["id"] for m in take_all(broker, queue, 1)] == [ran["messageId"]]
    drop(broker, name)


def test_a_partition_that_a_fixed_set_does_not_have_is_refused(broker, queue, name):
    broker.configure(queue, partitions=4)
    r = broker.post("/api/v1/schedules", {"name": name, "queue": queue, "cron": NEVER})
    assert "fixed set" in r.expect(400).json["error"]
    create(broker, name, queue, partition="3")
    assert "fixed set" in broker.request("PATCH", "/api/v1/schedules/" + name, {"partition": "4"}).expect(400).json["error"]
    act(broker, name, "run").expect(200)
    assert [m["partition"] for m in take_all(broker, queue, 1)] == ["3"]
    drop(broker, name)


def test_sql_schedules_only_into_the_fixed_partitions(broker, queue, sql):
    broker.configure(queue, partitions=4)
    with pytest.raises(psycopg2.Error, match="item 0: the queue has a fixed set"):
        sql("select queen.push_messages_v2(%s::jsonb)", json.dumps([{"queue": queue, "payload": 1, "delaySeconds": 60}]))


def test_the_next_runs_are_shown_on_request(broker, queue, name, sql):
    made = create(broker, name, queue, "30 2 * * *", timezone="Europe/Berlin")

    def runs(n):
        return broker.get("/api/v1/schedules/%s?runs=%s" % (name, n)).expect(200).json["nextRuns"]
    assert runs(1) == [made["nextRunAt"]] and len(runs(3)) == 3 and sorted(runs(3)) == runs(3) and len(runs(1000)) == 100
    act(broker, name, "pause").expect(200)
    assert runs(3) == []
    act(broker, name, "resume").expect(200)
    sql("update queen.schedules set timezone = 'Nowhere/Gone' where id = %s", made["id"])
    assert runs(3) == []
    drop(broker, name)


def test_one_that_cannot_run_does_not_hold_up_the_others(broker, queue, name, sql):
    """Its queue was created again with a fixed set of partitions."""
    other = queue + "-other"
    bad, good = create(broker, name, queue), create(broker, name + "-good", other)
    broker.configure(queue, partitions=4)
    assert "fixed set" in act(broker, name, "run").expect(400).json["error"]
    sql("update queen.schedules set next_at = now() - interval '1 second' where id in (%s, %s)", bad["id"], good["id"])
    act(broker, name, "resume").expect(200)  # changes nothing, and makes the broker look
    assert len(take_all(broker, other, 1)) == 1
    shown = broker.get("/api/v1/schedules/" + name).expect(200).json
    assert shown["runs"] == 0 and shown["nextRunAt"] == bad["nextRunAt"]
    drop(broker, name)
    drop(broker, name + "-good")


def test_one_that_fails_does_not_stop_the_others(broker, queue, name, sql):
    """Its time zone no longer exists.  Scheduled messages and retries come from the same step."""
    other, later = queue + "-other", queue + "-later"
    bad, good = create(broker, name, queue), create(broker, name + "-good", other)
    sql("update queen.schedules set timezone = 'Nowhere/Gone' where id = %s returning 1", bad["id"])
    sql("update queen.schedules set next_at = now() - interval '1 second' where id in (%s, %s) returning 1", bad["id"], good["id"])
    broker.post("/api/v1/push", {"items": [{"queue": later, "payload": 1, "delaySeconds": 0.1}]}).expect(201)
    assert len(take_all(broker, other, 1)) == 1
    assert len(take_all(broker, later, 1)) == 1
    assert broker.get("/api/v1/schedules/" + name).expect(200).json["runs"] == 0
    # Its time was not lost.
    sql("update queen.schedules set timezone = 'UTC' where id = %s returning 1", bad["id"])
    assert len(take_all(broker, queue, 1)) == 1
    assert broker.get("/api/v1/schedules/" + name).expect(200).json["runs"] == 1
    drop(broker, name)
    drop(broker, name + "-good")


# --- cron ------------------------------------------------------------------------------------------------------------

def runs_of(sql, cron, zone, after, n):
    out = []
    for _ in range(n):
        (after,), = sql("select queen.cron_next(%s, %s, %s)", cron, zone, after)
        out.append(after and after.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S"))
        if after is None:
            break
    return out


@pytest.mark.parametrize("cron, zone, after, want", [
    # Clocks go forward: 02:30 does not exist, the run is at the end of the gap; two times in the gap are one run.
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T02:00Z", ["2026-03-29 01:00:00", "2026-03-30 00:30:00"]),
    ("*/20 2 * * *", "Europe/Berlin", "2026-03-28T02:00Z", ["2026-03-29 01:00:00", "2026-03-30 00:00:00"]),
    ("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:00Z", ["2026-03-29 00:30:00", "2026-03-29 01:00:00", "2026-03-29 01:30:00"]),
    # Clocks go back: 02:30 comes twice, the run is at the first.
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", ["2026-10-25 00:30:00", "2026-10-26 01:30:00"]),
    ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30Z", ["2026-10-26 01:30:00"]),
    ("30 1 * * *", "America/New_York", "2026-11-01T00:00Z", ["2026-11-01 05:30:00", "2026-11-02 06:30:00"]),
    # A gap at midnight, half an hour of summer, and half an hour of zone.
    ("0 0 * * *", "America/Havana", "2026-03-07T12:00Z", ["2026-03-08 05:00:00", "2026-03-09 04:00:00"]),
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00Z", ["2026-10-03 15:30:00", "2026-10-04 15:15:00"]),
    ("@hourly", "Asia/Kolkata", "2026-01-01T00:10Z", ["2026-01-01 00:30:00", "2026-01-01 01:30:00"]),
    # The calendar.
    ("0 9 29 2 *", "UTC", "2026-01-01T00:00Z", ["2028-02-29 09:00:00", "2032-02-29 09:00:00"]),
    ("0 0 31 2 *", "UTC", "2026-01-01T00:00Z", [None]),
    ("0 12 13 * fri", "UTC", "2026-02-01T00:00Z", ["2026-02-06 12:00:00", "2026-02-13 12:00:00", "2026-02-20 12:00:00"]),
    ("0 0 * * 7", "UTC", "2026-11-16T00:00Z", ["2026-11-22 00:00:00", "2026-11-29 00:00:00"]),
    ("0 0 1 JAN,jul *", "UTC", "2026-01-01T00:00Z", ["2026-07-01 00:00:00", "2027-01-01 00:00:00"]),
    ("59 23 31 12 *", "UTC", "2026-12-31T23:59Z", ["2027-12-31 23:59:00"]),
    ("*/25 10-12/2 * * *", "UTC", "2026-01-01T10:30Z", ["2026-01-01 10:50:00", "2026-01-01 12:00:00", "2026-01-01 12:25:00"]),
    ("5/20 * * * * *", "UTC", "2026-01-01T00:00:26Z", ["2026-01-01 00:00:45", "2026-01-01 00:01:05"]),
])
def test_cron_by_example(sql, cron, zone, after, want):
    assert runs_of(sql, cron, zone, after, len(want)) == want


class Model:
    """Cron a second time: walks minute by minute through the walls of a zone."""

    def __init__(self, rng):
        pick = lambda low, high: sorted(rng.sample(range(low, high + 1), rng.randint(1, 3)))  # noqa: E731
        self.minutes, self.hours = pick(0, 59), pick(0, 23)
        self.days = rng.choice([None, pick(1, 28)])
        self.weekdays = rng.choice([None, pick(0, 6)])

    def text(self):
        field = lambda n: "*" if n is None else ",".join(map(str, n))  # noqa: E731
        return "%s %s %s * %s" % (field(self.minutes), field(self.hours), field(self.days), field(self.weekdays))

    def matches(self, wall):
        day, week = wall.day, (wall.weekday() + 1) % 7
        if self.days is not None and self.weekdays is not None:
            good = day in self.days or week in self.weekdays
        else:
            good = (self.days is None or day in self.days) and (self.weekdays is None or week in self.weekdays)
        return good and wall.hour in self.hours and wall.minute in self.minutes

    def runs(self, zone, begin, days):
        """UTC moments: for every matching wall minute the first moment with it, or the end of the gap it lies in."""
        found, wall = set(), begin.astimezone(zone).replace(tzinfo=None) - timedelta(days=1)
        for _ in range((days + 2) * 1440):
            if self.matches(wall):
                at = wall.replace(tzinfo=zone, fold=0).astimezone(timezone.utc)
                if at.astimezone(zone).replace(tzinfo=None) != wall:  # left out: minute by minute to where clocks go on
                    at = (wall.replace(tzinfo=zone, fold=1)).astimezone(timezone.utc)
                    while at.astimezone(zone).replace(tzinfo=None) >= wall:
                        at -= timedelta(minutes=1)
                    at += timedelta(minutes=1)
                found.add(at)
            wall += timedelta(minutes=1)
        return sorted(t for t in found if begin < t <= begin + timedelta(days=days))


@pytest.mark.parametrize("seed", range(12))
def test_cron_follows_local_time(sql, seed):
    rng = random.Random(seed)
    zone = rng.choice(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca", "Asia/Tehran"])
    begin = datetime(2026, *rng.choice([(3, 6), (3, 27), (4, 2), (9, 4), (10, 2), (10, 23), (10, 30), (2, 12), (3, 20)]), tzinfo=timezone.utc)
    model = Model(rng)
    want = model.runs(ZoneInfo(zone), begin, 6)
    got, at = [], begin
    while True:
        (at,), = sql("select queen.cron_next(%s, %s, %s)", model.text(), zone, at)
        if at is None or at > begin + timedelta(days=6):
            break
        got.append(at.astimezone(timezone.utc))
    assert got == want, "%s in %s from %s" % (model.text(), zone, begin)
