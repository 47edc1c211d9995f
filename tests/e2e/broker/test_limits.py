"""Limits: excessive requests are rejected at once and the broker stays healthy."""
import json
import time

from harness import Background, patience, wait_until


def test_past_the_limit_of_waiting_requests_the_answer_is_429_with_retry_after(make_broker, pg, queue):
    b = make_broker(NUM_WORKERS=1, SIDECAR_POOL_SIZE=2, QUEEN_MAX_PENDING=8)
    b.put(queue, [0], partition="p")
    conn = pg.connect(autocommit=False)
    with conn.cursor() as cur:  # the partition is locked, so pushes to it gather in the worker
        cur.execute("select queen.push_messages_v2(%s::jsonb)", (json.dumps([{"queue": queue, "partition": "p", "payload": "sql"}]),))
        calls = [Background(lambda i=i: b.push([{"queue": queue, "partition": "p", "payload": i}])) for i in range(60)]
        wait_until(lambda: any(c.done for c in calls), 1.4, "some are answered")  # after 1.5 s they would go to the file buffer
        refused = [c.result() for c in calls if c.done]
        assert refused, "nothing was refused although 60 requests wait and 8 may"
        for r in refused:
            assert r.status == 429 and int(r.headers["retry-after"]) >= 0 and isinstance(r.json["error"], str)
        assert b.get("/live").status == 200
    conn.commit()
    conn.close()
    statuses = [c.result(30).status for c in calls]
    assert set(statuses) == {201, 429}
    assert len(b.drain(queue)) == 2 + statuses.count(201), "refused means not stored"


def test_a_body_above_the_limit_is_refused_with_413(make_broker, queue):
    b = make_broker(QUEEN_MAX_BODY_BYTES=20000)
    b.put(queue, ["x" * 10000])
    try:
        r = b.push([{"queue": queue, "payload": "x" * 50000}])
        assert r.status == 413 and isinstance(r.json["error"], str)
    except OSError:
        pass  # the connection may be closed while the rest of the body is still being sent
    b.forget()
    assert len(b.drain(queue)) == 1


def test_many_idle_connections_are_held(broker, queue):
    import socket
    sockets = [socket.create_connection((broker.host, broker.port), timeout=5) for _ in range(500)]
    try:
        begin = time.monotonic()
        broker.put(queue, [1])
        assert len(broker.take(queue)) == 1
        assert time.monotonic() - begin < patience(2)
    finally:
        for s in sockets:
            s.close()


def test_a_request_of_ten_thousand_messages_is_one_push(broker, queue):
    results = broker.put(queue, list(range(10000)), partition="p")
    assert len(results) == 10000
    messages = broker.take(queue, batch=10000)
    assert [m["data"] for m in messages] == list(range(10000))
    assert broker.ack_batch(messages)[-1]["success"] is True
    assert broker.take(queue) == []


def test_a_request_for_a_thousand_partitions_is_one_push(broker, queue):
    items = [{"queue": queue, "partition": "p%d" % (i % 1000), "payload": i} for i in range(2000)]
    assert {r["status"] for r in broker.push(items).expect(201).json} == {"queued"}
    got = {}
    for m in broker.drain(queue):
        got.setdefault(m["partition"], []).append(m["data"])
    assert len(got) == 1000 and all(v == [k, k + 1000] for k, v in ((int(p[1:]), v) for p, v in got.items()))
