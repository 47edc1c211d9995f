"""A broker, a platform and a tenant whose tables a test writes itself: for tests of segments and campaigns."""
import os

import psycopg2
import pytest
from psycopg2.extras import execute_values

import harness
from process import Platform

MODELS = ("customer_attributes", "customer_transactions")
TABLES = ("customer", "subscription_account", "wallet_account", "package_account", "transaction_log", "visit_log", "purchase_log")


def ask(platform, method, path, body=None, timeout=60):
    """(status, JSON)"""
    answer = platform.request(method, path, body, timeout=timeout)
    return answer.status, answer.json


class Tenant:
    def __init__(self, rig, name):
        self.rig, self.name = rig, name
        status, answer = ask(rig.platform, "POST", "/api/v1/tenants", {"name": name})
        assert status == 201, answer
        self.connection = psycopg2.connect(host=rig.pg.host, port=rig.pg.port, user=rig.pg.user, dbname=answer["database"])
        self.connection.autocommit = True

    def sql(self, text, *args):
        with self.connection.cursor() as cur:
            cur.execute(text, args or None)
            return cur.fetchall() if cur.description else []

    def write(self, tables):
        """Rows of naive.generate() into the write model, as one ingest transaction would."""
        self.connection.autocommit = False
        with self.connection.cursor() as cur:
            for table, rows in tables.items():
                columns = list(rows[0])
                execute_values(cur, "insert into crm.%s (%s) values %%s" % (table, ", ".join(columns)),
                               [tuple(row[c] for c in columns) for row in rows])
            cur.execute("select crm.changed(array(select customer_uuid from crm.customer), true, true)")
        self.connection.commit()
        self.connection.autocommit = True

    def build(self, live=True, views=True):
        """Brings the read models up to date. (The platform does this by itself; a test needs to wait until it is done.)"""
        for model in MODELS:
            if live:
                harness.wait_until(lambda: self.sql("select crm.fill_live(%s, 1000)", model)[0][0] == "ready", 60, "live " + model, 0.01)
            if views:
                self.sql("drop materialized view if exists crm.%s_mv cascade" % model)
                query = self.sql("select crm.read_model_query(%s, false)", model)[0][0]
                self.sql("create materialized view crm.%s_mv as %s" % (model, query))
                self.sql("""update crm.read_model set view_version = crm.read_model_version(model), view_as_of = now(),
                                   view_mark = crm.model_mark(model) where model = %s""", model)

    def ask(self, method, path, body=None):
        return ask(self.rig.platform, method, "/api/v1/tenants/%s%s" % (self.name, path), body)

    def expect(self, status, method, path, body=None):
        got, answer = self.ask(method, path, body)
        assert got == status, (got, answer)
        return answer

    def count(self, tree, path=None):
        return self.expect(200, "POST", "/segments/count", {"filter": tree, "maxAgeMs": 0, **({"path": path} if path else {})})


class Rig:
    def __init__(self, **env):
        self.pg = harness.Postgres()
        self.pg.start()
        self.broker = harness.Broker(self.pg.env()).start()
        self.platform = Platform({"PLATFORM_PG_HOST": self.pg.host, "PLATFORM_PG_PORT": self.pg.port, "PLATFORM_PG_USER": self.pg.user,
                                  "PLATFORM_PG_PASSWORD": "x", "QUEEN_URL": self.broker.url, **env}).start()

    def close(self):
        code = self.platform.dispose()
        log = self.platform.log_text()
        os.unlink(self.platform.log)
        self.broker.dispose()
        self.pg.stop()
        assert code == 0, log[-4000:]


@pytest.fixture(scope="module")
def rig():
    made = Rig(PLATFORM_SEGMENT_TIMEOUT_MS="1500", PLATFORM_REFRESH_POLL_MS="86400000")
    yield made
    made.close()
