"""Databases that were restored from a backup, or failed over to a standby that lags: platform/docs/operations.md."""
import os
import shutil
import subprocess
import time
import urllib.request
import uuid

import pytest

import harness
from harness import wait_until
from rig_events import Platform, tenant_cursor

SOON = 20 * harness.TIME_FACTOR


@pytest.fixture(scope="module")
def platform(pg, broker):
    """One partition, and a group of its own."""
    p = Platform(pg, broker.url, PLATFORM_QUEUE="restores-" + uuid.uuid4().hex[:8], PLATFORM_PARTITIONS=1, PLATFORM_EXPIRY_S=10, database="platform_restores")
    p.start()
    p.add_tenant("zeta")
    yield p
    assert p.terminate() == 0, p.log_tail()


@pytest.fixture
def zeta(pg):
    cursor = tenant_cursor(pg, "zeta")
    yield cursor
    cursor.connection.close()


def visit(**more):
    return {"id": str(uuid.uuid4()), "type": "visit.recorded", "at": "2026-11-16T04:05:06Z",
            "data": {"customer_id": str(uuid.uuid4()), "id": str(uuid.uuid4()), **more}}


def ids(cursor):
    cursor.execute("select id from crm.visit_log")
    return {str(r[0]) for r in cursor.fetchall()}


def seek(platform, broker, timestamp):
    broker.post("/api/v1/consumer-groups/%s/queues/%s/seek" % (platform.env.get("PLATFORM_GROUP", "platform"), platform.env["PLATFORM_QUEUE"]),
                {"timestamp": timestamp}).expect(200)


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 1))


def test_a_seek_applies_events_again_that_the_tenant_lost(platform, broker, zeta):
    """The processor remembered the events of the last five minutes and acknowledged them without a look at the tenant."""
    began, events = now(), [visit() for _ in range(7)]
    for e in events:
        platform.send("zeta", e)
    want = {e["data"]["id"] for e in events}
    wait_until(lambda: ids(zeta) >= want, SOON, "they are applied")
    zeta.execute("truncate crm.visit_log, crm.applied_event")  # as a standby that lags
    seek(platform, broker, began)
    wait_until(lambda: ids(zeta) >= want, SOON, "they are applied again")
    zeta.execute("select count(*) from crm.visit_log")
    assert zeta.fetchone()[0] == 7


@pytest.fixture
def cut_off(pg, platform):
    """cut_off(): the tenant takes no connections until cut_off.mend()."""
    admin = pg.connect().cursor()

    def make():
        admin.execute("alter database tenant_zeta allow_connections false")
        admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'tenant_zeta'")
    make.mend = lambda: admin.execute("alter database tenant_zeta allow_connections true")
    yield make
    make.mend()
    admin.connection.close()


def hold(platform, pg, cut_off):
    """An event that waits in a lane, and a connection to the control database."""
    first = visit()
    cut_off()
    platform.send("zeta", first)
    wait_until(lambda: "zeta" in platform.held(), SOON, "it is held")
    return first, pg.connect(database="platform_restores").cursor()


def test_an_owner_goes_on_after_the_control_database_was_restored(platform, pg, cut_off):
    """It reported "has another owner by now" for ever."""
    first, control = hold(platform, pg, cut_off)
    control.execute("update platform.held_partition set epoch = 0; delete from platform.held_lane")  # as an older dump has it
    second = visit()
    platform.send("zeta", second)
    wait_until(lambda: "zeta" in platform.held(), SOON, "the lane is noted again")
    cut_off.mend()
    cursor = tenant_cursor(pg, "zeta")
    wait_until(lambda: ids(cursor) >= {first["data"]["id"], second["data"]["id"]}, SOON, "both are applied")
    wait_until(lambda: not platform.held(), SOON, "no lane is left")
    cursor.connection.close()
    control.connection.close()


def test_held_events_are_found_at_the_broker(platform, pg, cut_off):
    """The control database has lost the lane: newer events would overtake those that wait in it."""
    first, control = hold(platform, pg, cut_off)
    assert platform.terminate() == 0
    control.execute("delete from platform.held_lane; delete from platform.held_partition")
    cut_off.mend()
    platform.start()
    cursor = tenant_cursor(pg, "zeta")
    wait_until(lambda: first["data"]["id"] in ids(cursor), SOON, "it is applied")
    assert "held.found" in platform.log_text()
    cursor.connection.close()
    control.connection.close()


def test_a_partition_begins_after_the_broker_was_restored_to_lower_epochs(platform, pg, zeta):
    control = pg.connect(database="platform_restores").cursor()
    assert platform.terminate() == 0
    control.execute("update platform.held_partition set epoch = 1000000")
    platform.start()
    event = visit()
    platform.send("zeta", event)
    wait_until(lambda: event["data"]["id"] in ids(zeta), SOON, "it is applied")
    assert "held.epoch_reset" in platform.log_text()
    control.execute("select epoch from platform.held_partition")
    assert control.fetchone()[0] < 1000000
    control.connection.close()


# --- a tenant's database is behind its checkpoint -------------------------------------------------------------------

class Restorable:
    """A server of its own for one tenant: keep() copies its data, restore() puts the copy back as a backup or a standby that lagged would."""

    def __init__(self):
        self.server = harness.Postgres().start()
        self.server.create_database("tenant_eta")
        self.copy = self.server.data + ".copy"

    def url(self):
        return "postgres://%s@%s:%d/tenant_eta" % (self.server.user, self.server.host, self.server.port)

    def keep(self):
        self.server.halt()
        shutil.rmtree(self.copy, ignore_errors=True)
        subprocess.run(["cp", "-a", self.server.data, self.copy], check=True)
        self.server.launch()

    def lose(self):
        self.server.halt()

    def restore(self):
        self.server.halt()
        shutil.rmtree(self.server.data)
        subprocess.run(["cp", "-a", self.copy, self.server.data], check=True)
        self.server.launch()

    def rows(self, sql):
        connection = self.server.connect(database="tenant_eta")
        try:
            cursor = connection.cursor()
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def visits(self):
        return {str(i) for i, in self.rows("select id from crm.visit_log")}


@pytest.fixture(scope="module")
def eta(platform):
    """A tenant with one customer, of whom a copy is kept."""
    own = Restorable()
    try:
        assert platform.ask("POST", "/api/v1/tenants", {"name": "eta", "url": own.url()})[0] == 201
        platform.send("eta", [visit(), named("zero")])
        wait_until(lambda: own.rows("select first_name from crm.customer") == [("zero",)], SOON, "the customer is there")
        own.keep()
        yield own
    finally:
        own.server.stop()


CUSTOMER = str(uuid.uuid4())


def named(name):
    return {"id": str(uuid.uuid4()), "type": "customer.upserted", "at": "2026-11-16T04:05:06Z", "data": {"customer_id": CUSTOMER, "first_name": name}}


def figure(platform, name):
    with urllib.request.urlopen(platform.url + "/metrics/prometheus") as r:
        text = r.read().decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("queen_platform_" + name + " "))


def apply_and_lose(platform, eta, name):
    """Events that the tenant applied and lost: their visits."""
    lost = [visit() for _ in range(5)]
    platform.send("eta", lost + [named(name)])
    want = {e["data"]["id"] for e in lost}
    wait_until(lambda: eta.visits() >= want and eta.rows("select first_name from crm.customer") == [(name,)], SOON, "they are applied")
    eta.restore()
    assert not eta.visits() & want
    return want


def test_events_that_a_restored_tenant_lost_are_applied_again_in_order(platform, eta):
    """Nothing noticed: the tenant lacked them for ever."""
    eta.restore()
    lost, others = apply_and_lose(platform, eta, "lost"), visit()
    platform.send("zeta", others)
    last = visit()
    platform.send("eta", [named("last"), last])
    want = lost | {last["data"]["id"]}
    wait_until(lambda: eta.visits() >= want, SOON, "they are applied again")
    wait_until(lambda: "eta" not in platform.held(), SOON, "no lane is left")
    assert eta.rows("select first_name from crm.customer") == [("last",)]
    assert eta.rows("select count(*) from crm.visit_log") == [(len(want) + 1,)]
    assert "tenant.behind" in platform.log_text() and "replay.done" in platform.log_text()
    assert figure(platform, "replayed_events_total") >= 6 and figure(platform, "tenants_behind_total") >= 1
    assert figure(platform, "replays_incomplete_total") == 0


def test_lost_events_are_applied_before_those_that_are_held(platform, eta):
    eta.restore()
    lost = apply_and_lose(platform, eta, "lost")
    eta.lose()
    last = visit()
    platform.send("eta", [named("last"), last])
    wait_until(lambda: "eta" in platform.held(), SOON, "they are held")
    eta.server.launch()
    want = lost | {last["data"]["id"]}
    wait_until(lambda: eta.visits() >= want, SOON, "all are applied")
    wait_until(lambda: "eta" not in platform.held(), SOON, "no lane is left")
    assert eta.rows("select first_name from crm.customer") == [("last",)]


def test_the_next_owner_of_a_partition_replays_what_the_last_one_had_to(platform, pg, eta):
    """As if the process was killed between noticing the loss and the replay."""
    eta.restore()
    lost = apply_and_lose(platform, eta, "lost")
    eta.lose()
    last = named("last")
    platform.send("eta", last)
    wait_until(lambda: "eta" in platform.held(), SOON, "it is held")
    assert platform.terminate() == 0
    control = pg.connect(database="platform_restores").cursor()
    control.execute("update platform.held_lane set replay = true where tenant = 'eta'")
    assert control.rowcount == 1
    control.connection.close()
    eta.server.launch()
    platform.start()
    wait_until(lambda: eta.visits() >= lost and eta.rows("select first_name from crm.customer") == [("last",)], SOON, "all are applied")
    wait_until(lambda: "eta" not in platform.held(), SOON, "no lane is left")


def saved_stamps(pg):
    control = pg.connect(database="platform_restores").cursor()
    control.execute("select stamp from platform.ingest_stamp where tenant = 'eta'")
    stamps = control.fetchall()
    control.connection.close()
    return stamps


@pytest.mark.parametrize("end", ["terminate", "kill"])
def test_a_tenant_that_went_back_while_no_process_ran_is_repaired(platform, pg, eta, end):
    """The stamps were only in the memory of the process: nothing noticed."""
    eta.restore()
    lost = [visit() for _ in range(5)]
    platform.send("eta", lost + [named("lost")])
    want = {e["data"]["id"] for e in lost}
    wait_until(lambda: eta.visits() >= want and eta.rows("select first_name from crm.customer") == [("lost",)], SOON, "they are applied")
    wait_until(lambda: "eta" not in platform.held(), SOON, "no lane is left")
    if end == "kill":
        at = eta.rows("select (extract(epoch from at) * 1000000)::bigint from crm.ingest_checkpoint")
        wait_until(lambda: saved_stamps(pg) == at, SOON, "the last stamp is saved")
    getattr(platform, end)()
    eta.restore()
    assert not eta.visits() & want
    platform.start()
    platform.forget()
    last = visit()
    platform.send("eta", [named("last"), last])
    want.add(last["data"]["id"])
    # After a kill the partition has an owner until its claim expires.
    wait_until(lambda: eta.visits() >= want, 3 * SOON, "they are applied again")
    wait_until(lambda: "eta" not in platform.held(), SOON, "no lane is left")
    assert eta.rows("select first_name from crm.customer") == [("last",)], "in order"
    assert eta.rows("select count(*) - count(distinct id) from crm.visit_log") == [(0,)], "once"


def test_a_replay_can_be_started_by_hand(platform, zeta):
    """The statement of platform/docs/operations.md, for a loss that nothing has noticed."""
    began = now()
    lost, newer, last = visit(), visit(), visit()
    for e in (lost, newer):
        platform.send("zeta", e)
    wait_until(lambda: ids(zeta) >= {lost["data"]["id"], newer["data"]["id"]}, SOON, "both are applied")
    zeta.execute("delete from crm.visit_log where id = %s; delete from crm.applied_event where id = %s", (lost["data"]["id"], lost["id"]))
    zeta.execute("update crm.ingest_checkpoint set at = 'epoch', position = least(position, extract(epoch from timestamptz %s) * 1000000)", (began,))
    platform.send("zeta", last)
    want = {e["data"]["id"] for e in (lost, newer, last)}
    wait_until(lambda: ids(zeta) >= want, SOON, "the lost event is applied again")
    wait_until(lambda: "zeta" not in platform.held(), SOON, "no lane is left")
    zeta.execute("select count(*) from crm.visit_log where id = any(%s::uuid[])", (list(want),))
    assert zeta.fetchone()[0] == 3


class Replicated:
    """A tenant's server with an asynchronous standby that stops receiving, is promoted, and takes over the tenant."""

    def __init__(self):
        self.primary, self.standby = harness.Postgres(), harness.Postgres()
        self.primary.settings.update({"wal_level": "replica", "max_wal_senders": "4"})
        self.primary.start()
        self.primary.create_database("tenant_kappa")
        subprocess.run(self.standby.prefix + [os.path.join(self.standby.bin, "pg_basebackup"), "-h", self.primary.host, "-p", str(self.primary.port),
                                              "-U", "postgres", "-D", self.standby.data, "-R", "--checkpoint=fast", "--no-sync"],
                       check=True, cwd=self.standby.root)
        os.chmod(self.standby.data, 0o700)
        self.standby.launch()

    @staticmethod
    def ask(server, sql, database="tenant_kappa"):
        connection = server.connect(database=database)
        try:
            cursor = connection.cursor()
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def url(self, server):
        return "postgres://%s@%s:%d/tenant_kappa" % (server.user, server.host, server.port)

    def visits(self, server):
        return {str(i) for i, in self.ask(server, "select id from crm.visit_log")}

    def stop_receiving(self):
        self.ask(self.standby, "alter system set primary_conninfo = ''")
        self.ask(self.standby, "select pg_reload_conf()")
        wait_until(lambda: self.ask(self.primary, "select count(*) from pg_stat_replication") == [(0,)], SOON, "the standby receives nothing")

    def promote(self):
        self.primary.halt()
        assert self.ask(self.standby, "select pg_promote()") == [(True,)]

    def stop(self):
        self.primary.stop()
        self.standby.stop()


def test_events_that_a_promoted_standby_lacks_are_applied_again_in_order(platform):
    pair = Replicated()
    try:
        assert platform.ask("POST", "/api/v1/tenants", {"name": "kappa", "url": pair.url(pair.primary)})[0] == 201
        first = visit()
        platform.send("kappa", first)
        wait_until(lambda: pair.ask(pair.standby, "select to_regclass('crm.visit_log') is not null") == [(True,)]
                   and pair.visits(pair.standby) == {first["data"]["id"]}, SOON, "the standby has the first event")
        pair.stop_receiving()
        lost = [visit() for _ in range(5)]
        platform.send("kappa", lost + [named("lost")])
        want = {e["data"]["id"] for e in [first] + lost}
        wait_until(lambda: pair.visits(pair.primary) == want and pair.ask(pair.primary, "select first_name from crm.customer") == [("lost",)],
                   SOON, "the primary has them")
        pair.promote()
        assert pair.visits(pair.standby) == {first["data"]["id"]}, "they are lost"
        assert platform.ask("PATCH", "/api/v1/tenants/kappa", {"url": pair.url(pair.standby)})[0] == 200
        last = visit()
        platform.send("kappa", [named("last"), last])
        want.add(last["data"]["id"])
        wait_until(lambda: pair.visits(pair.standby) == want, SOON, "they are applied again")
        wait_until(lambda: "kappa" not in platform.held(), SOON, "no lane is left")
        assert pair.ask(pair.standby, "select first_name from crm.customer") == [("last",)], "in order"
        platform.remove_tenant("kappa", drop=False)
    finally:
        pair.stop()


def test_a_tenant_without_a_checkpoint_goes_on_and_is_reported(platform, eta):
    """It may be a new database of the same name: the old one's events are not written into it."""
    eta.restore()
    first = visit()
    platform.send("eta", first)
    wait_until(lambda: first["data"]["id"] in eta.visits(), SOON, "it is applied")
    wait_until(lambda: "eta" not in platform.held(), SOON, "no lane is left")
    eta.rows("truncate crm.ingest_checkpoint, crm.applied_event, crm.visit_log")
    before, second = figure(platform, "replays_incomplete_total"), visit()
    platform.send("eta", second)
    wait_until(lambda: eta.visits() == {second["data"]["id"]}, SOON, "the next event is applied")
    wait_until(lambda: "eta" not in platform.held(), SOON, "no lane is left")
    assert "replay.impossible" in platform.log_text()
    assert figure(platform, "replays_incomplete_total") == before + 1


@pytest.mark.parametrize("pause", [0, 6], ids=["before its stamps were saved", "after they were saved"])
def test_a_tenant_that_is_removed_and_added_again_has_lost_nothing(platform, pg, pause):
    """Its database is another one: the stamps of the old one were compared with it, and its first events were held."""
    name = "theta%d" % pause
    for _ in range(2):
        platform.add_tenant(name)
        event = visit()
        platform.send(name, event)
        cursor = tenant_cursor(pg, name)
        wait_until(lambda: ids(cursor) == {event["data"]["id"]}, SOON, "it is applied")
        cursor.connection.close()
        time.sleep(pause)
        assert platform.ask("DELETE", "/api/v1/tenants/%s?drop=true" % name)[0] == 200
    log = platform.log_text()
    assert "tenant.behind tenant=%s " % name not in log and "replay.impossible lane=0/%s " % name not in log


def test_a_mysql_tenant_that_went_back_is_repaired(platform, mariadb):
    mariadb.create_database("went_back")
    assert platform.ask("POST", "/api/v1/tenants", {"name": "theta", "url": mariadb.url("went_back")})[0] == 201
    first, second, third = visit(), visit(), visit()

    def ids():
        return {i for i, in mariadb.ask("select id from visit_log", "went_back")}
    platform.send("theta", first)
    wait_until(lambda: ids() == {first["data"]["id"]}, SOON, "the first is applied")
    kept = mariadb.ask("select position, at from ingest_checkpoint", "went_back")
    platform.send("theta", second)
    wait_until(lambda: len(ids()) == 2, SOON, "the second is applied")
    mariadb.ask("delete from visit_log where id = '%s'; delete from applied_event where id = '%s'; update ingest_checkpoint set position = %s, at = '%s'"
                % (second["data"]["id"], second["id"], *kept[0]), "went_back")
    platform.send("theta", third)
    wait_until(lambda: ids() == {e["data"]["id"] for e in (first, second, third)}, SOON, "the lost one is applied again")
    wait_until(lambda: "theta" not in platform.held(), SOON, "no lane is left")
