"""The dashboard of the platform in a real browser."""
import os
import sys
import uuid
from datetime import datetime, timezone

import harness
from harness import wait_until
from test_dashboard import drive

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "platform"))
from process import Platform  # noqa: E402


def event(kind, **data):
    return {"id": str(uuid.uuid4()), "type": kind, "at": datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z"), "data": data}


def test_the_pages_of_the_platform_and_a_segment_built_by_hand(pg, broker):
    platform = Platform({"PLATFORM_PG_HOST": pg.host, "PLATFORM_PG_PORT": pg.port, "PLATFORM_PG_USER": pg.user, "PLATFORM_PG_PASSWORD": "x",
                         "PLATFORM_PG_DB": "platform_web", "QUEEN_URL": broker.url})
    harness.living.append(platform)
    platform.start()
    try:
        platform.post("/api/v1/tenants", {"name": "shop"}).expect(201)
        ann = str(uuid.uuid4())
        events = [event("customer.upserted", customer_id=ann, first_name="Ann", city="Rome"),
                  event("customer.upserted", customer_id=str(uuid.uuid4()), first_name="Bob", city="Porto")]
        wait_until(lambda: platform.post("/api/v1/tenants/shop/events", events).status < 300, 60, "the events are accepted")
        everybody = {"filter": {"all": True}, "maxAgeMs": 0}
        wait_until(lambda: platform.post("/api/v1/tenants/shop/segments/count", everybody).json.get("count") == 2, 60, "the customers are stored")
        drive(platform, "platform", customer=ann)
    finally:
        harness.end(platform)
