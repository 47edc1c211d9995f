"""Databases that were restored from a backup, or failed over to a standby that lags: platform/docs/operations.md."""
import time
import uuid

import pytest

import harness
from harness import wait_until
from rig_events import Platform, tenant_cursor

SOON = 20 * harness.TIME_FACTOR


@pytest.fixture(scope="module")
def platform(pg, broker):
    """One partition, and a group of its own."""
    p = Platform(pg, broker.url, PLATFORM_QUEUE="restores-" + uuid.uuid4().hex[:8], PLATFORM_PARTITIONS=1, database="platform_restores")
    p.start()
    p.add_tenant("zeta")
    yield p
    assert p.terminate() == 0, p.log_tail()


@pytest.fixture
def zeta(pg):
    cursor = tenant_cursor(pg, "zeta")
    yield cursor
    cursor.connection.close()


def visit(**more):
    return {"id": str(uuid.uuid4()), "type": "visit.recorded", "at": "2026-11-16T04:05:06Z",
            "data": {"customer_id": str(uuid.uuid4()), "id": str(uuid.uuid4()), **more}}


def ids(cursor):
    cursor.execute("select id from crm.visit_log")
    return {str(r[0]) for r in cursor.fetchall()}


def seek(platform, broker, timestamp):
    broker.post("/api/v1/consumer-groups/%s/queues/%s/seek" % (platform.env.get("PLATFORM_GROUP", "platform"), platform.env["PLATFORM_QUEUE"]),
                {"timestamp": timestamp}).expect(200)


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 1))


def test_a_seek_applies_events_again_that_the_tenant_lost(platform, broker, zeta):
    """The processor knew the events of the last five minutes, and acknowledged them without a look at the tenant."""
    began, events = now(), [visit() for _ in range(7)]
    for e in events:
        platform.send("zeta", e)
    want = {e["data"]["id"] for e in events}
    wait_until(lambda: ids(zeta) >= want, SOON, "they are applied")
    zeta.execute("truncate crm.visit_log, crm.applied_event")  # as a standby that lags
    seek(platform, broker, began)
    wait_until(lambda: ids(zeta) >= want, SOON, "they are applied again")
    zeta.execute("select count(*) from crm.visit_log")
    assert zeta.fetchone()[0] == 7


@pytest.fixture
def cut_off(pg, platform):
    """cut_off(): the tenant takes no connections until cut_off.mend()."""
    admin = pg.connect().cursor()

    def make():
        admin.execute("alter database tenant_zeta allow_connections false")
        admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'tenant_zeta'")
    make.mend = lambda: admin.execute("alter database tenant_zeta allow_connections true")
    yield make
    make.mend()
    admin.connection.close()


def hold(platform, pg, cut_off):
    """An event that waits in a lane, and a connection to the control database."""
    first = visit()
    cut_off()
    platform.send("zeta", first)
    wait_until(lambda: "zeta" in platform.held(), SOON, "it is held")
    return first, pg.connect(database="platform_restores").cursor()


def test_an_owner_goes_on_after_the_control_database_was_restored(platform, pg, cut_off):
    """It said "has another owner by now" for ever."""
    first, control = hold(platform, pg, cut_off)
    control.execute("update platform.held_partition set epoch = 0; delete from platform.held_lane")  # as an older dump has it
    second = visit()
    platform.send("zeta", second)
    wait_until(lambda: "zeta" in platform.held(), SOON, "the lane is noted again")
    cut_off.mend()
    cursor = tenant_cursor(pg, "zeta")
    wait_until(lambda: ids(cursor) >= {first["data"]["id"], second["data"]["id"]}, SOON, "both are applied")
    wait_until(lambda: not platform.held(), SOON, "no lane is left")
    cursor.connection.close()
    control.connection.close()


def test_held_events_are_found_at_the_broker(platform, pg, cut_off):
    """The control database has lost the lane: newer events would overtake those that wait in it."""
    first, control = hold(platform, pg, cut_off)
    assert platform.terminate() == 0
    control.execute("delete from platform.held_lane; delete from platform.held_partition")
    cut_off.mend()
    platform.start()
    cursor = tenant_cursor(pg, "zeta")
    wait_until(lambda: first["data"]["id"] in ids(cursor), SOON, "it is applied")
    assert "held.found" in platform.log_text()
    cursor.connection.close()
    control.connection.close()


def test_a_partition_begins_after_the_broker_was_restored_to_lower_epochs(platform, pg, zeta):
    control = pg.connect(database="platform_restores").cursor()
    assert platform.terminate() == 0
    control.execute("update platform.held_partition set epoch = 1000000")
    platform.start()
    event = visit()
    platform.send("zeta", event)
    wait_until(lambda: event["data"]["id"] in ids(zeta), SOON, "it is applied")
    assert "held.epoch_reset" in platform.log_text()
    control.execute("select epoch from platform.held_partition")
    assert control.fetchone()[0] < 1000000
    control.connection.close()
