"""The examples of the README, the guide and some other pages work as printed, one after another, on a new server."""
import glob
import os
import subprocess
import sys

import harness
import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
PAGES = [os.path.join(ROOT, *page.split("/")) for page in (
    "README.md", "docs/reference/sql.md", "docs/reference/http.md", "docs/reference/cloudevents.md", "docs/operations/file-buffer.md")]
PAGES += sorted(glob.glob(os.path.join(ROOT, "docs", "guide", "*.md")))
CHECKER = os.path.join(ROOT, "tools", "check_examples.py")


@pytest.fixture(scope="module")
def server(pg):
    database = pg.create_database("docs_examples")
    broker = harness.begin({**pg.env(database), "SIDECAR_POOL_SIZE": "4"})
    broker.dsn = "host=%s port=%s user=%s password=postgres dbname=%s" % (pg.host, pg.port, pg.user, database)
    yield broker
    harness.end(broker, clean_exit=True)


def run(server, page):
    return subprocess.run([sys.executable, CHECKER, "--url", "http://localhost:%d" % server.port, "--dsn", server.dsn, page],
                          capture_output=True, text=True, timeout=120 * max(1, harness.TIME_FACTOR))


@pytest.mark.parametrize("page", PAGES, ids=os.path.basename)
def test_examples_of_a_page_work_as_printed(server, page):
    result = run(server, page)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_check_reports_wrong_output_and_exit_codes(server, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```sh\nqueen pop never-pushed\necho '{\"a\": 1}'\n```\n\n```json\n{\"a\": 2}\n```\n")
    result = run(server, str(page))
    assert result.returncode == 1
    assert "exit code 4" in result.stdout and "the output is not as printed" in result.stdout
