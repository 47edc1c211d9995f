"""The process `queen platform`: starting, health, manners, settings, the end; its commands."""
import os
import signal
import subprocess
import uuid

import pytest

from cli import Cli
from harness import BIN, START_TIMEOUT, Background, wait_until


@pytest.fixture
def cli(platform, tmp_path):
    c = Cli(platform, tmp_path)
    c.env["PLATFORM_URL"] = platform.url
    return c


def test_it_is_healthy_and_described(platform):
    assert platform.get("/health").expect(200).json["status"] == "healthy"
    assert platform.get("/live").expect(200).json == {"status": "live"}
    assert platform.get("/ready").expect(200).json == {"status": "ready"}
    assert "queen_platform_build_info" in platform.get("/metrics/prometheus").expect(200).text
    assert platform.get("/metrics").expect(200).json["memory"]["rss"] > 0
    paths = platform.get("/openapi.json").expect(200).json["paths"]
    assert "/api/v1/tenants/{tenant}" in paths and "/health" in paths


def test_its_manners_are_those_of_the_broker(platform):
    assert platform.get("/api/v1/nothing").expect(404).json == {"error": "not found"}
    r = platform.request("PUT", "/api/v1/tenants").expect(405)
    assert "POST" in r.headers["allow"]
    r = platform.get("/api/v1/tenants", headers={"X-Request-Id": "mine"}).expect(200)
    assert r.headers["x-request-id"] == "mine" and "server-timing" in r.headers


@pytest.mark.embedded
def test_with_a_postgresql_of_its_own_it_keeps_tenants_over_a_restart(make_platform):
    p = make_platform(embedded=True)
    t = p.add_tenant("kept")
    assert p.get("/api/v1/tenants/kept/health").expect(200)
    assert p.terminate() == 0 and p.embedded_postmaster() is None
    p.forget()
    p.start()
    assert p.tenants()["kept"] == t
    assert p.get("/api/v1/tenants/kept/health").expect(200)


def owners(broker, queue):
    """The owner of each partition of the platform's queue."""
    r = broker.get("/api/v1/consumer-groups/platform/queues/%s/owners" % queue)
    return [o["owner"] for o in r.json["owners"] if o["owner"] and not o["expired"]] if r.status == 200 else []


def test_processes_with_equal_host_port_and_settings_do_not_share_partitions(make_platform, broker):
    """As in containers: they have the same port and process id. The expiry is long: a clean stop must release."""
    queue = "platform.twins-" + uuid.uuid4().hex[:8]
    env = {"QUEEN_URL": broker.url, "PLATFORM_QUEUE": queue, "PLATFORM_PARTITIONS": 8, "PLATFORM_EXPIRY_S": 600}
    one = make_platform(**env)
    wait_until(lambda: len(owners(broker, queue)) == 8, 20, "one owns all partitions")
    two = make_platform(start=False, database=one.env["PLATFORM_PG_DB"], PLATFORM_HOST="127.0.0.2", **env)
    two.host, two.port, two.env["PLATFORM_PORT"] = "127.0.0.2", one.port, str(one.port)
    one.terminate()
    one.env["PLATFORM_HOST"] = "127.0.0.1"
    one.spawn().wait_ready(START_TIMEOUT)
    two.start()
    names = [p.get("/health").expect(200).json["platform"] for p in (one, two)]
    assert names[0] != names[1], "random by default"
    wait_until(lambda: sorted(owners(broker, queue)) == sorted(names * 4), 30, "each owns its half")
    assert two.terminate() == 0
    wait_until(lambda: owners(broker, queue) == [names[0]] * 8, 30, "a clean stop releases its partitions")


def test_a_process_with_a_configured_id_resumes_after_a_kill(make_platform, broker):
    queue = "platform.named-" + uuid.uuid4().hex[:8]
    p = make_platform(QUEEN_URL=broker.url, PLATFORM_QUEUE=queue, PLATFORM_PARTITIONS=4, PLATFORM_EXPIRY_S=600, PLATFORM_ID="mine")
    wait_until(lambda: owners(broker, queue) == ["mine"] * 4, 20, "the id is used as it is")
    p.kill()
    p.start()
    name = "t-" + uuid.uuid4().hex[:12]
    p.add_tenant(name)
    p.post("/api/v1/tenants/%s/events" % name, [{"id": str(uuid.uuid4()), "type": "customer.upserted", "at": "2026-11-16T08:00:00Z",
                                                  "data": {"customer_id": str(uuid.uuid4())}}]).expect(202)
    wait_until(lambda: p.get("/metrics").json["events"]["applied"] == 1, 20, "applied long before the expiry")


def test_it_waits_for_its_control_database(make_platform, pg):
    p = make_platform(start=False, PLATFORM_PG_PORT=1)
    p.spawn()

    def starting():
        try:
            return p.get("/ready").status == 503
        except OSError:
            return False
    wait_until(starting, 10, "it answers")
    assert p.get("/live").expect(200)
    r = p.get("/api/v1/tenants").expect(503)
    assert "starting" in r.json["error"]
    assert p.terminate() == 0


@pytest.mark.parametrize("args, words", [
    (["--port", "0"], "PLATFORM_PORT (--port) has the invalid value"),
    (["--bogus"], "unknown option --bogus"),
    (["--queen-url", "nonsense"], "QUEEN_URL"),
])
def test_bad_settings_stop_the_start_with_one_line(args, words):
    p = subprocess.run([BIN, "platform", *args], capture_output=True, text=True, timeout=20, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
    assert p.returncode == 1 and words in p.stderr


def test_a_request_under_way_is_answered_before_the_end(make_platform, pg):
    p = make_platform()
    lock = pg.connect(autocommit=False, database=p.env["PLATFORM_PG_DB"])
    try:
        with lock.cursor() as cur:
            cur.execute("lock platform.tenant in share mode")
            adding = Background(lambda: p.add_tenant("late"))
            waits = "select count(*) from pg_locks where not granted and relation = 'platform.tenant'::regclass"
            wait_until(lambda: cur.execute(waits) or cur.fetchone()[0] > 0, 20, "the request waits")
        p.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stop.begin" in p.log_text(), 20, "the stop has begun")
    finally:
        lock.close()
    assert adding.result()["state"] == "ready"
    assert p.process.wait(60) == 0


def test_tenants_by_command(cli, platform, tenant_name):
    cli("tenant", "add", tenant_name, "--json").expect(0)
    assert tenant_name in [r["tenant"] for r in cli("tenant", "ls", "--json").expect(0).rows]
    assert cli("tenant", "show", tenant_name, "--json").expect(0).rows[0]["state"] == "ready"
    assert cli("tenant", "health", tenant_name, "--json").expect(0).rows[0]["status"] == "up"
    pools = cli("pools", "--json").expect(0).rows[0]
    assert tenant_name in [t["tenant"] for t in pools["tenants"]]
    assert "hit rate" in cli("pools", "--table").expect(0).out
    assert "current" in cli("tenant", "migrate", "--table").expect(0).out
    assert cli("tenant", "add", tenant_name).expect(3).err.count("already") == 1
    assert "the platform created" in cli("tenant", "change", tenant_name, "--password").expect(3).err
    assert "--yes" in cli("tenant", "rm", tenant_name).err
    cli("tenant", "rm", tenant_name, "--drop", "--yes").expect(0)
    cli("tenant", "show", tenant_name).expect(4)


def test_the_list_of_refreshes_shows_the_mode(cli, platform, tenant):
    for mode in ("live", "views"):
        platform.request("PUT", "/api/v1/tenants/%s/read-models" % tenant, {"mode": mode}).expect(202)
        head, *lines = cli("refresh", "ls", "--table").expect(0).out.splitlines()
        shown = [line.split()[head.split().index("MODE")] for line in lines if line.split()[0] == tenant]
        assert shown == [mode, mode]


def test_an_unavailable_platform_is_reported(cli):
    r = cli("tenant", "ls", PLATFORM_URL="http://127.0.0.1:9").expect(2)
    assert "queen platform" in r.err
