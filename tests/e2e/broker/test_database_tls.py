"""TLS to the database: the server's certificate is verified against a root and its name."""
import os
import shutil
import subprocess

import pytest

import harness


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


def make_ca(folder, name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=" + name, "-keyout", "%s/%s.key" % (folder, name), "-out", "%s/%s.pem" % (folder, name))
    return "%s/%s.pem" % (folder, name)


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """A PostgreSQL with a certificate for localhost; (server, root, a root that did not sign it)"""
    folder = str(tmp_path_factory.mktemp("tls"))
    root, wrong = make_ca(folder, "root"), make_ca(folder, "wrong")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost",
            "-keyout", folder + "/server.key", "-out", folder + "/server.csr")
    openssl("x509", "-req", "-in", folder + "/server.csr", "-CA", root, "-CAkey", folder + "/root.key", "-CAcreateserial", "-days", "2",
            "-out", folder + "/server.crt")
    server = harness.Postgres()
    try:
        server.start()
        owner = os.stat(server.data)
        for name in ("server.key", "server.crt"):
            shutil.copy(os.path.join(folder, name), server.data)
            os.chown(os.path.join(server.data, name), owner.st_uid, owner.st_gid)
            os.chmod(os.path.join(server.data, name), 0o600)
        conn = server.connect()
        conn.cursor().execute("alter system set ssl = on")
        conn.cursor().execute("select pg_reload_conf()")
        conn.close()
        with open(os.path.join(server.data, "pg_hba.conf"), "w") as f:
            f.write("hostssl all all all trust\nlocal all all trust\nhost postgres all 127.0.0.1/32 trust\n")
        conn = server.connect()
        conn.cursor().execute("select pg_reload_conf()")
        conn.close()
        yield server, root, wrong
    finally:
        server.stop()


def test_a_verified_server_is_used(make_broker, tls):
    server, root, _ = tls
    b = make_broker(PG_HOST="localhost", PG_PORT=server.port, PG_USE_SSL="true", PG_SSL_ROOT_CERT=root)
    b.put("q", [1])
    conn = server.connect()
    with conn.cursor() as cur:
        cur.execute("select count(*) from pg_stat_ssl join pg_stat_activity using (pid) where application_name like 'queen%' and not ssl")
        assert cur.fetchone()[0] == 0
    conn.close()


@pytest.mark.parametrize("host, which, more", [
    ("localhost", "wrong", {}), ("127.0.0.1", "root", {}), ("localhost", "wrong", {"PG_SSL_MODE": "verify-ca"})],
    ids=["wrong root", "wrong name", "wrong root with verify-ca"])
def test_another_server_is_refused(make_broker, tls, host, which, more):
    server, root, wrong = tls
    b = make_broker(start=False, PG_HOST=host, PG_PORT=server.port, PG_USE_SSL="true",
                    PG_SSL_ROOT_CERT=root if which == "root" else wrong, **more).spawn()
    harness.wait_until(lambda: "certificate" in b.log_text(), 20, "the reason is logged")
    assert "serve.ready" not in b.log_text()


def test_any_sslmode_may_be_chosen(make_broker, tls):
    server, root, wrong = tls
    make_broker(PG_HOST="127.0.0.1", PG_PORT=server.port, PG_SSL_MODE="verify-ca", PG_SSL_ROOT_CERT=root).put("q", [1])
    make_broker(PG_HOST="127.0.0.1", PG_PORT=server.port, PG_SSL_MODE="require", PG_SSL_ROOT_CERT="/nonexistent").put("q", [1])
