"""kill -9 of the platform between sending to the broker and recording it: every customer gets one message, and every change is sent once.

The notes are held up by a lock of the test, so the kill comes at exactly that moment; the trigger is delivered again when its lease ends.
"""
import harness
import pytest
from segment_rig import Rig, Tenant

CUSTOMERS = 1200  # three pages
RICH = {"attribute": "wallet_balance", "operator": "gt", "value": 50}
HOLD_UP = """
    create function crm.held_up() returns trigger language plpgsql as
        $$ begin perform pg_advisory_xact_lock_shared(4711); return coalesce(new, old); end $$;
    create trigger held_up before update on crm.campaign_run for each row execute function crm.held_up();
    create trigger held_up before delete on crm.segment_outbox for each row execute function crm.held_up();"""


@pytest.fixture
def rig():
    made = Rig()
    harness.living.extend([made.platform, made.broker])
    yield made
    harness.living.remove(made.platform)
    harness.living.remove(made.broker)
    made.close()


@pytest.fixture
def tenant(rig):
    t = Tenant(rig, "acme")
    t.sql("""with c as (insert into crm.customer (customer_uuid, email, email_opt_in, created_at, updated_at)
                        select gen_random_uuid(), 'a@example.org', true, now(), now() from generate_series(1, %s) returning customer_uuid)
             insert into crm.wallet_account (id, customer_id, balance, updated_at) select gen_random_uuid(), customer_uuid, 80, now() from c""", CUSTOMERS)
    t.sql("select crm.changed(array(select customer_uuid from crm.customer), true, true)")
    t.build(views=False)
    t.sql(HOLD_UP)
    return t


def everybody(tenant):
    return {r[0] for r in tenant.sql("select customer_uuid::text from crm.customer")}


def waiting(tenant):
    return tenant.sql("select count(*) from pg_locks where locktype = 'advisory' and not granted and database = "
                      "(select oid from pg_database where datname = current_database())")[0][0]


def kill_when_held_up(rig, tenant, cause, queue):
    """The messages in the queue when the platform died: sent and not recorded."""
    tenant.sql("select pg_advisory_lock(4711)")
    cause()
    harness.wait_until(lambda: waiting(tenant) == 1, 25 * harness.TIME_FACTOR, "the first page is told")
    rig.platform.kill()
    tenant.sql("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and not granted")  # its request must have no effect
    tenant.sql("select pg_advisory_unlock(4711)")
    got = read(rig, queue)
    assert 0 < len(got) < CUSTOMERS
    rig.platform.start()
    return got


def read(rig, queue):
    return [m["data"] for m in rig.broker.drain(queue, consumerGroup="reader")]


def test_a_campaign_goes_on_where_it_was_and_writes_to_nobody_twice(rig, tenant):
    tenant.expect(201, "POST", "/segments", {"name": "rich", "filter": RICH})
    got = kill_when_held_up(rig, tenant, lambda: tenant.expect(201, "POST", "/campaigns", {
        "name": "hello", "segment": "rich", "when": "now", "queue": "mail", "template": {"to": "{{customer}}"}}), "mail")
    harness.wait_until(lambda: tenant.sql("select finished_at from crm.campaign_run")[0][0], 120 * harness.TIME_FACTOR, "the run is over")
    got += read(rig, "mail")
    assert len(got) == CUSTOMERS and {m["to"] for m in got} == everybody(tenant)


def test_entries_and_exits_are_sent_once(rig, tenant):
    def all_leave():
        tenant.sql("update crm.wallet_account set balance = 0")
        tenant.sql("select crm.changed(array(select customer_uuid from crm.customer), true, false)")
    tenant.expect(201, "POST", "/segments", {"name": "rich", "filter": RICH})
    tenant.expect(200, "PUT", "/segments/rich/subscription", {"queue": "told", "everySeconds": 1})
    harness.wait_until(lambda: tenant.sql("select watched_since from crm.segment")[0][0], 30 * harness.TIME_FACTOR, "the first look")
    got = kill_when_held_up(rig, tenant, all_leave, "told")
    harness.wait_until(lambda: tenant.sql("select count(*) from crm.segment_outbox")[0][0] == 0, 120 * harness.TIME_FACTOR, "all is told")
    got += read(rig, "told")
    assert len(got) == CUSTOMERS and {m["customer"] for m in got} == everybody(tenant) and {m["type"] for m in got} == {"segment.left"}
