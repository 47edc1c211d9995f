"""deploy/: dashboards and alerts name only series that a scrape has, with labels that they have."""
import glob
import json
import os
import re

import pytest

import harness
from harness import REPO, wait_until
from test_observability import scrape
from test_tls import certificate

ALERTS = os.path.join(REPO, "deploy", "prometheus", "alerts.yml")
DASHBOARDS = glob.glob(os.path.join(REPO, "deploy", "grafana", "*.json"))
SELECTOR = re.compile(r"\b(queen_[a-z0-9_]+)(?:\{([^}]*)\})?")
LABEL = re.compile(r'([a-z_]+)\s*=~?\s*"([^"]*)"')
BY = re.compile(r"\bby \(([^)]*)\)")
SCRAPE_LABELS = {"instance", "job", "le"}  # Prometheus adds the first two


def expressions():
    with open(ALERTS) as f:
        for line in f:
            if line.strip().startswith("expr:"):
                yield "alerts.yml", line.split("expr:", 1)[1].strip()
    for path in DASHBOARDS:
        with open(path) as f:
            for panel in json.load(f)["panels"]:
                for target in panel["targets"]:
                    yield os.path.basename(path) + ": " + panel["title"], target["expr"]


@pytest.fixture(scope="module")
def encrypted(pg, tmp_path_factory):
    """The families of a broker with TLS."""
    cert, key = certificate(str(tmp_path_factory.mktemp("tls")), "deploy")
    b = harness.begin({**pg.env(), "QUEEN_TLS_CERT": cert, "QUEEN_TLS_KEY": key, "QUEEN_TLS_PORT": str(harness.free_port())})
    found = {name: samples for name, samples in scrape(b)[0].items() if "tls" in name}
    harness.end(b, clean_exit=True)
    return found


@pytest.fixture(scope="module")
def samples(metered, encrypted):
    metered.put("deploy-q", [1, 2])
    a, b = metered.take("deploy-q", batch=2)
    metered.ack_batch([metered.ack_entry(a, "dlq"), metered.ack_entry(b, "completed")])
    # A retry by schedule, and one that is not worth it.
    metered.configure("deploy-r", retryPolicy={"mode": "scheduled", "nonRetryable": ["X"]})
    metered.put("deploy-r", [1, 2])
    for m, code in zip(metered.take("deploy-r", batch=2), ("Y", "X")):
        metered.ack(m, "failed", errorCode=code)
    metered.push([{"queue": "deploy-q", "payload": 3, "delaySeconds": 3600}]).expect(201)
    seldom = {"queen_queue_delayed", "queen_dlq_depth_by_queue", "queen_queue_pop_lag_milliseconds", "queen_retries_scheduled_total"}  # at first they are not there

    def complete():
        found = scrape(metered)[0]
        return {**found, **encrypted} if seldom <= found.keys() else None
    return wait_until(complete, 25, "a scrape with " + ", ".join(sorted(seldom)), 0.1)


def test_there_is_something_to_check():
    assert DASHBOARDS and len(list(expressions())) > 15


def test_every_condition_that_stops_work_has_an_alert():
    alerts = " ".join(expr for where, expr in expressions() if where == "alerts.yml")
    for series in ("queen_queue_pending", "queen_queue_oldest_pending_seconds", "queen_dlq_depth", "queen_file_buffer_pending", "queen_file_buffer_bytes",
                   "queen_stuck_rows", "queen_chores_failed_total", "queen_tls_certificate_expires_timestamp_seconds"):
        assert series in alerts, series


@pytest.mark.parametrize("where,expr", list(expressions()))
def test_an_expression_uses_series_that_exist(samples, where, expr):
    found = SELECTOR.findall(expr)
    assert found
    for name, selector in found:
        assert name in samples, "%s: no series %s" % (where, name)
        have = [l for l, _ in samples[name]]
        for label, value in LABEL.findall(selector):
            if label == "code":  # only codes that occurred are there
                assert any(label in l for l in have)
            else:
                assert any(l.get(label) == value for l in have), "%s: no %s with %s=%s" % (where, name, label, value)
        for by in BY.findall(expr):
            for label in (x.strip() for x in by.split(",")):
                assert label in SCRAPE_LABELS or any(label in l for l in have), "%s: %s has no %s" % (where, name, label)
