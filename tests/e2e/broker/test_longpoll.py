"""Long polling: http-api 4.6, engine.md."""
import socket
import struct
import time

import pytest

from harness import BROKERS, TIME_FACTOR, Background, in_parallel, let_arrive, patience, unit_of_time, wait_until

# A wake-up inside one process; what another process has pushed is found in the change feed, at 100 ms and more.  The
# fallback would take up to five seconds.
WAKE = 0.25 if BROKERS == 1 else 1.0  # seconds, on an idle machine


def parked(broker, queue=None, partition=None, timeout=8000, settle=None, **params):
    """A waiting pop in the background, given time to arrive and to find nothing."""
    call = Background(lambda: broker.take(queue, partition, wait=True, timeout=timeout, **params))
    if settle is None:
        let_arrive(0.4)
    else:
        time.sleep(settle)
    assert not call.done, "a waiting pop answered before anything happened"
    return call


def woken(call, since, bound=WAKE):
    messages = call.result(20)
    assert messages, "the waiting pop ended empty"
    assert call.ended - since < patience(bound), "woken %.0f ms late" % ((call.ended - since) * 1000)
    return messages


@pytest.mark.parametrize("form", ["wildcard", "partition", "namespace", "seed"])
def test_a_push_wakes_a_parked_pop_at_once(broker, queue, form):
    broker.configure(queue, namespace="ns-" + queue)
    target = {"wildcard": (queue, None), "partition": (queue, "p")}.get(form, (None, None))
    params = {"namespace": {"namespace": "ns-" + queue}, "seed": {"queue": queue}}.get(form, {})
    if form == "seed":
        call = Background(lambda: broker.get("/api/v1/pop?queue=%s&wait=true&timeout=8000" % queue).expect(200).json["messages"])
        time.sleep(0.4)
    else:
        call = parked(broker, *target, **params)
    broker.put(queue, ["now"], partition="p")
    (message,) = woken(call, time.monotonic())
    assert message["data"] == "now"


def test_wake_up_stays_fast_after_a_long_wait_and_on_every_connection(broker, queue):
    late = []
    for i in range(8):
        call = parked(broker, queue, settle=1.0 if i == 0 else 0.15, autoAck=True)
        begin = time.monotonic()
        broker.put(queue, [i])
        call.result()
        late.append(call.ended - begin)
    assert sorted(late)[len(late) // 2] < patience(0.1), late


def test_a_pop_parked_on_an_unknown_queue_is_woken_by_its_first_message(broker, queue):
    call = parked(broker, queue)
    broker.put(queue, [1], partition="brand-new")
    assert woken(call, time.monotonic())[0]["data"] == 1


def test_a_pop_parked_on_an_unknown_partition_is_woken_by_its_first_message(broker, queue):
    broker.put(queue, [0], partition="other")
    call = parked(broker, queue, "p")
    broker.put(queue, [1], partition="p")
    assert woken(call, time.monotonic())[0]["data"] == 1


def test_a_namespace_pop_is_woken_by_a_queue_that_did_not_exist(broker, queue):
    call = parked(broker, namespace=queue)
    broker.put(queue + ".fresh", [1])
    # an unknown queue may need one round of polling
    assert woken(call, time.monotonic(), 6)[0]["queue"] == queue + ".fresh"


def test_a_transaction_wakes_a_parked_pop(broker, queue):
    call = parked(broker, queue)
    assert broker.transaction([{"type": "push", "items": [{"queue": queue, "payload": 7}]}])["success"] is True
    assert woken(call, time.monotonic())[0]["data"] == 7


def test_an_answer_that_is_already_there_does_not_wait(broker, queue):
    broker.put(queue, [1])
    begin = time.monotonic()
    assert len(broker.take(queue, wait=True, timeout=30000)) == 1
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize("timeout", [1, 150, 700])
def test_the_timeout_is_kept(broker, queue, timeout):
    overrun = []
    for _ in range(3):
        begin = time.monotonic()
        assert broker.take(queue, wait=True, timeout=timeout) == []
        overrun.append(time.monotonic() - begin - timeout / 1000)
    assert min(overrun) > -0.005, "answered before the timeout"
    assert min(overrun) < patience(0.1) and max(overrun) < patience(0.5), overrun


def test_a_timeout_without_sense_is_the_default_and_does_not_end_at_once(broker, queue):
    call = Background(lambda: broker.take(queue, wait=True, timeout="abc", http_timeout=20))
    time.sleep(0.5)
    assert not call.done
    broker.put(queue, [1])
    assert len(call.result()) == 1


def test_of_fifty_waiters_one_gets_the_message(broker, queue):
    def wait():
        begin = time.monotonic()
        return broker.take(queue, wait=True, timeout=1500), time.monotonic() - begin
    calls = [Background(wait) for _ in range(50)]
    time.sleep(0.6)
    broker.put(queue, ["one"])
    results = [c.result() for c in calls]
    winners = [r for r in results if r[0]]
    assert len(winners) == 1 and len(winners[0][0]) == 1
    assert winners[0][1] < patience(1.2)
    losers = [seconds for messages, seconds in results if not messages]
    assert min(losers) > 1.49, "an empty answer before the timeout makes consumers spin"
    assert max(losers) < 1.5 + patience(0.5)


def test_fifty_waiters_share_fifty_partitions(broker, queue):
    calls = [Background(lambda: broker.take(queue, wait=True, timeout=8000)) for _ in range(50)]
    time.sleep(0.5)
    broker.push([{"queue": queue, "partition": "p%d" % i, "payload": i} for i in range(50)]).expect(201)
    begin = time.monotonic()
    got = [m["data"] for c in calls for m in c.result()]
    assert sorted(got) == list(range(50))
    assert max(c.ended for c in calls) - begin < patience(2)


def test_two_first_pops_of_a_partition_and_its_first_push_at_once(broker, queue):
    """The number of the partition comes from the discovery of a pop or from the push, whichever is first.  Every waiting request is answered."""
    def race(name, pause):
        broker.configure(name, leaseTime=60)
        pops = [Background(lambda: broker.take(name, "Default", wait=True, timeout=700, http_timeout=6)) for _ in range(2)]
        time.sleep(pause)
        broker.put(name, [1], "Default")
        return sorted(len(p.result()) for p in pops)
    for turn in range(6):
        got = in_parallel([lambda n=n: race("%s-%d-%d" % (queue, turn, n), n * 0.0003) for n in range(40)])
        assert got == [[0, 1]] * 40


def test_waiters_on_other_queues_and_groups_are_not_woken(broker, queue, group):
    other = parked(broker, queue + "-other", timeout=1500, settle=0)
    mine = parked(broker, queue, consumerGroup=group)
    broker.put(queue, [1])
    assert woken(mine, time.monotonic())[0]["consumerGroup"] == group
    assert other.result() == [] and other.seconds > 1.45


# --- what else ends a wait -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("acker", ["same broker", "other broker"])
@pytest.mark.parametrize("status", ["completed", "failed", "retry", "dlq"])
def test_an_acknowledgement_that_frees_the_partition_wakes_a_parked_pop(broker, broker2, queue, status, acker):
    broker.put(queue, ["first", "second"], partition="p")
    (held,) = broker.take(queue, "p")
    call = parked(broker, queue)
    result = (broker if acker == "same broker" else broker2).ack(held, status)
    assert result["success"] is True
    (message,) = woken(call, time.monotonic(), WAKE if acker == "same broker" else 6)
    assert message["data"] == ("first" if status in ("failed", "retry") else "second")


def test_a_transaction_that_frees_the_partition_wakes_a_parked_pop(broker, queue):
    broker.put(queue, [1, 2], partition="p")
    (held,) = broker.take(queue, "p")
    call = parked(broker, queue)
    assert broker.transaction([{"type": "ack", "transactionId": held["transactionId"], "partitionId": held["partitionId"]}],
                              [held["leaseId"]])["success"] is True
    assert woken(call, time.monotonic())[0]["data"] == 2


@pytest.mark.parametrize("form", [None, "p"])
def test_the_end_of_a_lease_wakes_a_parked_pop(broker, queue, form):
    unit = unit_of_time()
    broker.configure(queue, leaseTime=unit)
    broker.put(queue, [1], partition="p")
    begin = time.monotonic()
    assert len(broker.take(queue, "p")) == 1
    call = parked(broker, queue, form, settle=0.2 * unit)
    assert call.result()[0]["data"] == 1
    assert unit - 0.05 < call.ended - begin < unit + patience(0.6)


@pytest.mark.parametrize("form", [None, "p"])
def test_the_end_of_a_delay_wakes_a_parked_pop(broker, queue, form):
    unit = unit_of_time()
    broker.configure(queue, delayedProcessing=unit)
    call = parked(broker, queue, form, settle=0.2)
    begin = time.monotonic()
    broker.put(queue, [1], partition="p")
    assert call.result()[0]["data"] == 1
    assert unit - 0.1 < call.ended - begin < unit + patience(0.6)


@pytest.mark.parametrize("form", [None, "p"])
def test_the_end_of_a_window_wakes_a_parked_pop_with_all_of_it(broker, queue, form):
    unit = unit_of_time()
    broker.configure(queue, windowBuffer=unit)
    call = parked(broker, queue, form, settle=0.2, batch=10)
    broker.put(queue, [1], partition="p")
    time.sleep(0.5 * unit)
    last = time.monotonic()
    broker.put(queue, [2], partition="p")
    assert [m["data"] for m in call.result()] == [1, 2]
    assert unit - 0.1 < call.ended - last < unit + patience(0.6)


def test_the_end_of_a_retry_delay_wakes_a_parked_pop(broker, queue):
    broker.configure(queue, retryDelay=800)
    broker.put(queue, [1])
    (held,) = broker.take(queue)
    call = parked(broker, queue, settle=0.2)
    begin = time.monotonic()
    broker.ack(held, "failed")
    assert call.result()[0]["data"] == 1
    assert 0.75 < call.ended - begin < 0.8 + patience(0.6)


def test_a_push_through_another_broker_is_found_by_the_fallback(broker, broker2, queue):
    call = parked(broker, queue, timeout=12000)
    broker2.put(queue, ["from afar"])
    assert woken(call, time.monotonic(), 6)[0]["data"] == "from afar"


def test_a_short_ceiling_of_the_fallback_is_honoured(make_broker, broker, queue):
    b = make_broker(SIDECAR_POP_WAIT_MAX_MS=200)
    call = parked(b, queue, settle=1.5)
    broker.put(queue, ["from afar"])
    assert woken(call, time.monotonic(), 1.0)[0]["data"] == "from afar"


def test_idle_waiters_share_their_probes(broker, queue, sql):
    """Parked consumers cost no PostgreSQL work: two hundred of them may not poll two hundred times."""
    request = "GET /api/v1/pop/queue/%s?wait=true&timeout=30000 HTTP/1.1\r\nHost: x\r\n\r\n" % queue
    sockets = [socket.create_connection((broker.host, broker.port), timeout=5) for _ in range(200)]
    for s in sockets:
        s.sendall(request.encode())
    time.sleep(1.2)
    count = "select xact_commit from pg_stat_database where datname = current_database()"
    before = sql(count)[0][0]
    time.sleep(2.5)
    done = sql(count)[0][0] - before
    for s in sockets:
        s.close()
    assert done < 200, "%d transactions in 2.5 s for 200 idle waiters" % done


# --- disconnects -----------------------------------------------------------------------------------------------------

def hang_up(broker, path, after, reset=False):
    s = socket.create_connection((broker.host, broker.port), timeout=5)
    if after == 0:  # the request and the end of the connection arrive together, however slow this process is
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    s.sendall(("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path).encode())
    time.sleep(after)
    if reset:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_client_that_hung_up_while_parked_claims_nothing(broker, queue, reset):
    for _ in range(5):
        hang_up(broker, "/api/v1/pop/queue/%s?wait=true&timeout=20000" % queue, 0.1, reset)
    time.sleep(0.2)
    broker.put(queue, ["still here"])
    assert [m["data"] for m in broker.take(queue, wait=True, timeout=1000)] == ["still here"]


def test_a_waiting_pop_gets_the_messages_of_one_that_hung_up(broker, queue):
    hang_up(broker, "/api/v1/pop/queue/%s?wait=true&timeout=20000" % queue, 0.2)
    call = parked(broker, queue, settle=0.3)
    broker.put(queue, ["mine"])
    assert woken(call, time.monotonic())[0]["data"] == "mine"


def test_leases_of_a_client_that_hung_up_at_once_are_given_back(broker, queue):
    """Requests whose sender closes without reading: what was leased for them must come back long before the lease ends."""
    n = 12
    for p in range(n):
        broker.put(queue, [p], partition="p%d" % p)
    for _ in range(n):
        hang_up(broker, "/api/v1/pop/queue/%s" % queue, 0)
    seen = []

    def collect():
        seen.extend(m["data"] for m in broker.take(queue, batch=100, partitions=100))
        return len(seen) >= n
    wait_until(collect, 4 * TIME_FACTOR, "all %d leases given back" % n, 0.05)
    assert sorted(seen) == list(range(n))


def test_many_connections_may_park_and_leave(broker, queue):
    sockets = []
    for i in range(200):
        s = socket.create_connection((broker.host, broker.port), timeout=5)
        s.sendall(("GET /api/v1/pop/queue/%s?wait=true&timeout=30000 HTTP/1.1\r\nHost: x\r\n\r\n" % queue).encode())
        sockets.append(s)
    time.sleep(0.3)
    for s in sockets:
        s.close()
    time.sleep(0.3)
    in_parallel([lambda i=i: broker.put(queue, [i], partition="p%d" % i) for i in range(8)])
    assert len(broker.drain(queue)) == 8
