"""The dashboard in a real browser, against a real broker with data."""
import json
import os
import subprocess
import threading

import pytest

import harness
from tokens import SECRET, token

DRIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "drive.mjs")
PATIENCE = 600 * harness.TIME_FACTOR


def start(broker, scenario, **data):
    return subprocess.Popen(["node", DRIVE, "http://127.0.0.1:%d/" % broker.port, scenario, json.dumps(data)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def drive(broker, scenario, **data):
    process = start(broker, scenario, **data)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0, out + err


@pytest.fixture(scope="module")
def shop(pg):
    """A broker with the queues that the pages show; .message is the id of one of its messages."""
    b = harness.begin({**pg.env(pg.create_database("web")), "SIDECAR_POOL_SIZE": "8", "METRICS_AGGREGATE_INTERVAL_S": "1", "STATS_INTERVAL_MS": "500"})
    b.configure("orders")
    for i in range(20):
        b.configure("sorted-%d" % i)
    b.put("orders", [{"n": i} for i in range(30)], partition="customer-7")
    first = b.take("orders", consumerGroup="shipping", batch=1)[0]
    b.ack(first, consumerGroup="shipping")
    b.message = first["id"]
    b.post("/api/v1/traces", {"partitionId": first["partitionId"], "transactionId": first["transactionId"], "data": {"text": "booked"},
                              "traceNames": ["audit"]}).expect(201)
    b.post("/api/v1/schedules", {"name": "nightly", "queue": "orders", "cron": "0 3 * * *", "timezone": "Europe/Rome", "payload": {}}).expect(201)
    b.push([{"queue": "later", "payload": 1, "delaySeconds": 3600}])
    b.configure("telemetry", partitions=4)
    b.post("/api/v1/consumer-groups/aggregator/queues/telemetry/owners/claim",
           {"owner": "worker-1", "partitions": [{"partition": p, "epoch": 0} for p in "012"], "expirySeconds": 600}).expect(200)
    yield b
    harness.end(b, clean_exit=True)


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_shown_and_accessible(shop, scheme, part):
    drive(shop, "pages", message=shop.message, scheme=scheme, part=part, parts=4)


def test_a_queue_is_created_filled_and_deleted(shop):
    drive(shop, "queue")


def test_the_form_keeps_options_that_were_not_edited(shop):
    drive(shop, "configure")


def test_partitions_are_searched_and_sorted_by_the_server(shop):
    shop.push([{"queue": "wide", "partition": "key-%d" % i, "payload": i} for i in range(5000)])
    shop.push([{"queue": "wide", "partition": "key-77", "payload": i} for i in range(3)])
    drive(shop, "partitions", shown="5,000", each=5, of49=111)


def test_100000_partitions_are_a_map_of_cells(pg):
    b = harness.begin({**pg.env(pg.create_database("web_wide")), "SIDECAR_POOL_SIZE": "8"})
    try:
        for first in range(0, 100000, 5000):
            b.push([{"queue": "wide", "partition": "key-%d" % i, "payload": i} for i in range(first, first + 5000)], timeout=600)
        b.push([{"queue": "wide", "partition": "key-77", "payload": i} for i in range(3)])
        everything = "/api/v1/status/queues/wide/map?cells=1"
        harness.wait_until(lambda: b.get(everything, timeout=600).json["cells"][0]["pending"] == 100003, PATIENCE, "all messages are counted", interval=1)
        drive(b, "partitions", shown="100,000", each=100, of49="1,111")
    finally:
        harness.end(b)


def test_the_list_of_queues_is_searched_and_sorted_by_the_server(shop):
    drive(shop, "list")


def test_a_dead_letter_is_sent_again(shop):
    shop.put("templates", [{"template": "welcome", "n": n} for n in range(451)])
    messages = shop.take("templates", batch=451)
    shop.ack_batch([shop.ack_entry(m, "dlq", error="no such template" + (" at all" if i == 450 else "")) for i, m in enumerate(messages)])
    drive(shop, "redrive", queue="templates", n=450)


def test_a_group_is_moved_after_a_preview(shop):
    shop.put("moved", list(range(10)), partition="p")
    for m in shop.take("moved", batch=4, consumerGroup="g"):
        shop.ack(m, consumerGroup="g")
    drive(shop, "seek")


def test_groups_and_their_partitions_are_searched_and_paged_by_the_server(shop):
    shop.push([{"queue": "crowd", "partition": "many-%d" % i, "payload": i} for i in range(60)])
    shop.push([{"queue": "crowd", "partition": "many-7", "payload": i} for i in range(3)])
    for i in range(60):
        shop.take("crowd", consumerGroup="reader-%d" % i, batch=1)
    shop.pop("crowd", consumerGroup="reader-1", batch=200, partitions=60)
    drive(shop, "groups", matches=11)


def test_a_message_is_moved_to_the_dead_letters_and_delivered_again(shop):
    shop.configure("acted", leaseTime=600, retryPolicy={"mode": "scheduled", "strategy": "fixed", "base": 3600, "maxAttempts": 5})
    shop.put("acted", [{"n": 1}])
    message = shop.take("acted", consumerGroup="hands")[0]
    process = start(shop, "actions", message=message["id"])
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    try:
        assert process.stdout.readline() == "fail\n", process.communicate()
        again = harness.wait_until(lambda: shop.take("acted", consumerGroup="hands"), PATIENCE, "it is delivered again")[0]
        shop.ack(again, "failed", error="again", consumerGroup="hands")
        out, err = process.communicate()
        assert process.returncode == 0, out + err
    finally:
        watchdog.cancel()
        process.kill()


def test_maintenance_is_switched_and_a_queue_cleared(pg):
    b = harness.begin({**pg.env(pg.create_database("web_switches")), "FILE_BUFFER_FLUSH_MS": "50"})
    try:
        b.put("cleared", [1, 2, 3])
        b.push([{"queue": "soon", "payload": 1, "delaySeconds": 3600}])
        drive(b, "maintenance", queue="cleared", later="soon")
    finally:
        harness.end(b)


def test_streams_and_changes_of_owners_are_shown(shop):
    shop.post("/streams/v1/queries", {"name": "totals", "source_queue": "orders", "config_hash": "1"}).expect(200)
    drive(shop, "streams", stream="totals")


def test_figures_are_those_of_the_last_seconds(shop):
    drive(shop, "figures")


def test_traces_lead_to_their_message(shop):
    drive(shop, "traces")


def test_tabs_share_their_answers(shop):
    shop.put("shared-figures", [1])
    drive(shop, "tabs")


def test_dialogs_are_accessible(shop):
    drive(shop, "dialogs")


def test_a_server_without_data_is_shown(pg):
    b = harness.begin(pg.env(pg.create_database("web_empty")))
    try:
        drive(b, "empty")
    finally:
        harness.end(b)


def test_messages_are_found_by_text_in_their_payload(shop):
    for i in (1, 2):
        shop.put("atlas-%d" % i, [{"city": "Zanzibar"}], ids=["found-%d" % i])
    drive(shop, "text")


def test_a_waiting_message_is_rescheduled_and_cancelled(shop):
    shop.push([{"queue": "calendar", "payload": 1, "delaySeconds": 7200}])
    drive(shop, "reschedule")


def test_a_recurring_message_is_paused_run_and_deleted(shop):
    shop.post("/api/v1/schedules", {"name": "weekly", "queue": "orders", "cron": "0 3 * * 1", "payload": {}}).expect(201)
    drive(shop, "recurring")


def test_a_message_is_found_and_its_retry_brought_forward(shop):
    shop.configure("payments", retryPolicy={"mode": "scheduled", "strategy": "fixed", "base": 3600, "maxAttempts": 5})
    shop.put("payments", [1], ids=["payment-4711"])
    message = shop.take("payments", consumerGroup="ledger")[0]
    shop.ack(message, "failed", error="DB timeout", consumerGroup="ledger")
    drive(shop, "search", transactionId="payment-4711", queue="payments")


def test_hostile_names_and_payloads_are_shown_as_text(shop):
    name = "hostile \u202e <script>globalThis.owned=1</script>"
    evil = {"<img src=x onerror=globalThis.owned=1>": "<img src=x onerror=globalThis.owned=1>"}
    large = {"text": "x" * 1000000, "keys": {"key %d" % i: i for i in range(10000)}}
    ids = [shop.push([{"queue": name, "partition": "<b>bold</b>", "payload": p}]).json[0]["message_id"] for p in (evil, large)]
    drive(shop, "hostile", queue=name, message=ids[0], large=ids[1])


def test_the_page_works_under_a_prefix(shop):
    drive(shop, "prefix")


def test_figures_change_without_moving_the_page(shop):
    drive(shop, "still")


def test_pages_fit_on_a_phone(shop):
    drive(shop, "phone", message=shop.message)


def test_the_page_reports_an_outage_and_recovers(pg):
    b = harness.begin({**pg.env(pg.create_database("web_outage"))})
    process = start(b, "outage")
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    try:
        assert process.stdout.readline() == "stop\n", process.communicate()
        b.kill()
        assert process.stdout.readline() == "start\n", process.communicate()
        b.start()
        out, err = process.communicate()
        assert process.returncode == 0, out + err
    finally:
        watchdog.cancel()
        process.kill()
        harness.end(b)


def test_a_protected_server_requires_a_token(pg):
    b = harness.begin({**pg.env(pg.create_database("web_login")), "JWT_ENABLED": "true", "JWT_SECRET": SECRET, "JWT_ALGORITHM": "HS256"})
    try:
        drive(b, "login", token=token())
    finally:
        harness.end(b)


def test_api_keys_are_created_and_revoked(pg, tmp_path):
    path = tmp_path / "admin.key"
    subprocess.run([harness.BIN, "init", str(path)], check=True, capture_output=True)
    b = harness.begin({**pg.env(pg.create_database("web_keys")), "QUEEN_ADMIN_KEY_FILE": str(path)})
    try:
        drive(b, "keys", token=path.read_text().strip())
    finally:
        harness.end(b)


def test_a_sender_sees_what_it_may_do(pg, tmp_path):
    path = tmp_path / "admin.key"
    subprocess.run([harness.BIN, "init", str(path)], check=True, capture_output=True)
    b = harness.begin({**pg.env(pg.create_database("web_roles")), "QUEEN_ADMIN_KEY_FILE": str(path)})
    try:
        admin = {"Authorization": "Bearer " + path.read_text().strip()}

        def call(what, body):
            return b.request("POST", "/api/v1/" + what, body, headers=admin).expect(201).json
        pushed = call("push", {"items": [{"queue": q, "payload": 1} for q in ("shop.orders", "other.queue")]})
        reader = call("keys", {"name": "reader", "role": "read-only"})["key"]
        ruled = call("keys", {"name": "ruled", "allow": "read+push:shop.*"})["key"]
        drive(b, "roles", reader=reader, ruled=ruled, message=pushed[0]["message_id"])
    finally:
        harness.end(b)


def test_ten_thousand_queues_are_shown_in_pages(pg):
    database = pg.create_database("web_many")
    b = harness.begin(pg.env(database))
    try:
        with pg.connect(database=database) as connection, connection.cursor() as cursor:
            cursor.execute("insert into queen.queues (name) select 'many-' || i from generate_series(1, 10000) i")
        drive(b, "many")
    finally:
        harness.end(b)


def test_the_pages_work_by_keyboard_alone(shop):
    drive(shop, "keyboard")


def test_the_committed_files_are_built_from_the_sources(tmp_path):
    web = os.path.join(harness.REPO, "web")
    subprocess.run(["npx", "--no-install", "tsc", "--noEmit"], cwd=web, check=True)
    subprocess.run(["node", "build.mjs", str(tmp_path / "dist")], cwd=web, check=True)
    subprocess.run(["diff", "-rq", str(tmp_path / "dist"), os.path.join(web, "dist")], check=True)


def test_files_have_an_etag_and_a_strict_policy(shop):
    page = shop.get("/").expect(200)
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert page.headers["x-content-type-options"] == "nosniff"
    for path in ("/", "/assets/app.js", "/assets/app.css"):
        plain = shop.get(path).expect(200)
        packed = shop.get(path, headers={"Accept-Encoding": "gzip"}).expect(200)
        assert packed.headers["content-encoding"] == "gzip" and len(packed.body) < len(plain.body)
        shop.get(path, headers={"If-None-Match": plain.headers["etag"]}).expect(304)
    for path in ("/assets/none.js", "/api/v1/none", "/queues"):
        shop.get(path).expect(404)
    sizes = [len(shop.get(p, headers={"Accept-Encoding": "gzip"}).body) for p in ("/assets/app.js", "/assets/app.css")]
    assert sum(sizes) < 200000
