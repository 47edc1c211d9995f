"""Lanes of held events that must end: whatever happened to the mark of a lane or to its row in the control database."""
import uuid

import pytest

import harness
from harness import wait_until
from rig_events import Platform, tenant_cursor
from test_events_faults import count, raise_on_visits, visit

SOON = 30 * harness.TIME_FACTOR
DATABASE = "platform_lanes"


@pytest.fixture(scope="module")
def platform(pg, broker):
    """One partition."""
    p = Platform(pg, broker.url, PLATFORM_QUEUE="lanes-" + uuid.uuid4().hex[:8], PLATFORM_PARTITIONS=1, database=DATABASE)
    p.start()
    p.add_tenant("iota")
    yield p
    assert p.terminate() == 0, p.log_tail()


@pytest.fixture
def iota(pg, platform):
    cursor = tenant_cursor(pg, "iota")
    yield cursor
    cursor.execute("drop trigger if exists fault on crm.visit_log")
    cursor.connection.close()


class Lane:
    """The lane of iota at the broker, also for a consumer that disturbs its owner."""

    def __init__(self, platform, broker):
        self.queue = platform.env["PLATFORM_QUEUE"] + ".held"
        self.broker = broker
        (self.partition,) = [p["name"] for p in broker.get("/api/v1/resources/partitions?queue=" + self.queue).json["partitions"]
                             if p["name"].endswith("/iota")]

    def take(self):
        """The next message of the lane, with a lease."""
        return wait_until(self.pop, SOON, "a message of the lane is not leased")[0]

    def pop(self):
        return self.broker.take(self.queue, self.partition, batch=1, consumerGroup="platform")

    def n_messages(self):
        return len(self.broker.get("/api/v1/messages?queue=%s&limit=1000" % self.queue).json["messages"])

    def take_until_marked(self):
        """Takes the first event, so that the owner finds nothing and pushes a mark."""
        first, n = self.take(), self.n_messages()
        wait_until(lambda: self.n_messages() == n + 1, SOON, "the lane has a mark")
        return first


def hold(platform, iota):
    raise_on_visits(iota, "not now", "55006")
    platform.send("iota", visit())
    wait_until(lambda: platform.held().get("iota", {}).get("events", 0) > 0, SOON, "the event is in the lane")


def recover(platform, iota, expected):
    iota.execute("drop trigger fault on crm.visit_log")
    wait_until(lambda: count(iota) == expected, SOON, "the held events are applied")
    wait_until(lambda: not platform.held(), SOON, "no lane is left")


def test_a_lane_whose_event_behind_the_mark_fails_is_emptied(platform, broker, iota):
    """The mark was acknowledged together with the events in front of the failed one, and the owner waited for it for ever."""
    before = count(iota)
    hold(platform, iota)
    lane = Lane(platform, broker)
    first, n = lane.take_until_marked(), lane.n_messages()
    platform.send("iota", visit())
    wait_until(lambda: lane.n_messages() == n + 1, SOON, "an event is behind the mark")
    attempts = platform.held()["iota"]["attempts"]
    broker.ack(first, consumerGroup="platform")
    wait_until(lambda: platform.held()["iota"]["attempts"] > attempts, SOON, "the event behind the mark was tried")
    recover(platform, iota, before + 1)  # the first event was taken by the test


def test_a_lane_whose_mark_was_acknowledged_by_another_consumer_is_emptied(platform, broker, iota):
    """An earlier owner that has not noticed its loss may do that."""
    before = count(iota)
    for attempt in range(10):  # the owner, which pops twice a second, may receive the mark first
        hold(platform, iota)
        lane = Lane(platform, broker)
        broker.ack(lane.take_until_marked(), consumerGroup="platform")
        taken = lane.pop()
        iota.execute("drop trigger fault on crm.visit_log")
        for m in taken:
            broker.ack(m, consumerGroup="platform")
        wait_until(lambda: not platform.held(), SOON, "no lane is left")
        if taken:
            break
    assert "mark" in taken[0]["data"], taken
    assert count(iota) == before


def test_a_row_that_was_committed_although_its_recording_failed_is_deleted(platform, pg, iota):
    """The connection to the control database is lost after the commit.  The tenant is back before the lane is recorded
    again, so nothing needs the lane, but its row stayed in the list of held events."""
    before, control, admin = count(iota), pg.connect(database=DATABASE).cursor(), pg.connect().cursor()
    try:
        # A commit that waits for a standby is durable before it is confirmed.
        admin.execute("alter system set synchronous_commit = local")
        admin.execute("alter system set synchronous_standby_names = 'nobody'")
        admin.execute("select pg_reload_conf()")
        control.execute("create function platform.wait_for_standby() returns trigger language plpgsql as "
                        "$$ begin perform set_config('synchronous_commit', 'on', true); return new; end $$")
        control.execute("create trigger fault before insert on platform.held_lane for each row execute function platform.wait_for_standby()")
        raise_on_visits(iota, "not now", "55006")
        platform.send("iota", visit())

        def waiting():
            admin.execute("select pid from pg_stat_activity where datname = %s and wait_event = 'SyncRep'", (DATABASE,))
            return admin.fetchall()
        wait_until(waiting, SOON, "the row of the lane is committed")
        ((pid,),) = waiting()
        iota.execute("drop trigger fault on crm.visit_log")
        admin.execute("select pg_terminate_backend(%s)", (pid,))
        wait_until(lambda: count(iota) == before + 1, SOON, "the event is written")
        wait_until(lambda: not platform.held(), SOON, "no lane is left")
    finally:
        admin.execute("alter system reset synchronous_standby_names")
        admin.execute("alter system reset synchronous_commit")
        admin.execute("select pg_reload_conf()")
        control.execute("drop trigger if exists fault on platform.held_lane; drop function if exists platform.wait_for_standby()")
        admin.connection.close()
        control.connection.close()
