"""Fixtures of the black-box tests, built from harness.py."""
import os
import shutil
import sys
import tempfile
import uuid

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import contract  # noqa: E402
import harness  # noqa: E402
import pooler  # noqa: E402
import sqlcore  # noqa: E402

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for broker in harness.living:
            state = "running" if broker.alive else "ended with %s" % (broker.process and broker.process.returncode)
            report.sections.append(("log of the broker on port %d (%s)" % (broker.port, state), broker.log_tail()))


def pytest_sessionfinish(session, exitstatus):
    """All answers of the session against docs/reference/openapi."""
    wrong = contract.verdict()
    if wrong:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        reporter.write_line("")
        for text in wrong:
            reporter.write_line("openapi: " + text, red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection_modifyitems(config, items):
    if harness.BROKERS == 2:
        left_out = [i for i in items if i.get_closest_marker("one_broker")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [i for i in items if not i.get_closest_marker("one_broker")]


@pytest.fixture(scope="session")
def pg():
    """The PostgreSQL all ordinary brokers share: .connect() gives a connection, .env() a broker's environment."""
    server = harness.Postgres()
    try:
        server.start()
        server.pooler = pooler.Pooler(server).start() if harness.POOLER else None
        yield server
    finally:
        if server.pooler:
            server.pooler.stop()
        server.stop()


@pytest.fixture(scope="session")
def frail_pg():
    """A second one, for tests that crash it: each takes a database of its own and leaves the server running."""
    server = harness.Postgres()
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(scope="session")
def broker(pg):
    """The broker of the session, two workers, on `pg`."""
    b = harness.begin({**pg.env(), "SIDECAR_POOL_SIZE": "8"})
    if harness.BROKERS == 2:
        b.twin = harness.begin({**pg.env(), "SIDECAR_POOL_SIZE": "8"})
    yield b
    if b.twin:
        harness.end(b.twin, clean_exit=True)
    harness.end(b, clean_exit=True)


@pytest.fixture(scope="session")
def broker2(pg, broker):
    """A second broker on the same database; it is not a peer of the first."""
    b = harness.begin({**pg.env(), "SIDECAR_POOL_SIZE": "8"})
    yield b
    harness.end(b, clean_exit=True)


@pytest.fixture(scope="session")
def metered(pg):
    """A broker on a database of its own that writes its metrics every second; .sql(text, *args) gives rows."""
    database = pg.create_database("metered")
    b = harness.begin({**pg.env(database), "SIDECAR_POOL_SIZE": "8", "METRICS_AGGREGATE_INTERVAL_S": "1",
                "METRICS_SAMPLE_INTERVAL_MS": "100", "STATS_INTERVAL_MS": "500", "WORKER_ID": "metered-1"})
    conn = pg.connect(database=database)

    def run(text, *args):
        with conn.cursor() as cur:
            cur.execute(text, args or None)
            return cur.fetchall() if cur.description else []
    b.sql = run
    yield b
    conn.close()
    harness.end(b, clean_exit=True)


@pytest.fixture
def make_broker(pg):
    """make_broker(NAME=value, ...): one more broker on `pg`, ready, for this test only.

    start=False gives it unstarted; args are command line arguments; embedded=True leaves PG_* unset and gives it a data
    directory of its own (kept until the test ends, so that a second one can be started on it).  server: another PostgreSQL.
    """
    made, folders = [], []

    def make(start=True, args=(), embedded=False, data_dir=None, port=None, database=None, server=pg, **env):
        if embedded:
            if data_dir is None:
                data_dir = tempfile.mkdtemp(prefix="queen-e2e-data-")
                os.chmod(data_dir, 0o755)
                folders.append(data_dir)
            environment = {"QUEEN_DATA_DIR": data_dir, **env}
        else:
            environment = {**server.env(database), "SIDECAR_POOL_SIZE": "4", **env}
        b = harness.Broker(environment, args, port)
        made.append(b)
        harness.living.append(b)
        return b.start() if start else b

    yield make
    try:
        for b in made:
            harness.end(b)
    finally:
        for b in made:
            b.dispose()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def queue():
    """An unused queue name."""
    return "t-" + uuid.uuid4().hex[:16]


@pytest.fixture
def group():
    return "g-" + uuid.uuid4().hex[:12]


@pytest.fixture
def db(pg, broker):
    """A connection with autocommit, after the schema exists."""
    conn = pg.connect()
    yield conn
    conn.close()


@pytest.fixture
def sql(db):
    """sql(text, *args): the rows; [] for statements without any."""
    def run(text, *args):
        with db.cursor() as cur:
            cur.execute(text, args or None)
            return cur.fetchall() if cur.description else []
    return run


# ---- the SQL functions without a broker ----

@pytest.fixture(scope="session")
def core_db(pg):
    name = pg.create_database("sqlcore_" + uuid.uuid4().hex[:8])
    conn = pg.connect(database=name)
    sqlcore.load(conn)
    conn.close()
    return name


@pytest.fixture
def connect(pg, core_db):
    """connect(): one more Core on the database of these tests."""
    made = []

    def make(autocommit=True):
        made.append(pg.connect(autocommit=autocommit, database=core_db))
        return sqlcore.Core(made[-1])
    yield make
    for conn in made:
        conn.close()


@pytest.fixture
def core(connect):
    return connect()


@pytest.fixture
def lane(core, queue):
    """(number, id) of one fresh lane."""
    core.configure(queue)
    return core.lanes((queue, "p"))[0]
