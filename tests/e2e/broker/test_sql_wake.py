"""Pushes of SQL sessions wake parked pops by a notification.

The brokers poll so seldom that only a notification can be what wakes a pop before the deadline of a test.
"""
import select

import pytest

from harness import TIME_FACTOR, Background, wait_until

SELDOM = {"POP_WAIT_INITIAL_INTERVAL_MS": 3600000, "POP_WAIT_MAX_INTERVAL_MS": 3600000}
AWAITED = ("select count(*) from pg_locks where locktype = 'advisory' and classid = 737030 and granted "
           "and database = (select oid from pg_database where datname = current_database())")


class Wake:
    """A database of its own, with brokers on it."""

    def __init__(self, pg, make_broker, name, notify="on", **env):
        self.pg, self.database = pg, pg.create_database(name)
        self.make = lambda **more: make_broker(database=self.database, **{**SELDOM, **env, **more})
        self.conn = pg.connect(database=self.database)
        if notify:
            self.sql('alter database "%s" set queen.notify = %s' % (name, notify))
            self.conn.close()
            self.conn = pg.connect(database=self.database)
        self.broker = self.make()

    def sql(self, text, *args):
        with self.conn.cursor() as cur:
            cur.execute(text, args)
            return cur.fetchall() if cur.description else None

    def push(self, queue, value):
        self.sql("select queen.push_messages_v2(jsonb_build_array(jsonb_build_object('queue', %s, 'payload', %s)))", queue, value)

    @staticmethod
    def parked(broker):
        line, = [x for x in broker.get("/metrics/prometheus").text.splitlines() if x.startswith("queen_parked_consumers")]
        return float(line.split()[-1])

    def park(self, queue, broker=None):
        """A pop that is parked, and seen by SQL sessions to be."""
        b = broker or self.broker
        before = self.parked(b)
        pop = Background(lambda: b.pop(queue, wait=True, timeout=3600000, autoAck=True))
        wait_until(lambda: self.parked(b) > before, 20 * TIME_FACTOR, "parked")
        return pop

    def await_lock(self, n):
        wait_until(lambda: self.sql(AWAITED)[0][0] == n, 30 * TIME_FACTOR, "%d brokers wait" % n)

    def listen(self):
        conn = self.pg.connect(database=self.database)
        conn.cursor().execute("listen queen_pushed")
        return conn

    def close(self):
        self.conn.close()


def notes(conn, n=None):
    """Notifications that have arrived; waits until there are n."""
    got = []

    def look():
        select.select([conn], [], [], 0)
        conn.poll()
        got.extend(x.payload for x in conn.notifies)
        conn.notifies.clear()
        return n is None or len(got) >= n
    wait_until(look, 20 * TIME_FACTOR, "%s notifications" % n)
    return got


def data(pop):
    return [m["data"] for m in pop.result(30 * TIME_FACTOR).expect(200).json["messages"]]


@pytest.fixture
def wake(pg, make_broker, queue):
    made = []

    def make(**kw):
        w = Wake(pg, make_broker, "wake-%s-%d" % (queue, len(made)), **kw)
        made.append(w)
        return w
    yield make
    for w in made:
        w.close()


PUSHES = [
    "select queen.push_messages_v2(jsonb_build_array(jsonb_build_object('queue', %s, 'payload', 1)))",
    "select queen.push_messages_v3(jsonb_build_array(jsonb_build_object('queue', %s, 'payload', 1)))",
    "select queen.execute_transaction_v2(jsonb_build_array(jsonb_build_object('type', 'push', 'queue', %s, 'payload', 1)))",
]


def test_a_push_from_sql_wakes_a_parked_pop(wake, queue):
    w = wake()
    for text in PUSHES:
        pop = w.park(queue)
        w.await_lock(1)
        w.sql(text, queue)
        assert data(pop) == [1], text


def test_every_broker_is_woken(wake, queue):
    w = wake()
    second = w.make()
    pops = [w.park(queue, b) for b in (w.broker, second)]
    w.await_lock(2)
    for value in (1, 2):
        w.push(queue, value)
    assert sorted(data(pops[0]) + data(pops[1])) == [1, 2]


def test_a_transaction_notifies_once_per_queue_and_only_if_it_commits(wake, queue):
    w = wake()
    pop = w.park(queue + "-parked")
    w.await_lock(1)
    ear = w.listen()
    conn = w.pg.connect(autocommit=False, database=w.database)
    try:
        with conn.cursor() as cur:
            for end in (conn.rollback, conn.commit):
                for n in range(5):
                    cur.execute(PUSHES[n % 3], [queue + "-%d" % (n % 2)])
                end()
        w.push(queue + "-last", 1)
        assert sorted(notes(ear, 3)) == sorted([queue + "-0", queue + "-1", queue + "-last"])
    finally:
        conn.close()
        ear.close()
    w.push(queue + "-parked", 1)
    assert data(pop) == [1]


def test_without_a_parked_pop_nothing_is_notified(wake, queue):
    w = wake()
    ear = w.listen()
    w.await_lock(0)
    w.push(queue, 1)
    w.sql("select pg_notify('queen_pushed', 'end')")
    assert notes(ear, 1) == ["end"]
    ear.close()


def test_a_push_of_the_broker_does_not_notify(wake, queue):
    w = wake()
    w.park(queue + "-parked")
    w.await_lock(1)
    ear = w.listen()
    w.broker.put(queue, [1, 2])
    w.sql("select pg_notify('queen_pushed', 'end')")
    assert notes(ear, 1) == ["end"]
    ear.close()


def test_it_listens_again_after_its_connection_was_lost(wake, queue):
    w = wake()
    pop = w.park(queue)
    w.await_lock(1)
    assert w.sql("select count(pg_terminate_backend(l.pid)) from pg_locks l where l.locktype = 'advisory' and l.classid = 737030 "
                 "and l.database = (select oid from pg_database where datname = current_database())") == [(1,)]
    wait_until(lambda: w.broker.log_text().count("sql_wake.listening") == 2, 60 * TIME_FACTOR, "it listens again")
    w.await_lock(1)
    w.push(queue, 1)
    assert data(pop) == [1]


def test_the_contents_of_a_notification_are_not_trusted(wake, queue):
    w = wake()
    pop = w.park(queue)
    w.await_lock(1)
    for text in ("", "no such queue", '"\\\n\t{"', "x" * 7999, queue):
        w.sql("select pg_notify('queen_pushed', %s)", text)
    w.push(queue, 1)
    assert data(pop) == [1]


def test_a_stream_of_pushes_is_polled_for_instead(wake, queue):
    """Sessions that notify commit one after another, so a busy server gives up the lock.  Everything is delivered."""
    w = wake()
    w.park(queue + "-other")
    w.await_lock(1)
    ear = w.listen()
    got = Background(lambda: collect(w.broker, queue, 3000))
    w.sql("""do $$ begin for i in 1..3000 loop
                 perform queen.push_messages_v2(jsonb_build_array(jsonb_build_object('queue', '%s', 'payload', i)));
                 commit; end loop; end $$""" % queue)
    assert got.result(60 * TIME_FACTOR) == list(range(1, 3001))
    w.sql("select pg_notify('queen_pushed', 'end')")
    seen = []
    while "end" not in seen:
        seen += notes(ear, 1)
    assert len(seen) - 1 < 3000, "some pushes found the lock free"
    ear.close()


def collect(broker, queue, n):
    out = []
    while len(out) < n:
        r = broker.pop(queue, wait=True, timeout=60000, autoAck=True, batch=1000)
        assert r.status == 200, (r.status, len(out))
        out += [m["data"] for m in r.json["messages"]]
    return out


@pytest.mark.parametrize("notify", [None, "off"])
def test_transactions_can_be_prepared(wake, queue, notify):
    """PostgreSQL refuses to prepare one that has notified; the servers of the tests allow prepared transactions."""
    w = wake(notify=notify)
    pop = w.park(queue)
    w.await_lock(1)
    conn = w.pg.connect(autocommit=False, database=w.database)
    with conn.cursor() as cur:
        cur.execute(PUSHES[0], [queue])
        cur.execute("prepare transaction %s", [queue])
        conn.rollback()
        conn.autocommit = True
        cur.execute("commit prepared %s", [queue])
    conn.close()
    w.broker.put(queue, [2])  # wakes it, since the broker polls so seldom here
    assert data(pop)[0] == 1


def test_it_can_be_turned_off(wake, queue):
    w = wake(QUEEN_SQL_NOTIFY="false", POP_WAIT_INITIAL_INTERVAL_MS=50, POP_WAIT_MAX_INTERVAL_MS=50)
    pop = w.park(queue)
    assert w.sql(AWAITED) == [(0,)] and "sql_wake" not in w.broker.log_text()
    w.push(queue, 1)
    assert data(pop) == [1]
