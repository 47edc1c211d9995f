#!/usr/bin/python3
"""Failovers under load: three machines with etcd, Patroni and PostgreSQL, HAProxy, and two brokers. make test-ha MINUTES=60

The configuration is deploy/ha. The clients, and the checker that examines what they saw, are those of tests/torture. The first broker
lists the three servers in PG_HOST, the second one goes through HAProxy. Needs root, and the packages of `tools/deps.sh test-ha`.
Exit status 1: something acknowledged was lost, order was broken, or the cluster did not recover.
"""
import argparse
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "torture"))
sys.path.insert(0, HERE)
import checker  # noqa: E402
import history  # noqa: E402
import report  # noqa: E402
from actor import Broker, wait_until  # noqa: E402
from machines import CONFIG, Machine, ask, build_network  # noqa: E402
from scene import Scene  # noqa: E402


def say(text):
    print(time.strftime("%H:%M:%S ") + text, flush=True)


class Cluster:
    """The part of a cluster that Scene needs: brokers, ports, buffered()."""

    def __init__(self, folder):
        self.folder = folder
        self.machines = [Machine(folder, i) for i in range(3)]
        self.brokers, self.haproxy = [], None

    def start(self):
        for m in self.machines:
            m.start_etcd()
        wait_until(lambda: all("true" in (ask("http://%s:2379/health" % m.address)[1] or "") for m in self.machines), 120, "etcd is healthy", 0.5)
        for m in self.machines:
            m.start_patroni()
        self.wait_whole(300)
        conn = self.primary().connect()
        conn.cursor().execute("create role queen login password 'change-me'")
        conn.cursor().execute("create database queen owner queen")
        conn.close()
        self.start_haproxy()
        with open(os.path.join(CONFIG, "queen.env")) as f:
            env = dict(line.strip().split("=", 1) for line in f if "=" in line and not line.startswith("#"))
        env.pop("HOST")
        for i in range(2):
            own = {**env, "WORKER_ID": "ha-%d" % i, "FILE_BUFFER_DIR": os.path.join(self.folder, "buffer-%d" % i), "SIDECAR_POOL_SIZE": "8"}
            if i == 1:
                own.update(PG_HOST="127.0.0.1", PG_PORT="5000")
            b = Broker(own)
            os.unlink(b.log)
            b.log = os.path.join(self.folder, "broker-%d.log" % i)
            self.brokers.append(b.start(120))

    def start_haproxy(self):
        with open(os.path.join(CONFIG, "haproxy.cfg")) as f:
            text = f.read()
        text = text[:text.index("listen brokers")] + text[text.index("# Patroni answers"):]  # the clients choose their broker themselves
        path = os.path.join(self.folder, "haproxy.cfg")
        with open(path, "w") as f:
            f.write(text)
        with open(os.path.join(self.folder, "haproxy.log"), "wb") as log:
            self.haproxy = subprocess.Popen(["haproxy", "-db", "-f", path], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def ports(self):
        return [b.port for b in self.brokers]

    def primaries(self):
        return [m for m in self.machines if m.is_primary()]

    def primary(self):
        found = self.primaries()
        return found[0] if len(found) == 1 else None

    def is_whole(self):
        """One primary and two standbys that stream from it, one of them synchronous."""
        primary = self.primary()
        if primary is None:
            return False
        states = [m.state() for m in self.machines]
        streams = primary.state().get("replication", [])
        # The roles are those of etcd: only a member that is a sync_standby there may take over.
        roles = {m["name"]: m["role"] for m in json.loads(ask("http://%s:8008/cluster" % primary.address)[1] or "{}").get("members", [])}
        return (all(s.get("state") == "running" for s in states) and len(streams) == 2 and all(s["state"] == "streaming" for s in streams)
                and any(s["sync_state"] == "sync" and roles.get(s["application_name"]) == "sync_standby" for s in streams)
                and len({s.get("timeline") for s in states}) == 1)

    def wait_whole(self, timeout):
        def problem():
            return "; ".join("%s %s" % (m.name, json.dumps(m.state())[:300]) for m in self.machines)
        try:
            wait_until(self.is_whole, timeout, "a primary with two standbys", 0.3)
        except AssertionError as e:
            raise AssertionError("%s: %s" % (e, problem())) from None

    def buffered(self):
        return sum(b.get("/api/v1/status/buffers").expect(200).json["pending"] for b in self.brokers)

    def dispose(self):
        for b in self.brokers:
            b.dispose()
        if self.haproxy:
            self.haproxy.kill()
            self.haproxy.wait()
        for m in self.machines:
            m.stop()


class Watch(threading.Thread):
    """When each machine became primary, and when each broker first stored a message in it afterwards."""

    def __init__(self, cluster, queue):
        super().__init__(daemon=True)
        self.cluster, self.queue = cluster, queue
        self.last, self.failovers, self.two, self.done = cluster.primary().name, [], 0, False
        self.probes = [None, None]

    def run(self):
        while not self.done:
            found = self.cluster.primaries()
            if len(found) > 1:
                self.two += 1
            if len(found) == 1 and found[0].name != self.last:
                self.last = found[0].name
                self.failovers.append([time.monotonic(), None, None])
                for i, b in enumerate(self.cluster.brokers):
                    threading.Thread(target=self.probe, args=(self.failovers[-1], i, b.port), daemon=True).start()
            time.sleep(0.05)

    def probe(self, failover, i, port):
        n = 0
        while not self.done and time.monotonic() < failover[0] + 60:
            n += 1
            text = ask("http://127.0.0.1:%d/api/v1/push" % port, {"items": [{"queue": self.queue, "partition": "probe-%d" % i, "payload": n}]}, 10)[1]
            if text and '"queued"' in text:
                failover[1 + i] = time.monotonic() - failover[0]
                return
            time.sleep(0.02)


class Fault:
    """begin(), then `seconds` later end(); `moves`: the primary changes."""
    seconds, moves = 1.0, True

    def __init__(self, cluster, random):
        self.cluster, self.random = cluster, random
        self.machine = cluster.primary()

    def begin(self):
        raise NotImplementedError

    def end(self):
        pass


class KillPrimary(Fault):
    """kill -9 of Patroni and PostgreSQL; they start again when another one is primary."""
    def begin(self):
        self.machine.crash()

    def end(self):
        self.machine.start_patroni()


class KillPostmaster(Fault):
    """kill -9 of PostgreSQL alone: Patroni gives up the leadership, or starts it again if no standby can take over."""
    seconds, moves = 5.0, False

    def begin(self):
        with open(os.path.join(self.machine.folder, "data", "postmaster.pid")) as f:
            os.kill(int(f.readline()), signal.SIGKILL)


class FreezePrimary(Fault):
    """All its processes stand still until another one is primary, and then go on."""
    def begin(self):
        self.machine.signal(signal.SIGSTOP)

    def end(self):
        self.machine.signal(signal.SIGCONT)


class Unplug(Fault):
    """The network cable of the primary."""
    def begin(self):
        self.machine.unplug()

    def end(self):
        self.machine.connect_network()


class CutEtcdAndStandbys(Unplug):
    """The primary reaches no other database machine; the brokers still reach it."""
    def begin(self):
        self.machine.cut([2379, 2380, 5432, 8008])


class CutStandbys(Unplug):
    """Replication stops, etcd works: commits wait, pushes are buffered."""
    seconds, moves = 6.0, False

    def begin(self):
        self.machine.cut([5432])


class Switchover(Fault):
    def begin(self):
        candidates = [s["application_name"] for s in self.machine.state()["replication"] if s["sync_state"] == "sync"]
        ask("http://%s:8008/switchover" % self.machine.address, {"leader": self.machine.name, "candidate": candidates[0]}, 60)


class KillEtcdLeader(Fault):
    seconds, moves = 3.0, False

    def begin(self):
        def leads(m):
            out = subprocess.run(["etcdctl", "--endpoints", "http://%s:2379" % m.address, "endpoint", "status", "-w", "json"],
                                 capture_output=True, text=True, env={**os.environ, "ETCDCTL_API": "3"}).stdout
            status = json.loads(out)[0]["Status"]
            return status["leader"] == status["header"]["member_id"]
        self.machine = next(m for m in self.cluster.machines if leads(m))
        self.machine.etcd.kill()
        self.machine.etcd.wait()

    def end(self):
        self.machine.start_etcd()


class EtcdWithoutQuorum(Fault):
    seconds, moves = 30.0, False

    def begin(self):
        for m in self.cluster.machines[:2]:
            m.etcd.send_signal(signal.SIGSTOP)

    def end(self):
        for m in self.cluster.machines[:2]:
            m.etcd.send_signal(signal.SIGCONT)


class KillBroker(Fault):
    moves = False

    def begin(self):
        self.broker = self.random.choice(self.cluster.brokers)
        self.broker.kill()

    def end(self):
        self.broker.spawn()
        self.broker.wait_ready(120)


FAULTS = [KillPrimary, KillPostmaster, FreezePrimary, Unplug, CutEtcdAndStandbys, CutStandbys, Switchover, KillEtcdLeader, EtcdWithoutQuorum,
          KillBroker]


def inflict(cluster, kind, dice, notes, watch):
    """One fault, until the cluster is whole again."""
    fault, before = kind(cluster, dice), len(watch.failovers)
    begin = time.monotonic()
    fault.begin()
    if fault.moves:
        wait_until(lambda: len(watch.failovers) > before, 120, "another primary after %s" % kind.__name__, 0.1)
    else:
        time.sleep(fault.seconds)
    fault.end()
    cluster.wait_whole(180)
    notes.add(history.Fault("fault", begin, time.monotonic(), kind.__name__, fault.machine.name))
    recovered = ["%.1f s" % t if t else "-" for f in watch.failovers[before:] for t in f[1:]]
    say("  %s of %s: whole again after %.1f s; stored after %s" % (
        kind.__name__, fault.machine.name, time.monotonic() - begin, ", ".join(recovered) or "no failover"))


def play(cluster, args, n, dice, kinds, result):
    """One round of faults under load; the violations."""
    folder = os.path.join(cluster.folder, "round-%d" % n)
    os.mkdir(folder)
    notes = history.Writer(os.path.join(folder, "faults.history"))
    scene = Scene("ha%s-%d" % (args.seed, n), "%s/%d" % (args.seed, n), cluster, folder, args.rate)
    cluster.brokers[0].configure(scene.name + "-probe")
    watch = Watch(cluster, scene.name + "-probe")
    scene.start()
    watch.start()
    try:
        time.sleep(3)
        for kind in kinds:
            inflict(cluster, kind, dice, notes, watch)
        time.sleep(3)
        wrong = scene.finish()
    finally:
        scene.abandon()
        watch.done = True
        notes.close()
    events = history.read(folder)
    violations = checker.check(events, scene.rules)
    for v in violations[:10]:
        say("  %s: %s (%s)" % (v.rule.upper(), v.text, v.partition))
        for line in report.story(v, events):
            say("      " + line)
    for text in wrong:
        say("  WRONG: " + text)
    result["failovers"] += watch.failovers
    result["two"] += watch.two
    result["faults"] += [k.__name__ for k in kinds]
    result["buffered"] += sum(e.count for e in events if e.kind == "push" and e.stored == "buffered")
    result["pushed"] += sum(e.count for e in events if e.kind == "push" and e.outcome == history.OK)
    if not violations and not wrong:
        scene.remove()
        shutil.rmtree(folder)
    return len(violations) + len(wrong)


def percentile(values, share):
    values = sorted(values)
    return values[max(0, math.ceil(len(values) * share) - 1)] if values else float("nan")


def summary(result):
    yield "%d failovers, faults: %s" % (len(result["failovers"]), ", ".join("%s %d" % (k, result["faults"].count(k)) for k in sorted(set(result["faults"]))))
    yield "%d messages pushed and answered, %d of them from a file buffer" % (result["pushed"], result["buffered"])
    for i, name in enumerate(("several hosts in PG_HOST", "through HAProxy")):
        times = [f[1 + i] for f in result["failovers"] if f[1 + i] is not None]
        yield "seconds from the promotion to the first message stored, %s: p50 %.2f, p99 %.2f, longest %.2f (%d)" % (
            name, percentile(times, 0.5), percentile(times, 0.99), max(times, default=float("nan")), len(times))
    yield "two machines answered as primary at the same time: %d samples of 50 ms" % result["two"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--minutes", type=float, default=10)
    p.add_argument("--rate", type=float, default=300)
    p.add_argument("--seed", default=str(random.SystemRandom().randrange(10 ** 6)))
    p.add_argument("--only", type=lambda s: s.split(","), default=())
    p.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = p.parse_args()
    if os.geteuid() != 0:
        sys.exit("test-ha needs root for its network namespaces")
    if not args.inside:
        os.makedirs("/run/netns", exist_ok=True)
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, os.path.abspath(__file__), "--inside", "--seed", args.seed] + sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no process stays behind
    build_network()
    folder = tempfile.mkdtemp(prefix="queen-ha-")
    os.chmod(folder, 0o755)
    say("seed %s, in %s" % (args.seed, folder))
    dice, cluster = random.Random(args.seed), Cluster(folder)
    result = {"failovers": [], "faults": [], "two": 0, "buffered": 0, "pushed": 0}
    end, bad, n = time.monotonic() + 60 * args.minutes, 0, 0
    chosen = [k for k in FAULTS if not args.only or k.__name__ in args.only]
    try:
        cluster.start()
        say("the cluster is up")
        while time.monotonic() < end and not bad:
            kinds = chosen[:]
            dice.shuffle(kinds)
            bad += play(cluster, args, n, dice, kinds[:4], result)
            n += 1
    finally:
        cluster.dispose()
        for line in summary(result):
            say(line)
    if bad:
        say("FAILED: make test-ha SEED=%s; see %s" % (args.seed, folder))
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
