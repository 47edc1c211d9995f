"""The directory of tenants (platform/sql/control/tenants): concurrent changes."""
import os
import threading
import uuid

import pytest

import sqlcore
from harness import wait_until

SQL = os.path.join(sqlcore.REPO, "platform", "sql", "control")
URL = "postgresql://app@db1:5432/crm"


@pytest.fixture
def connect(pg):
    name, made = pg.create_database("directory_" + uuid.uuid4().hex[:8]), []
    conn = pg.connect(database=name)
    sqlcore.load(conn, SQL, "platform")
    conn.close()

    def make(autocommit=True):
        made.append(pg.connect(database=name, autocommit=autocommit))
        return made[-1].cursor()
    yield make
    for c in made:
        c.close()


def test_an_address_that_is_being_added_is_not_given_to_another_tenant(connect):
    adding, changing, watching = connect(False), connect(), connect()
    watching.execute("select platform.tenant_add('a', 'postgresql', 'postgresql://app@db1:5432/old', 'old', null)")
    adding.execute("select platform.tenant_add('b', 'postgresql', %s, 'crm', null)", (URL,))
    assert adding.fetchone() == ("added",)
    outcome = []

    def change():
        changing.execute("select outcome from platform.tenant_rotate('a', %s, false, null, 'crm', 'postgresql')", (URL,))
        outcome.append(changing.fetchone()[0])

    def waits_or_is_done():
        watching.execute("select count(*) from pg_stat_activity where pid = %s and wait_event_type = 'Lock'", (changing.connection.info.backend_pid,))
        return watching.fetchone()[0] == 1 or outcome
    thread = threading.Thread(target=change)
    thread.start()
    wait_until(waits_or_is_done, 60, "the change waits")
    adding.connection.commit()
    thread.join(60)
    assert outcome == ["database"]
