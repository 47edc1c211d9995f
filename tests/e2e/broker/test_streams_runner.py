"""Streams: runners as the client libraries have them, which die and are replaced."""
import threading
import time
from collections import defaultdict

from harness import wait_until
from streams import SEP, ack_of, cycle, delete, name, out, register, upsert, values  # noqa: F401 (fixtures)

# ---- a runner as the SDKs have it ----

class Runner:
    """Tumbling windows of 10 values of "t", summed per key; dies (without a word) after `cycles` of them."""

    def __init__(self, broker, name, source, sink, cycles=None, window=10, lose=0):
        self.broker, self.source, self.sink, self.window = broker, source, sink, window
        self.group, self.left, self.lose, self.errors = "streams." + name, cycles, lose, []
        self.query = register(broker, name, source, sink_queue=sink)["query_id"]
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.stopped.is_set():
                messages = self.broker.take(self.source, consumerGroup=self.group, batch=200, partitions=4, wait=True, timeout=300)
                groups = defaultdict(list)
                for m in messages:
                    groups[m["partitionId"]].append(m)
                for partition, batch in groups.items():
                    if self.left is not None and self.left <= 0:
                        return  # killed: the rest stays leased
                    self.handle(partition, sorted(batch, key=lambda m: m["id"]))
                    if self.left is not None:
                        self.left -= 1
        except Exception as e:  # looked at by the test
            self.errors.append(e)

    def handle(self, partition, batch):
        name = batch[0]["partition"]
        keys = {self.key(m["data"]) for m in batch}
        rows = values(self.broker, self.query, partition, keys=sorted(keys))
        newest = max([r["windowStart"] for r in values(self.broker, self.query, partition, key_prefix="tumb").values()] + [0])
        for m in batch:
            d = m["data"]
            start = d["t"] // self.window * self.window
            row = rows.setdefault(self.key(d), {"acc": {"sum": 0}, "windowStart": start, "windowEnd": start + self.window})
            row["acc"]["sum"] += d["v"]
            newest = max(newest, start)
        old = values(self.broker, self.query, partition, key_prefix="tumb", ripe_at_or_before=newest)
        ripe = {k: rows.get(k, v) for k, v in {**old, **rows}.items() if rows.get(k, v)["windowEnd"] <= newest}
        ops = [upsert(k, v) for k, v in rows.items() if k not in ripe] + [delete(k) for k in ripe]
        items = [{"queue": self.sink, "partition": name, "payload": {"w": v["windowStart"], "k": k.split(SEP)[2],
                                                                     "sum": v["acc"]["sum"]}} for k, v in sorted(ripe.items())]
        answer = cycle(self.broker, self.query, partition, consumer_group=self.group, state_ops=ops, push_items=items,
                       ack=ack_of(batch))
        assert answer["success"] or "lease" in answer["error"], answer

    def key(self, d):
        return "tumb:10" + SEP + "%06d" % (d["t"] // self.window * self.window) + SEP + d["k"]

    def stop(self):
        self.stopped.set()
        self.thread.join(20)
        assert not self.errors, self.errors[0]


def test_windows_are_exact_though_runners_die(broker, broker2, queue, out, name):
    """12 partitions, 3600 messages, runners that die in the middle of their batches, two at a time on two brokers."""
    broker.configure(queue, leaseTime=1)
    partitions, per = ["p%02d" % i for i in range(12)], 300
    expected = defaultdict(int)
    for p in partitions:
        data = [{"t": i // 3, "k": "k%d" % (i % 2), "v": i} for i in range(per)]
        for d in data:
            if d["t"] < 90:  # the last window of 10 stays open
                expected[p, d["t"] // 10 * 10, d["k"]] += d["v"]
        broker.put(queue, data[:150], partition=p)
        broker2.put(queue, data[150:], partition=p)
    for round_ in range(3):
        runners = [Runner(b, name, queue, out, cycles=3) for b in (broker, broker2)]
        for r in runners:
            r.thread.join(20)
            r.stop()
    runners = [Runner(b, name, queue, out) for b in (broker, broker2)]
    got = []

    def all_there():
        got.extend(broker.drain(out))
        return len(got) >= len(expected)
    wait_until(all_there, 20, "all windows")
    for r in runners:
        r.stop()
    got += broker.drain(out)
    results = [((m["partition"], m["data"]["w"], m["data"]["k"]), m["data"]["sum"]) for m in got]
    assert len(results) == len(expected) and dict(results) == dict(expected)


def test_a_rate_limiter_loses_nothing_and_keeps_order(broker, queue, out, name, sql):
    """A gate lets 5 of each batch pass under an unreleased lease; what is denied comes again when it has run out."""
    broker.configure(queue, leaseTime=1, retryLimit=1)
    tenants = ["t%d" % i for i in range(4)]
    for t in tenants:
        broker.put(queue, [{"tenant": t, "n": i} for i in range(12)], partition=t)
    q = register(broker, name, queue, sink_queue=out)["query_id"]
    group, passed = "streams." + name, 0
    deadline = time.monotonic() + 20
    while passed < 48 and time.monotonic() < deadline:
        groups = defaultdict(list)
        for m in broker.take(queue, consumerGroup=group, batch=200, partitions=4, wait=True, timeout=300):
            groups[m["partitionId"]].append(m)
        for partition, batch in groups.items():
            allowed = batch[:5]
            fields = {"consumer_group": group, "ack": ack_of(allowed), "release_lease": len(allowed) == len(batch),
                      "state_ops": [upsert(batch[0]["partition"], {"allowed": batch[4:5] and batch[4]["data"]["n"]})],
                      "push_items": [{"queue": out, "partition": m["partition"], "payload": m["data"]} for m in allowed]}
            assert cycle(broker, q, partition, **fields)["success"]
            passed += len(allowed)
    got = defaultdict(list)
    for m in broker.drain(out):
        got[m["partition"]].append(m["data"]["n"])
    assert got == {t: list(range(12)) for t in tenants}
    assert sql("select count(*) from queen.dead_letter_queue where consumer_group = %s", group) == [(0,)]
