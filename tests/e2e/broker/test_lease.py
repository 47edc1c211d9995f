"""Leases: expiry, redelivery and POST /api/v1/lease/:id/extend (http-api section 7, semantics 10)."""
import re
import time
import uuid
from datetime import datetime, timezone

import pytest

from harness import unit_of_time

NAMES = ("expiresAt", "newExpiresAt", "lease_expires_at")


def leased(broker, queue, seconds=None, n=1, **params):
    if seconds is not None:
        broker.configure(queue, leaseTime=seconds)
    broker.put(queue, list(range(n)), partition="p")
    return broker.take(queue, batch=n, **params)


def parse(text):
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc).timestamp()


def test_an_extension_is_answered_with_all_three_names(broker, queue):
    (m,) = leased(broker, queue, 30)
    begin = time.time()
    answer = broker.extend(m["leaseId"], 90).expect(200).json
    assert (answer["index"], answer["leaseId"], answer["success"], answer["error"]) == (0, m["leaseId"], True, None)
    assert len({answer[n] for n in NAMES}) == 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", answer["expiresAt"])
    assert begin + 89 < parse(answer["expiresAt"]) < time.time() + 91


@pytest.mark.parametrize("body", [None, b"", b"{}", b"[]", b"null"])
def test_an_empty_body_means_sixty_seconds(broker, queue, body):
    (m,) = leased(broker, queue, 5)
    answer = broker.post("/api/v1/lease/%s/extend" % m["leaseId"], body).expect(200).json
    assert 58 < parse(answer["expiresAt"]) - time.time() < 61


@pytest.mark.parametrize("body", [b"{", b"nonsense", b'{"seconds":'])
def test_an_unparsable_body_is_refused(broker, queue, body):
    (m,) = leased(broker, queue)
    broker.post("/api/v1/lease/%s/extend" % m["leaseId"], body).expect(400)


def test_a_lease_is_never_shortened(broker, queue):
    (m,) = leased(broker, queue, 200)
    answer = broker.extend(m["leaseId"], 5).expect(200).json
    assert 190 < parse(answer["expiresAt"]) - time.time() < 201


def lost(r, lease):
    answer = r.expect(404).json
    assert answer["success"] is False and answer["leaseId"] == lease and answer["index"] == 0
    assert answer["error"] in ("Lease not found", "Lease already expired", "Lease not active")
    assert [answer[n] for n in NAMES] == [None, None, None]


@pytest.mark.parametrize("lease", [str(uuid.uuid4()), "nonsense", "with space", str(uuid.UUID(int=0))])
def test_an_unknown_lease_is_404(broker, lease):
    lost(broker.extend(lease, 10), lease)


def test_a_released_lease_is_404(broker, queue):
    (m,) = leased(broker, queue)
    broker.ack(m)
    lost(broker.extend(m["leaseId"], 10), m["leaseId"])


def test_an_expired_lease_cannot_be_revived(broker, broker2, queue):
    (m,) = leased(broker, queue, 1)
    time.sleep(1.1)
    for b in (broker, broker2):
        lost(b.extend(m["leaseId"], 10), m["leaseId"])
    assert broker.take(queue)[0]["id"] == m["id"]


@pytest.mark.parametrize("where", ["serving broker", "other broker"])
def test_an_extended_lease_outlives_its_first_end(broker, broker2, queue, where):
    (m,) = leased(broker, queue, 1)
    (broker if where == "serving broker" else broker2).extend(m["leaseId"], 30).expect(200)
    time.sleep(1.2)
    assert broker.take(queue) == [] and broker2.take(queue) == []
    assert broker.ack(m)["success"] is True


def test_one_call_extends_all_partitions_of_a_claim(broker, queue):
    broker.configure(queue, leaseTime=1)
    for p in "abc":
        broker.put(queue, [p], partition=p)
    messages = broker.take(queue, batch=10, partitions=3)
    assert len(messages) == 3
    broker.extend(messages[0]["leaseId"], 30).expect(200)
    time.sleep(1.2)
    assert broker.take(queue) == []
    assert all(r["success"] for r in broker.ack_batch(messages))


def test_an_extension_does_not_touch_other_leases(broker, queue):
    unit = unit_of_time()
    broker.configure(queue, leaseTime=unit)
    broker.put(queue, [1], partition="a")
    broker.put(queue, [2], partition="b")
    (a,), (b,) = broker.take(queue, "a"), broker.take(queue, "b")
    broker.extend(a["leaseId"], 30).expect(200)
    time.sleep(unit + 0.2)
    assert [m["data"] for m in broker.take(queue, batch=9, partitions=9)] == [2]


def test_an_expired_lease_redelivers_the_same_messages_under_a_new_one(broker, broker2, queue):
    messages = leased(broker, queue, 1, n=3)
    assert broker.take(queue) == []
    time.sleep(1.1)
    again = broker2.take(queue, batch=10)
    assert [m["id"] for m in again] == [m["id"] for m in messages]
    assert again[0]["leaseId"] != messages[0]["leaseId"]
    assert broker.take(queue) == []


def test_a_lease_of_a_group_is_extended_as_well(broker, queue, group):
    (m,) = leased(broker, queue, 1, consumerGroup=group)
    broker.extend(m["leaseId"], 30).expect(200)
    time.sleep(1.1)
    assert broker.take(queue, consumerGroup=group) == []


def test_each_pop_gets_a_lease_of_its_own(broker, queue):
    for p in range(10):
        broker.put(queue, [p], partition="p%d" % p)
    ids = [broker.take(queue)[0]["leaseId"] for _ in range(10)]
    assert len(set(ids)) == 10
