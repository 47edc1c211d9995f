"""The files of the dashboard (WEBAPP_ROOT)."""
import gzip
import os
import shutil
import subprocess
import tempfile

import pytest

import harness
from test_http_manners import Wire, request

PAGE = b"<!doctype html><title>dashboard</title>"
SCRIPT = b"console.log(1)\n" * 2000


@pytest.fixture(scope="module")
def root():
    folder = tempfile.mkdtemp(prefix="queen-web-")
    os.makedirs(folder + "/dist/assets")
    os.makedirs(folder + "/dist/deep/er")
    files = {"dist/index.html": PAGE, "dist/assets/app-4f3a2b1c.js": SCRIPT, "dist/favicon.ico": b"\0\0icon",
             "dist/robots.txt": b"no", "dist/logo-9a8b7c6d5e.svg": b"<svg/>", "dist/with space.json": b"{}",
             "dist/deep/er/x.webp": b"w", "dist/odd.xyz": b"?", "secret.txt": b"secret"}
    for name, body in files.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(body)
    os.symlink(folder + "/secret.txt", folder + "/dist/escape.txt")
    os.symlink(folder + "/dist/robots.txt", folder + "/dist/alias.txt")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def web(pg, root):
    b = harness.Broker({**pg.env(), "WEBAPP_ROOT": root + "/dist"}).start()
    yield b
    b.dispose()
    os.unlink(b.log)


NO_STORE, HOUR, FOR_EVER = "no-cache, no-store, must-revalidate", "public, max-age=3600", "public, max-age=31536000, immutable"


@pytest.mark.parametrize("path,kind,cache,body", [
    ("/", "text/html; charset=utf-8", NO_STORE, PAGE),
    ("/index.html", "text/html; charset=utf-8", NO_STORE, PAGE),
    ("/queues/invoices", "text/html; charset=utf-8", NO_STORE, PAGE),
    ("/deep", "text/html; charset=utf-8", NO_STORE, PAGE),
    ("/?x=1", "text/html; charset=utf-8", NO_STORE, PAGE),
    ("/assets/app-4f3a2b1c.js", "text/javascript; charset=utf-8", FOR_EVER, SCRIPT),
    ("/logo-9a8b7c6d5e.svg", "image/svg+xml", FOR_EVER, b"<svg/>"),
    ("/favicon.ico", "image/x-icon", HOUR, b"\0\0icon"),
    ("/robots.txt", "text/plain; charset=utf-8", HOUR, b"no"),
    ("/alias.txt", "text/plain; charset=utf-8", HOUR, b"no"),
    ("/with%20space.json", "application/json", HOUR, b"{}"),
    ("/deep/er/x.webp", "image/webp", HOUR, b"w"),
    ("/odd.xyz", "application/octet-stream", HOUR, b"?")])
def test_files_have_their_type_and_lifetime(web, path, kind, cache, body):
    r = web.get(path).expect(200)
    assert (r.headers["content-type"], r.headers["cache-control"], r.body) == (kind, cache, body)
    assert r.headers["x-content-type-options"] == "nosniff"
    again = web.get(path, headers={"If-None-Match": r.headers["etag"]}).expect(304)
    assert again.body == b"" and again.headers["etag"] == r.headers["etag"]


@pytest.mark.parametrize("path", ["/../secret.txt", "/assets/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt",
                                  "/escape.txt", "/..\\secret.txt", "/deep/..%5c..%5csecret.txt", "/.."])
def test_nothing_outside_the_root_is_served(web, path):
    with Wire(web) as w:
        w.send(request("GET", path))
        status, _, body = w.answer()
    assert status == 403 and b"secret" not in body and b'"error"' in body


@pytest.mark.parametrize("path", ["/assets/none.js", "/api/v1/none", "/api/", "/health/x", "/healthz", "/metrics/x", "/ws/x",
                                  "/streams/v1/none", "/%00", "/%zz", "/" + "x/" * 3000])
def test_missing_items_are_404(web, path):
    assert web.get(path).expect(404).json == {"error": "not found"}


def test_other_methods_get_no_page(web):
    for verb in ("POST", "PUT", "DELETE"):
        assert web.request(verb, "/queues/x", "{}").status == 404
    r = web.request("HEAD", "/robots.txt").expect(200)
    assert r.body == b"" and r.headers["content-length"] == "2"


def test_large_text_is_packed(web):
    r = web.get("/assets/app-4f3a2b1c.js", headers={"Accept-Encoding": "gzip"}).expect(200)
    assert r.headers["content-encoding"] == "gzip" and gzip.decompress(r.body) == SCRIPT


def test_the_api_works_beside_the_dashboard(web, queue):
    web.put(queue, [1])
    assert len(web.take(queue)) == 1


def test_without_a_root_there_is_the_built_in_dashboard(broker):
    for path in ("/", "/index.html"):
        assert "<title>Queen</title>" in broker.get(path).expect(200).text
    for path in ("/queues/x", "/assets/none.js", "/assets/../index.html"):
        assert broker.get(path).expect(404).json == {"error": "not found"}


def test_an_invalid_root_prevents_start_up(make_broker):
    b = make_broker(start=False, WEBAPP_ROOT="/no/such/folder").spawn()
    assert b.process.wait(30) != 0
    assert "WEBAPP_ROOT: /no/such/folder is no folder" in b.log_text()


def test_it_is_found_beside_the_program(pg, root, queue):
    os.makedirs(root + "/somewhere/webapp", exist_ok=True)
    if not os.path.exists(root + "/somewhere/webapp/dist"):
        os.symlink(root + "/dist", root + "/somewhere/webapp/dist")
    b = harness.Broker(pg.env())
    with open(b.log, "ab") as log:
        b.process = subprocess.Popen([harness.BIN, "serve"], env=b.env, stdout=log, stderr=log, cwd=root + "/somewhere")
    try:
        b.wait_ready(harness.START_TIMEOUT)
        assert b.get("/").expect(200).body == PAGE
    finally:
        b.dispose()
        os.unlink(b.log)
