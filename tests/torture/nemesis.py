"""The faults, one class each, and their order by seed."""
import http.client
import json
import os
import random
import signal
import subprocess
import time

from actor import wait_until
from history import Fault, Loss


class Kind:
    """A fault of a cluster. begin() makes it, end() undoes it; both with the broker that it is about."""
    seconds = (0.5, 4.0)  # how long it lasts

    def __init__(self, cluster, random):
        self.cluster, self.random = cluster, random
        self.over = None  # when recovery could begin, if before the end
        self.loss = None  # (from, to): commits between may be lost

    @staticmethod
    def possible(cluster):
        return True

    def begin(self, broker):
        raise NotImplementedError

    def end(self, broker):
        pass


def signal_all(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class KillBroker(Kind):
    """kill -9. The PostgreSQL inside goes with it."""
    seconds = (0.1, 2.0)

    def begin(self, broker):
        self.cluster.brokers[broker].kill()

    def end(self, broker):
        self.cluster.brokers[broker].spawn()


class RestartBroker(Kind):
    """SIGTERM, and a new one when it has ended."""
    seconds = (0.1, 1.0)

    def begin(self, broker):
        self.cluster.brokers[broker].terminate(30)

    end = KillBroker.end


class FreezeBroker(Kind):
    def begin(self, broker):
        self.cluster.brokers[broker].process.send_signal(signal.SIGSTOP)

    def end(self, broker):
        self.cluster.brokers[broker].process.send_signal(signal.SIGCONT)


class CrashPostgres(Kind):
    """Immediate stop: no checkpoint, no goodbye. The one inside is started again by its broker."""

    def begin(self, broker):
        if self.cluster.postmaster:
            signal_all([self.cluster.postmaster], signal.SIGQUIT)
        if self.cluster.server:
            self.cluster.server.process.wait(20)

    def end(self, broker):
        if self.cluster.server:
            self.cluster.server.ensure()


class CrashBackend(Kind):
    """kill -9 of one session: PostgreSQL ends all others and recovers."""
    seconds = (0.0, 0.1)

    def begin(self, broker):
        backends = self.cluster.backends()
        if backends:
            signal_all([self.random.choice(backends)], signal.SIGKILL)


class TerminateBackends(Kind):
    """Some sessions, or all, are terminated."""
    seconds = (0.0, 0.1)

    def begin(self, broker):
        backends = self.cluster.backends()
        signal_all(self.random.sample(backends, self.random.randint(min(1, len(backends)), len(backends))), signal.SIGTERM)


class FreezePostgres(Kind):
    """All its processes stand still, sockets stay open."""

    def begin(self, broker):
        self.frozen = list(self.cluster.postgres_processes())
        signal_all(self.frozen, signal.SIGSTOP)

    def end(self, broker):
        signal_all(self.frozen, signal.SIGCONT)


class FreezeBackends(Kind):
    """Some sessions stand still, with the locks that they have."""

    def begin(self, broker):
        backends = self.cluster.backends()
        self.frozen = self.random.sample(backends, (len(backends) + 1) // 2)
        signal_all(self.frozen, signal.SIGSTOP)

    end = FreezePostgres.end


class Blocked(Kind):
    """Packets vanish, in both directions."""
    rule = ""

    @staticmethod
    def possible(cluster):
        return cluster.server is not None and subprocess.run(["nft", "list", "tables"], capture_output=True).returncode == 0

    def begin(self, broker):
        table = "table inet %s { chain in { type filter hook input priority 0;\n%s\n}\n}" % (
            self.cluster.block, self.rule_of(broker))
        subprocess.run(["nft", "-f", "-"], input=table.encode(), check=True)

    def end(self, broker):
        subprocess.run(["nft", "delete", "table", "inet", self.cluster.block], check=True)


class BlockDatabase(Blocked):
    """Between one broker and PostgreSQL."""
    seconds = (1.0, 6.0)

    @staticmethod
    def possible(cluster):
        return Blocked.possible(cluster) and not cluster.has_standby  # each broker has an address of its own

    def rule_of(self, broker):
        address, port = self.cluster.addresses[broker], self.cluster.server.port
        return "ip daddr %s tcp dport %d drop\nip saddr %s tcp sport %d drop" % (address, port, address, port)


class BlockClients(Blocked):
    """Between the clients and one broker."""

    def rule_of(self, broker):
        port = self.cluster.brokers[broker].port
        return "tcp dport %d drop\ntcp sport %d drop" % (port, port)


class BlockPeers(Blocked):
    """Between the brokers: only their notifications are lost."""
    seconds = (1.0, 6.0)

    def rule_of(self, broker):
        return "udp dport %d drop" % self.cluster.udp_ports[broker]


class FullBuffer(Kind):
    """PostgreSQL is away and a file buffer has no room."""

    @staticmethod
    def possible(cluster):
        return cluster.server is not None and all(d.small for d in cluster.buffers)

    def begin(self, broker):
        self.cluster.buffers[broker].fill()
        CrashPostgres.begin(self, broker)

    def end(self, broker):
        self.cluster.buffers[broker].empty()
        CrashPostgres.end(self, broker)


class CutPower(Kind):
    """PostgreSQL is away; then the machine of one broker loses its power, and what was not synced is gone."""
    seconds = (2.0, 4.0)

    def begin(self, broker):
        CrashPostgres.begin(self, broker)

    def end(self, broker):
        self.cluster.brokers[broker].kill()
        self.cluster.buffers[broker].cut_power(self.cluster.synced(broker))
        CrashPostgres.end(self, broker)
        self.cluster.brokers[broker].spawn()


class FullWal(Kind):
    """PostgreSQL cannot write its log of changes, and goes down."""
    seconds = (1.0, 4.0)

    @staticmethod
    def possible(cluster):
        return cluster.server is not None and cluster.server.wal.small

    def begin(self, broker):
        self.cluster.server.wal.fill()

    def end(self, broker):
        self.cluster.server.wal.empty()
        self.cluster.server.ensure()


class Promote(Kind):
    """The primary is gone for good and its standby takes over; later there is a new standby."""
    seconds = (3.0, 6.0)

    @staticmethod
    def possible(cluster):
        return cluster.has_standby

    def begin(self, broker):
        self.cluster.server.promote()
        self.over = time.monotonic()

    def end(self, broker):
        self.cluster.server.attach()


class PromoteLagging(Promote):
    """Commits do not wait for the standby any more, and it gets nothing for a moment. Then the primary is gone and the standby, which
    lacks the last commits, takes over."""

    def begin(self, broker):
        # A push that was answered `buffered` before is in the database by now: replayed later, it would be lost with the rest.
        wait_until(self.is_calm, 60, "brokers are ready and file buffers are empty", 0.1)
        begin = time.monotonic()
        self.cluster.server.cut_off()
        time.sleep(self.random.uniform(0.3, 1.5))
        self.cluster.server.primary.halt()
        self.loss = begin, time.monotonic()
        self.cluster.server.promote()
        self.over = time.monotonic()

    def is_calm(self):
        begin = time.monotonic()
        try:
            return self.cluster.buffered() == 0 and time.monotonic() - begin < 1.0
        except (OSError, AssertionError, http.client.HTTPException):
            return False


class ClockJump(Kind):
    """The clock of one broker is an hour off, then right again."""

    @staticmethod
    def possible(cluster):
        return all(cluster.clocks)

    def begin(self, broker):
        self.set(broker, self.random.choice(("+3600", "-3600")))

    def end(self, broker):
        self.set(broker, "+0")

    def set(self, broker, offset):
        with open(self.cluster.clocks[broker], "w") as f:
            f.write(offset)


class HeldXmin(Kind):
    """A transaction elsewhere stays open with its snapshot."""
    seconds = (5.0, 10.0)

    def begin(self, broker):
        self.conn = self.cluster.connect()
        self.conn.autocommit = False
        self.conn.set_session(isolation_level="REPEATABLE READ")
        self.conn.cursor().execute("select txid_current()")

    def end(self, broker):
        self.conn.close()


class OpenPush(HeldXmin):
    """A SQL session has pushed to some partitions and does not commit; in the end it rolls back."""
    seconds = (2.0, 6.0)

    def begin(self, broker):
        lanes = self.cluster.sql("select q.name, l.name from queen.lanes l join queen.queues q on q.id = l.queue_id order by 1, 2")
        chosen = self.random.sample(lanes, min(len(lanes), self.random.randint(1, 3)))
        items = [{"queue": q, "partition": p, "payload": "open"} for q, p in chosen]
        self.conn = self.cluster.connect()
        self.conn.autocommit = False
        self.conn.cursor().execute("select queen.push_messages_v2(%s::jsonb)", [json.dumps(items)])


class DeleteInSteps(Kind):
    """A large queue is deleted, and who deletes it dies after the first step. The brokers finish it, and nothing is left over."""
    seconds = (1.0, 3.0)
    PARTITIONS = 5000
    CONTENTS = ("segments", "message_keys", "consumers", "dead_letter_queue", "lane_due")

    def begin(self, broker):
        queue = "torture-deleted-%d" % self.random.randrange(10**9)
        names = ["p%d" % i for i in range(self.PARTITIONS)]
        self.conn = self.cluster.connect()
        self.conn.autocommit = True
        cursor = self.conn.cursor()
        cursor.execute("select count(*) from queen.ensure_lanes(%s, %s)", [[queue] * len(names), names])
        cursor.execute("select queen.push_messages_v2(%s::jsonb)",
                       [json.dumps([{"queue": queue, "partition": n, "payload": 1} for n in names[::5]])])
        cursor.execute("select queen.ensure_consumers(array_agg(l.num), array_agg('g'::text)) from queen.lanes l"
                       " join queen.queues q on q.id = l.queue_id where q.name = %s", [queue])
        cursor.execute("select status from queen.delete_queue(%s::jsonb)", [json.dumps({"queue": queue})])

    def end(self, broker):
        self.conn.close()
        wait_until(lambda: not self._left("deleted_queues") and not self._left("deleted_lanes"), 120, "the deletion is finished", 0.2)
        for table in self.CONTENTS:
            left = self._left(table, "where not exists (select from queen.lanes l where l.num = t.lane)")
            assert left == 0, "%d rows of queen.%s have no partition" % (left, table)

    def _left(self, table, where=""):
        return self.cluster.sql("select count(*) from queen.%s t %s" % (table, where))[0][0]


class ConfigureInSteps(Kind):
    """A queue in use gets a maxSize by SQL, partition by partition: the brokers copy it to the others. Then it loses it again."""
    seconds = (2.0, 5.0)

    def begin(self, broker):
        queues = self.cluster.sql("select name::text from queen.queues where name like '%%-orders' or name like '%%-bills' order by 1")
        self.queue = self.random.choice(queues)[0] if queues else None
        self._limit(1000000000)

    def end(self, broker):
        self._limit(0)
        wait_until(lambda: self.cluster.sql("select count(*) from queen.configuring")[0][0] == 0, 120, "the options are copied", 0.2)
        wrong = self.cluster.sql("select count(*) from queen.lanes l join queen.queues q on q.id = l.queue_id where l.limited and"
                                 " q.max_queue_size = 0")[0][0]
        assert wrong == 0, "%d partitions have kept an old option" % wrong

    def _limit(self, size):
        conn = self.cluster.connect()
        conn.autocommit = True
        conn.cursor().execute("set queen.step_lanes = 1")
        conn.cursor().execute("update queen.queues set max_queue_size = %s where name = %s", [size, self.queue])
        conn.close()


KINDS = [KillBroker, RestartBroker, FreezeBroker, CrashPostgres, CrashBackend, TerminateBackends, FreezePostgres, FreezeBackends,
         BlockDatabase, BlockClients, BlockPeers, FullBuffer, CutPower, FullWal, Promote, PromoteLagging, ClockJump, HeldXmin, OpenPush,
         DeleteInSteps, ConfigureInSteps]


class Nemesis:
    """Brings faults one after the other. A seed decides which, when, to whom and for how long; every kind comes once before one
    comes again."""

    def __init__(self, cluster, seed, only=()):
        self.cluster, self.random, self.bag = cluster, random.Random("%s/nemesis" % seed), []
        self.kinds = [k for k in KINDS if k.possible(cluster) and (not only or k.__name__ in only)]

    def plan(self, seconds):
        """[(pause before it, fault, broker, how long)] for about so many seconds."""
        faults, total = [], 0.0
        while self.kinds:
            self.bag = self.bag or self.random.sample(self.kinds, len(self.kinds))
            pause, lasts = self.random.uniform(3.0, 5.0), self.random.uniform(*self.bag[-1].seconds)
            total += pause + lasts + 1.0
            if total > seconds:
                break
            fault = self.bag.pop()(self.cluster, random.Random(self.random.random()))
            faults.append((pause, fault, self.random.randrange(len(self.cluster.brokers)), lasts))
        return faults

    def torment(self, faults, history, log):
        for pause, fault, broker, lasts in faults:
            time.sleep(pause)
            t0 = time.monotonic()
            fault.begin(broker)
            try:
                time.sleep(lasts)
            finally:  # also when the run is interrupted: nothing stays blocked or frozen
                fault.end(broker)
            t1 = fault.over or time.monotonic()
            if fault.loss:
                history.add(Loss("loss", *fault.loss))
            history.add(Fault("fault", t0, t1, type(fault).__name__, broker))
            log("    %-17s broker %d  %.1f s" % (type(fault).__name__, broker, t1 - t0))
