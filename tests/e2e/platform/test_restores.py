"""Databases that were restored from a backup, or failed over to a standby that lags: docs/platform-operations.md."""
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
