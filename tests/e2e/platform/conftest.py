"""Fixtures of the platform's black-box tests, on top of those of the broker (../conftest.py)."""
import os
import shutil
import sys
import tempfile
import uuid

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402
from process import MariaDB, Platform  # noqa: E402


def control(pg, database):
    """The environment of a platform whose control database is on `pg`."""
    return {"PLATFORM_PG_HOST": pg.host, "PLATFORM_PG_PORT": pg.port, "PLATFORM_PG_USER": pg.user, "PLATFORM_PG_PASSWORD": "x",
            "PLATFORM_PG_DB": database}


@pytest.fixture(scope="session")
def platform(pg, broker):
    """The platform of the session, with its control database on `pg` and the events of `broker`."""
    p = Platform({**control(pg, "platform"), "QUEEN_URL": broker.url})
    harness.living.append(p)
    try:
        yield p.start()
    finally:
        harness.end(p, clean_exit=True)


@pytest.fixture
def make_platform(pg):
    """make_platform(NAME=value, ...): one more platform, ready, for this test only; control database `database`, or embedded=True."""
    made, folders = [], []

    def make(start=True, embedded=False, database=None, args=(), **env):
        if embedded:
            folders.append(tempfile.mkdtemp(prefix="queen-e2e-platform-"))
            os.chmod(folders[-1], 0o755)
            where = {"PLATFORM_DATA_DIR": folders[-1]}
        else:
            where = control(pg, database or "platform_" + uuid.uuid4().hex[:8])
        p = Platform({"QUEEN_URL": "http://127.0.0.1:9", **where, **env}, args)
        made.append(p)
        harness.living.append(p)
        return p.start() if start else p

    yield make
    try:
        for p in made:
            harness.end(p)
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def tenant_name():
    """A name nobody has used."""
    return "t-" + uuid.uuid4().hex[:12]


@pytest.fixture
def tenant(platform, tenant_name):
    """A tenant of the session's platform, gone afterwards: its name."""
    platform.add_tenant(tenant_name)
    yield tenant_name
    platform.remove_tenant(tenant_name)


@pytest.fixture(scope="session")
def mariadb():
    """A real MariaDB: .create_database(name), .url(database), .ask(sql, database)."""
    server = MariaDB()
    try:
        yield server.start()
    finally:
        server.stop()
