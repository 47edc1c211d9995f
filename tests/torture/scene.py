"""One round: its queues, its clients, and how it ends. Clients are threads of a few processes; each process writes one history."""
import multiprocessing
import os
import time

from actor import DRAIN, DRAIN_MADE, GIVE_UP, RUN, STOP_PUSHING, wait_until
from checker import Rules
from consumer import FLAKY, STEADY, Consumer
from history import Writer
from patient import Patient
from producer import KeyProducer, Producer
from scheduler import Scheduler
from transactor import Transactor
from worker import Worker

LEASE_SECONDS = 3
RETRY_SECONDS, ATTEMPTS = 1.0, 4
MAX_IN_FLIGHT, KEY_MAX_IN_FLIGHT = 90, 25
JOBS = ["a", "a~p5", "b"]  # partitions of the work queue: keys and priorities
PARTITIONS = ["p%d" % i for i in range(8)]
PRODUCERS = 6  # each of them in half of the partitions
QUIET_LIMIT = 60  # seconds without any progress at the end of a round


class Scene:
    """Names are of this round alone, so that rounds do not see each other's messages."""

    def __init__(self, name, seed, cluster, folder, rate, odd=False):
        self.name, self.seed, self.cluster, self.folder, self.rate = name, seed, cluster, folder, rate
        self.odd = odd  # every second round retries are those of a work queue
        self.source, self.made, self.late = name + "-orders", [name + "-bills", name + "-letters"], name + "-reminders"
        self.retried, self.work = name + "-campaigns", name + "-jobs"
        self.queues = [self.source, self.late, self.retried, self.work] + self.made
        self.phase = multiprocessing.Value("i", RUN)
        groups = {"steady": False, "flaky": False, "auto": True, "txn": False}
        self.rules = Rules({q: LEASE_SECONDS for q in self.queues},
                           {self.source: groups, self.late: {"clock": False}, **{q: {"books": False} for q in self.made}},
                           {self.retried: ("mailer", RETRY_SECONDS, ATTEMPTS)},
                           {self.work: ("workers", LEASE_SECONDS, MAX_IN_FLIGHT, KEY_MAX_IN_FLIGHT)})

    def crews(self):
        """{process: [(class, name, arguments)]}"""
        source = {"queue": self.source, "partitions": PARTITIONS, "lease_seconds": LEASE_SECONDS}
        crews = {"producers-%d" % c: [
            (Producer, "producer-%d" % i, {"queue": self.source, "partitions": PARTITIONS[i % 2::2] + PARTITIONS[:1],
                                           "rate": self.rate / PRODUCERS, "plain_ids": i == 0})
            for i in range(c, PRODUCERS, 2)] for c in range(2)}
        for group, manners, auto in (("steady", STEADY, False), ("flaky", FLAKY, False), ("auto", STEADY, True)):
            crews[group] = [(Consumer, "%s-%d" % (group, i), {**source, "group": group, "manners": manners, "auto": auto})
                            for i in range(3)]
        crews["txn"] = [(Transactor, "txn-%d" % i, {**source, "group": "txn", "manners": FLAKY, "makes": self.made})
                        for i in range(2)]
        crews["books"] = [(Consumer, "books-%d-%s" % (i, q), {**source, "queue": q, "group": "books", "ends_in": DRAIN_MADE})
                          for q in self.made for i in range(2)]
        late = {"queue": self.late, "partitions": PARTITIONS[:3]}
        crews["clock"] = [(Consumer, "clock-%d" % i, {**source, **late, "group": "clock"}) for i in range(2)]
        crews["producers-late"] = [(Scheduler, "scheduler-%d" % i, {**late, "rate": self.rate / 50, "plain_ids": i == 0})
                                   for i in range(2)]
        retried = {"queue": self.retried, "partitions": PARTITIONS[:3]}
        crews["mailer"] = [(Patient, "mailer-%d" % i, {**source, **retried, "group": "mailer", "manners": FLAKY}) for i in range(2)]
        crews["producers-retried"] = [(Producer, "campaign", {**retried, "rate": self.rate / 20, "plain_ids": False})]
        work = {"queue": self.work, "partitions": JOBS}
        crews["workers"] = [(Worker, "worker-%d" % i, {**source, **work, "group": "workers", "manners": FLAKY._replace(renew=0.1)})
                            for i in range(6)]
        crews["producers-work"] = [(KeyProducer, "jobs", {**work, "rate": self.rate / 20, "plain_ids": False})]
        return crews

    def start(self):
        broker = self.cluster.brokers[0]
        for queue in self.queues:
            broker.configure(queue, leaseTime=LEASE_SECONDS, retryLimit=2, retryPolicy={
                "mode": "scheduled", "strategy": "fixed", "base": RETRY_SECONDS, "maxAttempts": ATTEMPTS,
            } if queue == self.retried else None, **({"ordering": "none"} if queue == self.retried and self.odd else {}))
        broker.configure(self.work, ordering="none", leaseTime=LEASE_SECONDS, retryLimit=10 ** 6, maxDeliveries=0, maxInFlight=MAX_IN_FLIGHT,
                         keyMaxInFlight=KEY_MAX_IN_FLIGHT)
        self.processes = {name: multiprocessing.Process(target=self._crew, args=(name, crew), name=name)
                          for name, crew in self.crews().items()}
        for p in self.processes.values():
            p.start()

    def _crew(self, name, crew):
        history = Writer(os.path.join(self.folder, name + ".history"))
        actors = [kind(actor, seed=self.seed, ports=self.cluster.ports, phase=self.phase, history=history, **arguments)
                  for kind, actor, arguments in crew]
        for a in actors:
            a.start()
        for a in actors:
            a.join()
        history.close()
        os._exit(1 if any(a.error for a in actors) else 0)

    def finish(self):
        """Ends the round in good order; what does not end is an error of its own: [text]."""
        wrong = []
        self._end(STOP_PUSHING, [n for n in self.processes if n.startswith("producers")], wrong)
        try:
            wait_until(lambda: self.cluster.buffered() == 0, QUIET_LIMIT, "file buffers empty", 0.1)
        except AssertionError as e:
            wrong.append(str(e))
        self._end(DRAIN, ["steady", "flaky", "auto", "txn", "clock", "mailer", "workers"], wrong)
        self._end(DRAIN_MADE, ["books"], wrong)
        self.phase.value = GIVE_UP
        for p in self.processes.values():
            p.join(30)
            if p.exitcode != 0:
                wrong.append("clients %s ended with %s" % (p.name, p.exitcode))
                p.kill()
        return wrong

    def _end(self, phase, names, wrong):
        """Clients may take their time as long as they get on."""
        self.phase.value = phase
        for name in names:
            written, deadline = 0, time.monotonic() + QUIET_LIMIT
            while self.processes[name].is_alive() and time.monotonic() < deadline:
                self.processes[name].join(1.0)
                size = os.path.getsize(os.path.join(self.folder, name + ".history"))
                if size != written:
                    written, deadline = size, time.monotonic() + QUIET_LIMIT
            if self.processes[name].is_alive():
                wrong.append("%s has done nothing for %d s and does not end" % (name, QUIET_LIMIT))

    def abandon(self):
        """No client outlives the round."""
        for p in self.processes.values():
            if p.is_alive():
                p.kill()
                p.join()

    def remove(self):
        """The queues of a round that was checked."""
        for queue in self.queues:
            self.cluster.brokers[0].request("DELETE", "/api/v1/resources/queues/" + queue, timeout=60)
