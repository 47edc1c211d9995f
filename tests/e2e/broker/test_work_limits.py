"""maxInFlight and rateLimit of work queues over HTTP: see test_sql_work_limits.py for generated histories."""
import threading
import time

import pytest

from cli import Cli
from harness import Background, patience


def data(messages):
    return [m["data"] for m in messages]


@pytest.mark.parametrize("options, sentence", [
    ({"maxInFlight": 3}, "maxInFlight needs ordering"), ({"rateLimit": 1}, "rateLimit needs ordering"),
    ({"rateBurst": 1}, "rateBurst needs ordering"), ({"ordering": "none", "rateBurst": 1}, "rateBurst needs rateLimit"),
    ({"ordering": "none", "rateLimit": -1}, "rateLimit must be"), ({"ordering": "none", "rateLimit": 0.0001}, "rateLimit must be"),
    ({"ordering": "none", "rateLimit": 1000001}, "rateLimit must be"), ({"ordering": "none", "rateLimit": "fast"}, "rateLimit must be"),
    ({"ordering": "none", "rateLimit": [1]}, "rateLimit must be"), ({"ordering": "none", "rateLimit": 1e400}, ""),
    ({"ordering": "none", "maxInFlight": -1}, "maxInFlight must be"), ({"ordering": "none", "maxInFlight": 1.5}, "maxInFlight must be")])
def test_a_wrong_limit_is_refused(broker, queue, options, sentence):
    r = broker.post("/api/v1/configure", {"queue": queue, "options": options}).expect(400)
    assert sentence in r.json["error"], r.json


def test_configure_reports_the_limits(broker, queue):
    assert not {"maxInFlight", "rateLimit", "rateBurst"} & set(broker.configure(queue, ordering="none", maxInFlight=0, rateLimit=0)["options"])
    broker.configure(queue, maxInFlight=0, rateLimit=0, rateBurst=None)  # no limits: also on an ordered queue
    shown = broker.configure(queue, ordering="none", maxInFlight="7", rateLimit="2.5")["options"]
    assert (shown["maxInFlight"], shown["rateLimit"], shown["rateBurst"]) == (7, 2.5, 3)
    options = broker.get("/api/v1/status/queues/" + queue).expect(200).json["queue"]["options"]
    assert (options["maxInFlight"], options["rateLimit"], options["rateBurst"]) == (7, 2.5, 3)
    assert broker.configure(queue, **options)["options"]["rateBurst"] == 3


def test_a_settled_message_lets_a_waiting_consumer_go_on(broker, queue):
    broker.configure(queue, ordering="none", maxInFlight=2)
    broker.put(queue, [1, 2, 3])
    one, two = broker.take(queue, batch=5)
    assert broker.take(queue, batch=5) == []
    call = Background(lambda: broker.take(queue, wait=True, timeout=25000))
    time.sleep(1.3)
    assert not call.done
    assert broker.ack(two)["success"]
    assert data(call.result(30)) == [3]
    assert broker.ack(one)["success"]


def test_two_brokers_share_the_limits(broker, broker2, queue):
    broker.configure(queue, ordering="none", maxInFlight=2)
    broker.put(queue, [1, 2, 3], partition="a")
    broker.put(queue, [4, 5, 6], partition="b")
    one, two = broker.take(queue, "a", batch=5)
    assert broker2.take(queue, "b", batch=5) == []
    call = Background(lambda: broker2.take(queue, "b", wait=True, timeout=25000))
    time.sleep(0.5)
    assert not call.done
    assert broker.ack(one)["success"]
    assert data(call.result(30)) == [4]
    assert broker.take(queue, batch=5) == []


@pytest.mark.parametrize("options", [{"maxInFlight": 3}, {"rateLimit": 60, "rateBurst": 4}, {"maxInFlight": 2, "rateLimit": 80}])
def test_many_consumers_stay_below_the_limits(broker, broker2, queue, options):
    broker.configure(queue, ordering="none", **options)
    for p in "ab":
        broker.put(queue, list(range(30)), partition=p)
    lock, seen, held, most, times = threading.Lock(), [], 0, 0, []
    deadline = time.monotonic() + patience(60)

    def consume(at):
        nonlocal held, most
        while time.monotonic() < deadline and len(seen) < 60:
            got = at.take(queue, batch=2, wait=True, timeout=500)
            with lock:
                held += len(got)
                most = max(most, held)
                times.extend([time.monotonic()] * len(got))
            time.sleep(0.01)
            for m in got:
                with lock:
                    held -= 1  # before the acknowledgement: the next one may be delivered before its answer arrives
                assert at.ack(m)["success"]
                with lock:
                    seen.append((m["partition"], m["data"]))

    calls = [Background(lambda at=at: consume(at)) for at in (broker, broker2) * 4]
    for c in calls:
        c.result(patience(70))
    assert sorted(seen) == sorted((p, n) for p in "ab" for n in range(30))
    if "maxInFlight" in options:
        assert most <= options["maxInFlight"]
    if "rateLimit" in options:
        rate, burst = options["rateLimit"], options.get("rateBurst", options["rateLimit"])
        assert len(times) <= burst + rate * (times[-1] - times[0] + 0.25) + 1


def test_a_rate_wakes_waiting_consumers_in_time(broker, queue):
    broker.configure(queue, ordering="none", rateLimit=2, rateBurst=1)
    broker.put(queue, list(range(4)))
    begin, got = time.monotonic(), []
    while len(got) < 4 and time.monotonic() - begin < patience(20):
        got += broker.take(queue, batch=5, wait=True, timeout=5000)
    assert data(got) == [0, 1, 2, 3]
    assert time.monotonic() - begin > 1.4


def test_the_command_line_sets_limits(broker, queue, tmp_path):
    Cli(broker, tmp_path)("queue", "create", queue, "--work-queue", "maxInFlight=5", "rateLimit=0.5").expect()
    options = broker.get("/api/v1/status/queues/" + queue).expect(200).json["queue"]["options"]
    assert (options["maxInFlight"], options["rateLimit"], options["rateBurst"]) == (5, 0.5, 1)
