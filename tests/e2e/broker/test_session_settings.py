"""Defaults of the broker's role, and objects of other users of the database, do not change the behaviour of the broker.

The role of this broker has REPEATABLE READ and a search_path of its own as defaults.  Mallory may create objects in
"public" and has made operators and functions there which fit calls better than those of PostgreSQL; each notes in
whose name it was run.
"""
import json
import uuid

import pytest

import harness
from harness import Background, await_lock

pytestmark = pytest.mark.one_broker

TRAPS = """
create table public.caught (who text, what text);
grant insert on public.caught to public;
create function public.trap_vt(varchar, text) returns boolean language plpgsql as $$
    begin insert into public.caught values (current_user, 'varchar, text'); return $1::text operator(pg_catalog.=) $2; end $$;
create function public.trap_tv(text, varchar) returns boolean language plpgsql as $$
    begin insert into public.caught values (current_user, 'text, varchar'); return $1 operator(pg_catalog.=) $2::text; end $$;
create function public.trap_vv(varchar, varchar) returns boolean language plpgsql as $$
    begin insert into public.caught values (current_user, 'varchar, varchar'); return $1::text operator(pg_catalog.=) $2::text; end $$;
create operator public.= (leftarg = varchar, rightarg = text, function = public.trap_vt);
create operator public.= (leftarg = text, rightarg = varchar, function = public.trap_tv);
create operator public.= (leftarg = varchar, rightarg = varchar, function = public.trap_vv);
create function public.length(varchar) returns int language plpgsql as $$
    begin insert into public.caught values (current_user, 'length'); return pg_catalog.length($1::text); end $$;
create function public.lower(varchar) returns text language plpgsql as $$
    begin insert into public.caught values (current_user, 'lower'); return pg_catalog.lower($1::text); end $$;
"""


class Site:
    def __init__(self, pg):
        self.pg = pg
        tag = uuid.uuid4().hex[:8]
        self.role, self.mallory, self.database = "queen_" + tag, "mallory_" + tag, "traps_" + tag
        admin = pg.connect()
        with admin.cursor() as cur:
            cur.execute('create role "%s" login' % self.role)
            cur.execute('create role "%s" login' % self.mallory)
            cur.execute('create database "%s" owner "%s"' % (self.database, self.role))
            cur.execute('alter role "%s" set default_transaction_isolation = \'repeatable read\'' % self.role)
            cur.execute('alter role "%s" set search_path = public, pg_catalog' % self.role)
        admin.close()
        self.admin = pg.connect(database=self.database)
        self.sql('grant create on schema public to "%s"' % self.mallory)
        self.sql('set role "%s"' % self.mallory)
        self.sql(TRAPS)
        self.sql("reset role")
        self.broker = harness.begin({**pg.env(self.database), "PG_USER": self.role, "SIDECAR_POOL_SIZE": "4"})

    def sql(self, text, *args):
        with self.admin.cursor() as cur:
            cur.execute(text, args or None)
            return cur.fetchall() if cur.description else []

    def caught(self):
        return self.sql("select distinct who, what from public.caught order by 1, 2")

    def close(self):
        harness.end(self.broker, clean_exit=True)
        self.admin.close()


@pytest.fixture(scope="module")
def site(pg):
    s = Site(pg)
    yield s
    s.close()


# --- the isolation level --------------------------------------------------------------------------------------------

def test_a_push_that_waits_for_a_lane_is_stored(site, queue):
    site.broker.put(queue, ["a"], partition="p")
    holder = site.pg.connect(autocommit=False, database=site.database)
    cur = holder.cursor()
    cur.execute("select queen.push_messages_v2(%s::jsonb)", (json.dumps([{"queue": queue, "partition": "p", "payload": "b"}]),))
    waits = Background(lambda: site.broker.push([{"queue": queue, "partition": "p", "payload": "c"}]))
    await_lock(site.pg, waits)
    holder.commit()
    holder.close()
    assert [r["status"] for r in waits.result().expect(201).json] == ["queued"]
    assert [m["data"] for m in site.broker.drain(queue)] == ["a", "b", "c"]


def test_a_push_that_waits_finds_its_duplicate(site, queue):
    site.broker.put(queue, ["a"], partition="p")
    item = {"queue": queue, "partition": "p", "payload": "b", "transactionId": "the same"}
    holder = site.pg.connect(autocommit=False, database=site.database)
    cur = holder.cursor()
    cur.execute("select queen.push_messages_v2(%s::jsonb)", (json.dumps([item]),))
    waits = Background(lambda: site.broker.push([item]))
    await_lock(site.pg, waits)
    holder.commit()
    holder.close()
    assert [r["status"] for r in waits.result().expect(201).json] == ["duplicate"]


# --- the search path ------------------------------------------------------------------------------------------------

def use(broker, queue):
    """A bit of everything, by HTTP."""
    broker.configure(queue, namespace="n", task="t", leaseTime=30, retryLimit=1, retentionEnabled=True, retentionSeconds=3600)
    broker.put(queue, ["a", "b"], partition="p")
    broker.push([{"queue": queue, "partition": "p", "payload": "c", "transactionId": "x"}]).expect(201)
    broker.push([{"queue": queue, "partition": "p", "payload": "c", "transactionId": "x"}]).expect(201)
    broker.push([{"queue": queue, "partition": "p", "payload": "later", "delaySeconds": 0.01}]).expect(201)
    messages = broker.take(queue, "p", consumerGroup="g", batch=3)
    broker.ack(messages[0], "failed", consumerGroup="g")
    messages = broker.take(queue, consumerGroup="g", batch=3)
    broker.ack(messages[0], "dlq", consumerGroup="g")
    broker.transaction([{"type": "push", "items": [{"queue": queue, "partition": "p", "payload": "d"}]}])
    broker.drain(queue, consumerGroup="h")
    broker.take(namespace="n", task="t", consumerGroup="k")
    for path in ("/api/v1/resources/queues", "/api/v1/resources/queues/" + queue, "/api/v1/resources/overview", "/api/v1/status",
                 "/api/v1/status/queues", "/api/v1/messages?queue=" + queue, "/api/v1/dlq?queue=" + queue, "/api/v1/consumer-groups",
                 "/api/v1/resources/namespaces", "/api/v1/resources/tasks", "/metrics/prometheus"):
        broker.get(path).expect(200)
    broker.post("/api/v1/stats/refresh").expect(200)
    broker.request("DELETE", "/api/v1/consumer-groups/h").expect(200)
    broker.request("DELETE", "/api/v1/resources/queues/" + queue).expect(200)


def test_the_broker_runs_no_code_of_other_users(site, queue):
    use(site.broker, queue)
    assert site.caught() == []


def test_sql_functions_run_no_code_of_other_users(site, queue):
    """As an application calls them, with the search_path that PostgreSQL has by default."""
    def call(function, *args):
        return site.sql("select queen.%s(%s)" % (function, ", ".join(["%s::jsonb"] * len(args))), *[json.dumps(a) for a in args])[0][0]

    assert site.sql("show search_path") == [('"$user", public',)]
    site.sql("select 'a'::varchar = 'a'::text")
    assert site.caught() != [], "the trap works"
    site.sql("truncate public.caught")

    site.sql("select queen.configure_queue_v1(%s, %s::jsonb)", queue, json.dumps({"leaseTime": 30}))
    item = {"queue": queue, "partition": "p", "payload": 1, "transactionId": "t"}
    call("push_messages_v2", [item, {**item, "transactionId": "u"}])
    call("push_messages_v3", [item])
    popped = call("pop_unified_batch", [{"idx": 0, "queue_name": queue, "consumer_group": "g", "batch_size": 1, "lease_seconds": 30, "worker_id": "w"}])
    assert "transactionId" in json.dumps(popped), popped
    call("pop_specific_batch", [{"idx": 0, "queue_name": queue, "partition_name": "p", "consumer_group": "h", "batch_size": 1,
                                 "lease_seconds": 30, "worker_id": "w"}])
    call("execute_transaction_v2", [{"type": "push", "items": [{**item, "transactionId": "v"}]}])
    for view in ("messages", "messages_consumed", "partition_consumers", "partition_lookup", "partitions"):
        site.sql("select * from queen.%s" % view)
    site.sql("delete from queen.messages where transaction_id::text = 'u'")
    site.sql("update queen.queues set retention_enabled = true, retention_seconds = 60 where name::text = %s", queue)
    assert site.caught() == []
    site.sql("delete from queen.queues where name::text = %s", queue)


PINNED = """
select p.oid::regprocedure::text, l.lanname, p.provolatile::text,
       exists (select from unnest(p.proconfig) c where c like 'search_path=%%, pg_temp')
  from pg_proc p join pg_language l on l.oid = p.prolang
 where p.pronamespace = %s::regnamespace"""


def test_every_function_has_a_search_path_unless_it_becomes_part_of_its_caller(core):
    """PostgreSQL inlines functions of language sql that are stable or immutable, if they have no settings."""
    functions = core.rows(PINNED, "queen")
    assert len(functions) > 200
    wrong = [name for name, language, volatile, pinned in functions
             if not pinned and not (language == "sql" and volatile in "si")]
    assert wrong == []
    surface = {"push_messages_v2", "push_messages_v3", "pop_unified_batch", "pop_specific_batch", "ack_messages_v2", "renew_lease_v2",
               "execute_transaction_v2", "configure_queue_v1"}
    assert surface <= {name.split("(")[0].split(".")[-1] for name, _, _, pinned in functions if pinned}
