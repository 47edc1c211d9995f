"""Errors of a MariaDB tenant: those that one event causes make it a dead letter, those of the server hold the tenant's events."""
import uuid

import pytest

import harness
from harness import wait_until
from rig_events import Platform
from test_events_faults import dead, peak_mb, visit

SOON = 30 * harness.TIME_FACTOR


@pytest.fixture(scope="module")
def platform(pg, broker):
    p = Platform(pg, broker.url, PLATFORM_QUEUE="myfaults-" + uuid.uuid4().hex[:8], PLATFORM_PARTITIONS=1, database="platform_myfaults",
                 PLATFORM_PROBE_MS=200, PLATFORM_SEGMENT_TIMEOUT_MS=60000)
    yield p.start()
    assert p.terminate() == 0, p.log_tail()


class Tenant:
    def __init__(self, platform, mariadb):
        self.name, self.mariadb = "m" + uuid.uuid4().hex[:8], mariadb
        self.database = mariadb.create_database(self.name)
        platform.add_tenant(self.name, url=mariadb.url(self.database))

    def ask(self, text):
        return self.mariadb.ask(text, self.database)

    def count(self):
        return int(self.ask("select count(*) from visit_log")[0][0])

    def signal(self, state, number, when="true"):
        """A trigger of the tenant's own that refuses visits."""
        number = " set mysql_errno = %d, message_text = 'refused on purpose'" % number if number else " set message_text = 'refused on purpose'"
        self.ask("delimiter //\ncreate trigger fault before insert on visit_log for each row begin if %s then signal sqlstate '%s'%s; end if; end //"
                 % (when, state, number))


@pytest.fixture
def tenant(platform, mariadb):
    t = Tenant(platform, mariadb)
    yield t
    platform.remove_tenant(t.name)


def costs_one_event(platform, broker, tenant, poison, reason):
    good = [visit() for _ in range(9)]
    platform.send(tenant.name, good[:4] + [poison] + good[4:])
    wait_until(lambda: poison["id"] in dead(broker, platform), SOON, "the event is a dead letter", 0.1)
    assert reason in dead(broker, platform)[poison["id"]]
    wait_until(lambda: tenant.count() == 9, SOON, "the others are applied", 0.1)
    assert tenant.name not in platform.held()


@pytest.mark.parametrize("state, number", [("45000", None), ("45000", 5000), ("HY000", None), ("HY000", 3819), ("HY000", 1366), ("HY000", 1526),
                                           ("42000", 1118), ("22003", 1690), ("23000", 4025), ("HY000", 4025), ("HY000", 4038)])
def test_an_error_that_a_trigger_raises_for_one_event_costs_that_event_alone(platform, broker, tenant, state, number):
    tenant.signal(state, number, "new.service = 'poison'")
    costs_one_event(platform, broker, tenant, visit(service="poison"), "refused on purpose")


@pytest.mark.parametrize("change, reason", [
    ("alter table visit_log modify service varchar(5)", "Data too long"),
    ("alter table visit_log add constraint mine check (service <> 'poisoned')", "CONSTRAINT `mine` failed"),
    ("alter table visit_log modify service enum('a', 'b')", "Data truncated"),
    ("alter table visit_log modify service int", "Incorrect integer value"),
    ("alter table visit_log modify service varchar(20) character set ascii", "Incorrect string value"),
])
def test_a_value_that_a_column_of_the_tenant_refuses_costs_that_event_alone(platform, broker, tenant, change, reason):
    tenant.ask(change)
    costs_one_event(platform, broker, tenant, visit(service="poisoned" if "ascii" not in change else "отрава"), reason)


def test_an_event_that_a_unique_index_of_the_tenant_refuses_is_a_dead_letter(platform, broker, tenant):
    """A duplicate key also means that two transactions applied one event, so it was retried for ever."""
    tenant.ask("create unique index mine on visit_log (service(50))")
    platform.send(tenant.name, visit(service="one"))
    wait_until(lambda: tenant.count() == 1, SOON, "the first one is applied", 0.1)
    poison, good = visit(service="one"), [visit(service="good %d" % i) for i in range(4)]
    platform.send(tenant.name, good[:2] + [poison] + good[2:])
    wait_until(lambda: poison["id"] in dead(broker, platform), SOON, "the event is a dead letter", 0.1)
    assert "Duplicate entry" in dead(broker, platform)[poison["id"]]
    wait_until(lambda: tenant.count() == 5, SOON, "the others are applied", 0.1)
    assert tenant.name not in platform.held()


@pytest.mark.parametrize("state, number", [("HY000", 1205), ("40001", 1213), ("HY000", 1290), ("HY000", 1836), ("25006", 1792), ("08004", 1040),
                                           ("HY000", 1021), ("HY000", 1114), ("HY000", 1030), ("42S02", 1146), ("42000", 1142), ("HY001", 1041),
                                           ("08S01", 1053), ("70100", 1317)])
def test_an_error_of_the_server_blames_no_event(platform, broker, tenant, state, number):
    tenant.signal(state, number)
    event = visit()
    platform.send(tenant.name, event)
    wait_until(lambda: tenant.name in platform.held(), SOON, "its events are held", 0.1)
    assert event["id"] not in dead(broker, platform)
    tenant.ask("drop trigger fault")
    wait_until(lambda: tenant.count() == 1, SOON, "the held event is applied", 0.1)
    wait_until(lambda: tenant.name not in platform.held(), SOON, "no lane is left", 0.1)


def test_a_result_that_is_too_large_is_not_kept_in_memory(platform, tenant):
    """The owner of the database has made a table of ours very large."""
    tenant.ask("rename table customer to kept")
    tenant.ask("create table customer (id int primary key, customer_uuid text, first_name longtext, last_name text, email text, phone text, city text)")
    tenant.ask("insert into customer select seq, uuid(), repeat('x', 15000000), 'l', 'e', 'p', 'c' from seq_1_to_20")
    answer = platform.post("/api/v1/tenants/%s/segments/preview" % tenant.name, {"filter": {"all": True}, "limit": 1000}, timeout=120)
    assert answer.status == 503 and "larger than" in answer.json["error"], answer
    assert peak_mb(platform.process) < 500
    tenant.ask("drop table customer; rename table kept to customer")
    event = visit()
    platform.send(tenant.name, event)
    wait_until(lambda: tenant.count() == 1, SOON, "the tenant is served again", 0.1)


def test_a_transaction_that_is_larger_than_a_packet_is_split(platform, mariadb, tenant):
    """The server ends the connection of a statement that is larger than max_allowed_packet."""
    (size,), = mariadb.ask("select @@global.max_allowed_packet")
    mariadb.ask("set global max_allowed_packet = 65536")
    try:
        events = [visit(service="s" * 200) for _ in range(300)]
        for i in range(0, 300, 100):
            platform.send(tenant.name, events[i:i + 100])
        wait_until(lambda: tenant.count() == 300, 2 * SOON, "all are applied", 0.2)
    finally:
        mariadb.ask("set global max_allowed_packet = %s" % size)
