"""Connections to tenants: reuse, limits, waits, outages, rotation of credentials; real databases of both kinds."""
import os
import signal
import time

import pytest

from harness import Background, Postgres, wait_until


def look(p, tenant):
    return p.get("/api/v1/tenants/%s/health" % tenant)


def up(p, tenant):
    return look(p, tenant).expect(200).json


@pytest.fixture(scope="module")
def three(pg):
    """Names and addresses of three databases to be adopted."""
    for i in range(3):
        pg.create_database("pool%d" % i)
    return {"pool%d" % i: "postgresql://%s@%s:%d/pool%d" % (pg.user, pg.host, pg.port, i) for i in range(3)}


def adopt(p, three, *names):
    for name in names or three:
        p.add_tenant(name, url=three[name])


def test_the_second_get_is_a_hit(make_platform, three):
    p = make_platform(PLATFORM_REFRESH_POLL_MS=86400000)  # visits of read models would count as hits and misses
    adopt(p, three, "pool0")
    up(p, "pool0")
    assert (p.pools()["hits"], p.pools()["misses"], p.pools()["open"]) == (0, 1, 1)
    for _ in range(9):
        up(p, "pool0")
    s = p.pools()
    assert (s["hits"], s["misses"], s["open"], s["idle"]) == (9, 1, 1, 1) and s["hitRate"] == 0.9
    assert s["get"]["hit"]["n"] == 9 and s["get"]["miss"]["n"] == 1
    assert [t["tenant"] for t in s["tenants"]] == ["pool0"] and s["tenants"][0]["state"] == "ready"
    text = p.get("/metrics/prometheus").expect(200).text
    assert "queen_platform_pool_hits_total 9\n" in text and 'get_duration_seconds_count{result="hit"} 9' in text
    assert p.get("/metrics").expect(200).json["pools"]["hits"] == 9


def test_the_least_recently_used_makes_room(make_platform, three):
    p = make_platform(PLATFORM_POOLS_MAX=2, PLATFORM_REFRESH_POLL_MS=86400000)  # read models would use them, too
    adopt(p, three)
    for name in ("pool0", "pool1", "pool0", "pool2"):
        up(p, name)
    s = p.pools()
    assert s["open"] <= 2 and s["evictions"] == 1
    assert sorted(t["tenant"] for t in s["tenants"]) == ["pool0", "pool2"]


def test_many_at_once_make_one_pool(make_platform, three):
    p = make_platform(PLATFORM_REFRESH_POLL_MS=86400000)  # visits of read models would count as hits and misses
    adopt(p, three, "pool0")
    for b in [Background(lambda: up(p, "pool0")) for _ in range(12)]:
        b.result()
    s = p.pools()
    assert s["open"] == 1 and s["misses"] + s["hits"] == 12 and s["failedOpens"] == 0
    assert s["tenants"][0]["connections"] <= 5


def test_an_idle_pool_is_closed(make_platform, three):
    p = make_platform(PLATFORM_POOL_IDLE_MS=200, PLATFORM_REFRESH_POLL_MS=86400000)  # likewise
    adopt(p, three, "pool0")
    up(p, "pool0")
    wait_until(lambda: p.pools()["open"] == 0, 5, "the pool closed")
    assert p.pools()["expired"] == 1
    up(p, "pool0")


def test_an_unknown_tenant_gets_404_immediately(platform):
    assert look(platform, "nobody").expect(404).json["error"] == "tenant nobody: there is no such tenant"
    assert look(platform, "No%2FBody").expect(404)
    assert look(platform, "%ff").expect(404)


@pytest.fixture
def other_pg():
    """A PostgreSQL that may be halted."""
    server = Postgres()
    try:
        yield server.start()
    finally:
        server.stop()


def test_a_database_that_is_down_is_refused_fast_and_found_again(make_platform, other_pg, three):
    p = make_platform(PLATFORM_PROBE_MS=200, PLATFORM_HEALTH_AFTER_MS=0, PLATFORM_CONNECT_TIMEOUT_MS=2000)
    adopt(p, three, "pool1")
    other_pg.create_database("fragile")
    p.add_tenant("fragile", url="postgresql://%s@%s:%d/fragile" % (other_pg.user, other_pg.host, other_pg.port))
    up(p, "fragile")
    other_pg.halt()
    wait_until(lambda: look(p, "fragile").status == 503 and p.pools()["down"] == 1, 20, "the breaker open")
    refused = p.pools()["refused"]
    r = look(p, "fragile").expect(503)
    assert p.pools()["refused"] > refused, "without asking the database"
    assert r.json["error"].startswith("tenant fragile: ") and r.headers["retry-after"]
    up(p, "pool1")  # others do not notice
    down = {t["tenant"]: t for t in p.pools()["tenants"]}["fragile"]
    assert down["state"] == "down" and down["error"]
    other_pg.launch()
    wait_until(lambda: look(p, "fragile").status == 200, 20, "it is back")
    s = p.pools()
    assert s["down"] == 0 and s["breakersOpened"] >= 1 and s["refused"] >= 1


def test_a_frozen_database_is_reported_as_such(make_platform, other_pg):
    """It was 429 with "timed out waiting for a connection pool", as if other tenants had used all connections."""
    p = make_platform(PLATFORM_POOL_WAIT_MS=1000, PLATFORM_HEALTH_AFTER_MS=0, PLATFORM_CONNECT_TIMEOUT_MS=60000)
    other_pg.create_database("frozen")
    p.add_tenant("frozen", url="postgresql://%s@%s:%d/frozen" % (other_pg.user, other_pg.host, other_pg.port))
    wait_until(lambda: p.get("/api/v1/tenants/frozen/read-models").expect(200).json["models"][0]["view"]["built"], 60, "the first visit is over")
    wait_until(lambda: [t["refs"] for t in p.pools()["tenants"]] == [0], 60, "nothing uses its pool")
    postmaster = other_pg.process.pid
    children = [int(c) for c in open("/proc/%d/task/%d/children" % (postmaster, postmaster)).read().split()]
    try:
        for pid in [postmaster] + children:
            os.kill(pid, signal.SIGSTOP)
        for _ in range(2):
            r = look(p, "frozen").expect(503)
            assert r.json["error"] == "tenant frozen: the database does not answer" and r.headers["retry-after"]
    finally:
        for pid in children + [postmaster]:
            os.kill(pid, signal.SIGCONT)
    wait_until(lambda: look(p, "frozen").status == 200, 60, "it is back")


def test_a_pool_whose_connections_died_is_replaced(make_platform, three, pg):
    p = make_platform(PLATFORM_HEALTH_AFTER_MS=0)
    adopt(p, three, "pool0")
    up(p, "pool0")
    conn = pg.connect()
    conn.cursor().execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'pool0'")
    conn.close()
    wait_until(lambda: look(p, "pool0").status == 200, 10, "served again")


def test_credentials_are_rotated_under_load(make_platform, pg):
    """The role's password changes; those under way go on, and nobody fails."""
    conn = pg.connect()
    cur = conn.cursor()
    cur.execute("drop role if exists renter; create role renter login superuser password 'one'")
    pg.create_database("rented")
    p = make_platform()
    p.add_tenant("rented", url="postgresql://renter:one@%s:%d/rented" % (pg.host, pg.port))
    up(p, "rented")
    stop, seen = [], []

    def load():
        while not stop:
            seen.append(look(p, "rented").status)
    loads = [Background(load) for _ in range(4)]
    cur.execute("alter role renter password 'two'")
    assert p.patch("/api/v1/tenants/rented", {"password": "two"}).expect(200).json["credential"] == "stored"
    wait_until(lambda: p.pools()["replaced"] == 1 and len(seen) > 100, 10, "the pool replaced")
    stop.append(1)
    for b in loads:
        b.result()
    assert set(seen) == {200}
    conn.close()


def test_a_file_of_credentials_is_read_when_a_pool_is_made(make_platform, pg, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("one\n")
    pg.create_database("filed")
    p = make_platform(PLATFORM_POOL_IDLE_MS=100, PLATFORM_CREDENTIAL_DIR=tmp_path)
    p.add_tenant("filed", url="postgresql://%s@%s:%d/filed" % (pg.user, pg.host, pg.port), credential="file:%s" % secret)
    up(p, "filed")
    wait_until(lambda: p.pools()["open"] == 0, 5, "closed")
    secret.unlink()
    r = look(p, "filed").expect(500)
    assert r.json["error"].startswith("tenant filed: credential file:") and p.pools()["down"] == 0
    secret.write_text("two")
    up(p, "filed")


def test_another_process_learns_of_changes(make_platform, three, pg):
    p = make_platform(PLATFORM_DIRECTORY_MS=100)
    q = make_platform(database=p.env["PLATFORM_PG_DB"], PLATFORM_DIRECTORY_MS=100)
    p.add_tenant("pool0", url=three["pool0"])
    up(q, "pool0")
    p.patch("/api/v1/tenants/pool0", {"url": three["pool1"]}).expect(200)
    wait_until(lambda: q.pools()["replaced"] == 1, 5, "the other process has heard of it")
    up(q, "pool0")
    p.remove_tenant("pool0", drop=False).expect(200)
    wait_until(lambda: look(q, "pool0").status == 404, 5, "and of the end")


def test_a_process_that_was_stopped_longer_than_the_window_finds_all_changes(make_platform, three):
    """The window of a read covers none of the changes, so the process must compare everything it has cached."""
    p = make_platform()
    q = make_platform(database=p.env["PLATFORM_PG_DB"], PLATFORM_DIRECTORY_MS=2000, PLATFORM_DIRECTORY_WINDOW_S=5)
    adopt(p, three)
    for name in three:
        up(q, name)
    q.process.send_signal(signal.SIGSTOP)
    try:
        p.remove_tenant("pool2", drop=False).expect(200)
        p.patch("/api/v1/tenants/pool0", {"url": three["pool2"]}).expect(200)
        time.sleep(6)  # longer than the window
    finally:
        q.process.send_signal(signal.SIGCONT)
    # Each 30th read compares everything, too. That is a minute from the start.
    wait_until(lambda: look(q, "pool2").status == 404 and q.pools()["replaced"] >= 2, 10, "the changes found")
    up(q, "pool0")
    up(q, "pool1")


def test_mysql_tenants_use_the_same_pools(make_platform, mariadb, three):
    p = make_platform(PLATFORM_POOLS_MAX=2, PLATFORM_PROBE_MS=200, PLATFORM_HEALTH_AFTER_MS=0)
    adopt(p, three)
    p.add_tenant("my", url=mariadb.url(mariadb.create_database("pooled")))
    up(p, "my")
    for b in [Background(lambda: up(p, "my")) for _ in range(12)]:
        b.result()
    s = {t["tenant"]: t for t in p.pools()["tenants"]}["my"]
    assert s["kind"] == "mysql" and 1 <= s["connections"] <= 5
    for name in (*three, "my"):
        up(p, name)
    assert p.pools()["open"] <= 2
    mariadb.halt()
    wait_until(lambda: p.pools()["down"] == 1 or look(p, "my").status and False, 20, "it is down")
    up(p, "pool1")
    mariadb.launch()
    wait_until(lambda: look(p, "my").status == 200, 20, "it is back")
