"""The database goes back in time under a running broker: a lagging standby was promoted, or a copy was restored.

Commits after the copy are lost; that is the operator's choice. Everything that the broker accepts afterwards must be
delivered. The broker's memory (lane and consumer numbers, sequence hints, feed position) describes the lost server.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import uuid

import pytest

import harness
import sqlcore
from harness import START_TIMEOUT, TIME_FACTOR, Background, patience, wait_until

pytestmark = pytest.mark.one_broker
GROUP = "g"


class Site:
    """A PostgreSQL whose data directory can be copied and put back, with a broker that runs all the time."""

    def __init__(self):
        self.pg = harness.Postgres().start()
        self.kept = os.path.join(self.pg.root, "kept")
        self.broker = harness.begin({**self.pg.env(), "SIDECAR_POOL_SIZE": "4", "NUM_WORKERS": "2"})

    def shut_down(self):
        # A clean shutdown: after a crash, sequences would skip the numbers that this test wants to see used twice.
        self.pg.process.send_signal(signal.SIGINT)
        self.pg.process.wait(30)

    def keep(self):
        """Copies the data directory as it is now."""
        self.shut_down()
        shutil.rmtree(self.kept, ignore_errors=True)
        subprocess.run(["cp", "-a", self.pg.data, self.kept], check=True)
        self.launch()

    def put_back(self):
        """The copy takes the place of the data directory."""
        self.shut_down()
        shutil.rmtree(self.pg.data)
        subprocess.run(["cp", "-a", self.kept, self.pg.data], check=True)

    def launch(self):
        self.pg.launch()
        self.wait_connected()

    def wait_connected(self):
        """Both workers have a connection to the server that runs now, and nothing is left in the file buffer."""
        wait_until(lambda: self.sql("select count(*) >= 2 from pg_stat_activity where application_name = 'queen'")[0][0],
                   START_TIMEOUT, "the broker is connected again")
        wait_until(lambda: self.broker.is_ready() and self.broker.get("/api/v1/status/buffers").json["pending"] == 0,
                   START_TIMEOUT, "the broker is ready again")

    def sql(self, text, *args):
        conn = self.pg.connect()
        try:
            with conn.cursor() as cur:
                cur.execute(text, args or None)
                return cur.fetchall() if cur.description else []
        finally:
            conn.close()

    def close(self):
        harness.end(self.broker, clean_exit=True)
        self.pg.stop()


def drain(site, queue, partition=None, group=GROUP):
    """Takes and acknowledges everything; the payloads."""
    got = []
    while True:
        messages = site.broker.take(queue, partition, consumerGroup=group, batch=100)
        if not messages:
            return got
        got += [m["data"] for m in messages]
        acknowledge(site, messages, group)


def acknowledge(site, messages, group=GROUP):
    """Answered with 503 by a worker that has not noticed yet that the server runs again."""
    body = {"consumerGroup": group, "acknowledgments": [site.broker.ack_entry(m) for m in messages]}
    answer = wait_until(lambda: (lambda r: r if r.status != 503 else None)(site.broker.post("/api/v1/ack/batch", body)), START_TIMEOUT, "it is accepted")
    results = answer.expect(200).json
    assert [r["success"] for r in results] == [True] * len(messages), results


def sql_push(site, queue, partition, payload):
    site.sql("select queen.push_messages_v2(%s::jsonb)", json.dumps([{"queue": queue, "partition": partition, "payload": payload}]))


def lanes(site, queue):
    """Partition -> number."""
    return dict(site.sql("select l.name, l.num from queen.lanes l join queen.queues q on q.id = l.queue_id where q.name = %s", queue))


# Each scenario stops three times: when the copy is made; when the server is stopped, what happened since is lost and the copy
# takes its place; and when the copy runs but the broker may not have noticed.  One server goes back once for all of them.

def pushes(site, queue):
    site.broker.put(queue, ["a", "b"], partition="p")
    assert drain(site, queue) == ["a", "b"]
    yield
    for n in range(5):
        site.broker.put(queue, ["lost %d" % n], partition="p")
    assert len(drain(site, queue)) == 5
    yield
    yield
    site.broker.put(queue, ["c"], partition="p")
    site.broker.put(queue, ["d"], partition="p")
    assert drain(site, queue) == ["c", "d"]


def waiting_pops(site, queue):
    site.broker.put(queue, ["a"], partition="p")
    assert drain(site, queue) == drain(site, queue, "p", "h") == ["a"]
    yield
    for n in range(5):
        site.broker.put(queue, ["lost"], partition="p")
        assert drain(site, queue) == drain(site, queue, "p", "h") == ["lost"]
    waiting = [Background(lambda: site.broker.take(queue, None, consumerGroup=GROUP, wait=True, timeout=60000, http_timeout=70)),
               Background(lambda: site.broker.take(queue, "p", consumerGroup="h", wait=True, timeout=60000, http_timeout=70))]
    yield
    yield
    sql_push(site, queue, "p", "by SQL")
    for pop in waiting:
        assert [m["data"] for m in pop.result(patience(30))] == ["by SQL"]


def waiting_pop_by_namespace(site, queue):
    site.broker.configure(queue, namespace=queue)
    site.broker.put(queue, ["a"], partition="p")
    assert drain(site, queue) == ["a"]
    yield
    site.broker.put(queue, ["lost"], partition="p")
    assert drain(site, queue) == ["lost"]
    waiting = Background(lambda: site.broker.take(namespace=queue, consumerGroup=GROUP, wait=True, timeout=60000, http_timeout=70))
    yield
    yield
    site.broker.put(queue, ["b"], partition="p")
    assert [m["data"] for m in waiting.result(patience(30))] == ["b"]


def lost_acknowledgements(site, queue):
    """Messages that only the lost server had as acknowledged are delivered again; earlier ones are not."""
    site.broker.put(queue, [1, 2, 3, 4, 5, 6], partition="p")
    acknowledge(site, site.broker.take(queue, consumerGroup=GROUP, batch=2))
    yield
    lost = site.broker.take(queue, consumerGroup=GROUP, batch=2)
    assert [m["data"] for m in lost] == [3, 4]
    acknowledge(site, lost)
    held = site.broker.take(queue, consumerGroup=GROUP, batch=1)
    assert [m["data"] for m in held] == [5]
    waiting = Background(lambda: site.broker.take(queue, consumerGroup=GROUP, wait=True, timeout=60000, http_timeout=70))
    yield
    yield
    # The server has lost the lease: the acknowledgement fails and changes nothing.
    assert site.broker.ack(held[0], consumerGroup=GROUP)["success"] is False
    again = waiting.result(30 * TIME_FACTOR)
    assert again[0]["data"] == 3, "the pop that waited gets them without a push"
    acknowledge(site, again)
    assert [m["data"] for m in again] + drain(site, queue) == [3, 4, 5, 6]


def partition_numbers(site, queue):
    """Numbers of partitions are given out again, to others."""
    site.broker.put(queue, ["a"], partition="old")
    yield
    for name in ("one", "two", "three"):
        site.broker.put(queue, ["lost"], partition=name)
        assert drain(site, queue, name) == ["lost"]
    lost = lanes(site, queue)
    yield
    for n in range(20):
        sql_push(site, queue, "other-%d" % n, n)
    assert {lost[name] for name in ("one", "two", "three")} <= set(lanes(site, queue).values()), "no number was given out again"
    yield
    site.broker.put(queue, ["in one"], partition="one")
    done = site.broker.transaction([{"type": "push", "items": [{"queue": queue, "partition": "two", "payload": "in two"}]}])
    assert done["success"] is True, done
    site.broker.push([{"queue": queue, "partition": "three", "payload": "in three", "delaySeconds": 0.001}]).expect(201)
    assert drain(site, queue, "one") == ["in one"]
    assert drain(site, queue, "two") == ["in two"]
    wait_until(lambda: drain(site, queue, "three") == ["in three"], 20 * TIME_FACTOR, "the scheduled message")
    for n in range(20):
        assert drain(site, queue, "other-%d" % n) == [n]


def consumer_numbers(site, queue):
    """A pop of one queue must not get messages of another, not even of the one that has its consumer's number now."""
    mine, other = queue + "-mine", queue + "-other"
    site.broker.put(mine, ["a"], partition="p")
    site.broker.put(other, ["secret"], partition="p")
    yield
    assert drain(site, mine) == ["a"]
    number = "select c.num from queen.consumers c join queen.lanes l on l.num = c.lane join queen.queues q on q.id = l.queue_id where q.name = %s"
    lost = set(site.sql(number, mine))
    yield
    site.sql("select queen.ensure_consumers(array_agg(l.num), array_agg('h' || n)) from queen.lanes l join queen.queues q on q.id = l.queue_id,"
             " generate_series(1, 40) n where q.name = %s", other)
    assert lost <= set(site.sql(number, other)), "no number was given out again"
    yield
    assert drain(site, mine) == ["a"]
    for n in range(1, 41):
        assert drain(site, other, group="h%d" % n) == ["secret"]


def scheduled(site, queue):
    """The broker remembers that nothing before now waits; but on the server that went back it does."""
    site.broker.put(queue, ["a"], partition="p")
    assert drain(site, queue) == ["a"]
    site.broker.push([{"queue": queue, "partition": "p", "payload": "later", "delaySeconds": 3}]).expect(201)
    yield
    wait_until(lambda: drain(site, queue) == ["later"], 30 * TIME_FACTOR, "delivered on the lost server")
    time.sleep(2.5)
    yield
    yield
    wait_until(lambda: drain(site, queue) == ["later"], 20 * TIME_FACTOR, "delivered by the server that went back")


def new_queue(site, queue):
    yield
    site.broker.configure(queue, leaseTime=30)
    site.broker.put(queue, ["lost"], partition="p")
    drain(site, queue)
    waiting = Background(lambda: site.broker.take(queue, consumerGroup=GROUP, wait=True, timeout=60000, http_timeout=70))
    yield
    yield
    site.broker.put(queue, ["again"], partition="p")
    assert [m["data"] for m in waiting.result(patience(30))] == ["again"]


def work_queue(site, queue):
    """Leases of a work queue that the server has lost are void, and those that it has are valid. No job is lost or forgotten."""
    site.broker.configure(queue, ordering="none", leaseTime=300)
    site.broker.put(queue, [1, 2, 3, 4, 5, 6], partition="p")
    kept, done = (site.broker.take(queue, consumerGroup=GROUP)[0] for _ in range(2))
    acknowledge(site, [done])
    yield
    acknowledge(site, [kept])  # lost
    lost = site.broker.take(queue, consumerGroup=GROUP, batch=4)
    assert [m["data"] for m in lost] == [3, 4, 5, 6]
    acknowledge(site, lost[1:2])
    waiting = Background(lambda: site.broker.take(queue, consumerGroup=GROUP, wait=True, timeout=60000, http_timeout=70))
    yield
    yield
    again = waiting.result(30 * TIME_FACTOR)
    assert [m["data"] for m in again] == [3], "the pop that waited gets it without a push"
    assert site.broker.ack(lost[0], consumerGroup=GROUP)["success"] is False
    assert site.broker.ack(kept, consumerGroup=GROUP)["success"] is True
    acknowledge(site, again)
    assert drain(site, queue) == [4, 5, 6]


SCENARIOS = [work_queue, pushes, waiting_pops, waiting_pop_by_namespace, lost_acknowledgements, partition_numbers, consumer_numbers, scheduled, new_queue]


@pytest.fixture(scope="module")
def went_back():
    """Scenario -> what is left of it, after the server went back."""
    site = Site()
    try:
        left = {s: s(site, "%s-%s" % (s.__name__, uuid.uuid4().hex[:8])) for s in SCENARIOS}
        for scenario in left.values():
            next(scenario)
        site.keep()
        for scenario in left.values():
            next(scenario)
        site.put_back()
        site.pg.launch()
        for scenario in left.values():
            next(scenario)
        site.wait_connected()
        yield left
    finally:
        site.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.__name__)
def test_after_the_database_went_back(went_back, scenario):
    with pytest.raises(StopIteration):
        next(went_back[scenario])


def test_every_call_that_takes_numbers_is_bound_to_its_server():
    """A call that names rows by number must not reach another server than the one that gave out the number (forget.c)."""
    harmless = {"finish": "a consumer's lease must fit, too", "owns_partition": "an epoch",
                "record_metrics": "figures", "rotate": "bytes", "sweep": "where the last step ended",
                "forget_consumers": "where the last step ended", "create_key": "a time",
                "record_audit": "how often", "read_stored": "where the last step ended"}
    with open(os.path.join(harness.REPO, "broker", "src", "broker", "forget.c")) as f:
        bound = set(re.findall(r"&pg_stmt_([a-z_0-9]+)", f.read()))
    takes_numbers = {name for name, text in sqlcore.statements().items() if re.search(r"\$[0-9]+::(bigint|int8)\b", text)}
    assert takes_numbers - bound <= set(harmless)
