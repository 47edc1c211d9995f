"""earlierTries of an acknowledgement: what is refused, and what is recorded."""
import pytest

TRY = {"agoMs": 1000, "error": "no", "errorCode": "E1"}


def attempts(broker, queue):
    return broker.get("/api/v1/dlq?queue=" + queue).expect(200).json["messages"][0]["attempts"]


@pytest.mark.parametrize("wrong", [
    {}, "x", 5, [5], [[]], [{}], [{"agoMs": -1}], [{"agoMs": 1.5}], [{"agoMs": "1"}], [{"agoMs": 604800001}],
    [{"agoMs": 1, "error": 5}], [{"agoMs": 1, "errorCode": {}}], [{"agoMs": 1, "eror": "x"}], [{"error": "x"}], [TRY] * 21])
def test_invalid_tries_change_nothing(broker, queue, wrong):
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    entry = {**broker.ack_entry(m, "dlq"), "earlierTries": wrong}
    r = broker.post("/api/v1/ack/batch", {"acknowledgments": [entry]}).expect(400)
    assert "earlierTries" in r.json["error"]
    assert broker.get("/api/v1/dlq?queue=" + queue).expect(200).json["messages"] == []
    assert broker.ack(m)["success"]


def test_tries_come_before_the_outcome_and_are_recorded_once(broker, queue):
    broker.put(queue, [1, 2, 3])
    first, second, third = broker.take(queue, batch=3)
    entries = [{**broker.ack_entry(first, "dlq", error="end"), "earlierTries": [{**TRY, "agoMs": 604800000}, {"agoMs": 0, "error": None}]},
               broker.ack_entry(second), {**broker.ack_entry(third), "earlierTries": [TRY]}]
    for _ in range(2):  # the answer may have been lost
        assert all(r["success"] for r in broker.ack_batch(entries)) or _ == 1
    got = attempts(broker, queue)
    assert [(a["outcome"], a.get("error"), a.get("errorCode")) for a in got] == [
        ("triedAgain", "no", "E1"), ("triedAgain", None, None), ("dlq", "end", None)]
    assert got[0]["at"] >= got[-1]["deliveredAt"], "a try is not before the delivery, whatever the client says"
    line = broker.get("/api/v1/messages/timeline?transactionId=%s&queue=%s" % (third["transactionId"], queue)).expect(200).json
    assert [e["event"] for m in line["messages"] for e in m["events"]] == ["pushed", "failed", "triedAgain"]


def test_tries_on_a_work_queue_and_of_a_scheduled_retry(broker, queue):
    broker.configure(queue, ordering="none", retryPolicy={"mode": "scheduled", "strategy": "list", "delays": [0], "maxAttempts": 2})
    broker.put(queue, [1])
    for n in (1, 2):
        (m,) = broker.take(queue, wait=True, timeout=20000)
        entry = {**broker.ack_entry(m, "failed", error="end %d" % n), "earlierTries": [{"agoMs": 0, "error": "try %d" % n}]}
        assert broker.ack_batch([entry])[0]["success"]
    assert [(a["attempt"], a["outcome"], a["error"]) for a in attempts(broker, queue)] == [
        (1, "triedAgain", "try 1"), (1, "retry", "end 1"), (2, "triedAgain", "try 2"), (2, "dlq", "end 2")]
