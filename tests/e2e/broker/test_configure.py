"""POST /api/v1/configure: http-api section 8, decisions.md."""
import pytest

from harness import is_uuid

DEFAULTS = {
    "leaseTime": 300, "retryLimit": 3, "retryDelay": 1000, "maxSize": 0, "ttl": 3600, "deadLetterQueue": False,
    "dlqAfterMaxRetries": False, "priority": 0, "delayedProcessing": 0, "windowBuffer": 0, "retentionSeconds": 0,
    "completedRetentionSeconds": 0, "retentionEnabled": False, "encryptionEnabled": False, "maxWaitTimeSeconds": 0,
}
FLAGS = [n for n, v in DEFAULTS.items() if isinstance(v, bool)]
NUMBERS = [n for n in DEFAULTS if n not in FLAGS]


def same(options, expected):
    """Equal values of equal types: True is not 1 here."""
    assert options == expected
    assert {n: type(v) for n, v in options.items()} == {n: type(v) for n, v in expected.items()}


def test_a_queue_without_options_gets_all_fifteen_defaults(broker, queue):
    answer = broker.post("/api/v1/configure", {"queue": queue}).expect(200).json
    same(answer["options"], DEFAULTS)
    assert answer["configured"] is True
    assert answer["queue"] == queue
    assert answer["namespace"] == "" and answer["task"] == ""
    assert is_uuid(answer["queueId"]) and is_uuid(answer["partitionId"])
    assert set(answer) == {"configured", "queueId", "partitionId", "queue", "namespace", "task", "options"}


@pytest.mark.parametrize("options", [{}, None])
def test_empty_options_are_the_defaults(broker, queue, options):
    same(broker.post("/api/v1/configure", {"queue": queue, "options": options}).expect(200).json["options"], DEFAULTS)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_option_is_echoed(broker, queue, name):
    expected = {**DEFAULTS, name: 17}
    if name in ("retentionSeconds", "completedRetentionSeconds"):
        expected["retentionEnabled"] = True
    same(broker.configure(queue, **{name: 17})["options"], expected)


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", [True, False])
def test_a_flag_option_is_echoed(broker, queue, name, value):
    same(broker.configure(queue, **{name: value})["options"], {**DEFAULTS, name: value})


def test_all_options_at_once_are_echoed(broker, queue):
    wanted = {n: True if n in FLAGS else 11 + i for i, n in enumerate(DEFAULTS)}
    same(broker.configure(queue, "space", "job", **wanted)["options"], wanted)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_numeric_string_counts_as_its_number(broker, queue, name):
    assert broker.configure(queue, **{name: "30"})["options"][name] == 30


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["abc", "12abc", [1], {"a": 1}, True, 1.5, 3000000000])
def test_a_wrong_number_is_refused_by_name(broker, queue, sql, name, value):
    r = broker.post("/api/v1/configure", {"queue": queue, "options": {name: value}}).expect(400)
    assert name in r.json["error"]
    assert sql("select 1 from queen.queues where name = %s", queue) == []


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", ["maybe", [True], {"a": True}, 7])
def test_a_wrong_flag_is_refused_by_name(broker, queue, name, value):
    r = broker.post("/api/v1/configure", {"queue": queue, "options": {name: value}}).expect(400)
    assert name in r.json["error"]


@pytest.mark.parametrize("name", list(DEFAULTS))
def test_an_explicit_null_is_the_default(broker, queue, name):
    same(broker.configure(queue, **{name: None})["options"], DEFAULTS)


def test_unknown_options_are_ignored(broker, queue):
    same(broker.configure(queue, shoeSize=44)["options"], DEFAULTS)


def test_configure_replaces_the_whole_configuration(broker, queue):
    first = broker.configure(queue, "space", "job", leaseTime=45, encryptionEnabled=True, priority=9)
    assert (first["namespace"], first["task"]) == ("space", "job")
    second = broker.configure(queue, retryLimit=5)
    same(second["options"], {**DEFAULTS, "retryLimit": 5})
    assert (second["namespace"], second["task"]) == ("", "")
    assert second["queueId"] == first["queueId"]
    assert second["partitionId"] == first["partitionId"]


def test_a_refused_configure_leaves_the_old_configuration(broker, queue, sql):
    broker.configure(queue, leaseTime=45)
    broker.post("/api/v1/configure", {"queue": queue, "options": {"leaseTime": "x"}}).expect(400)
    assert sql("select lease_time from queen.queues where name = %s", queue) == [(45,)]


def test_configure_keeps_messages_partitions_and_leases(broker, queue):
    broker.put(queue, [1, 2], partition="p")
    (first,) = broker.take(queue, "p")
    broker.configure(queue, leaseTime=1)
    assert broker.take(queue, "p") == [], "a lease already granted keeps its expiry"
    assert broker.ack(first)["success"] is True
    (second,) = broker.take(queue, "p")
    assert second["data"] == 2 and second["partitionId"] == first["partitionId"]


def test_configure_creates_the_default_partition(broker, queue):
    made = broker.configure(queue)
    (result,) = broker.put(queue, ["x"])
    assert result["partition_id"] == made["partitionId"]


@pytest.mark.parametrize("labels", [{"namespace": 5, "task": []}, {"namespace": None, "task": None}, {}])
def test_labels_that_are_not_strings_become_empty(broker, queue, labels):
    answer = broker.post("/api/v1/configure", {"queue": queue, **labels}).expect(200).json
    assert (answer["namespace"], answer["task"]) == ("", "")


def test_configure_does_not_derive_labels_from_the_name(broker, queue):
    answer = broker.configure("shop.orders." + queue)
    assert (answer["namespace"], answer["task"]) == ("", "")


@pytest.mark.parametrize("name,namespace,task", [
    ("shop-%s.orders.eu", "shop-%s", "orders"), ("plain-%s", "plain-%s", ""), ("two-%s.parts", "two-%s", "parts")])
def test_a_queue_created_by_push_gets_derived_labels_and_defaults(broker, queue, sql, name, namespace, task):
    broker.put(name % queue, [1])
    rows = sql("select namespace, task, lease_time, retry_limit, max_queue_size from queen.queues where name = %s",
               name % queue)
    assert rows == [(namespace % queue if "%s" in namespace else namespace, task, 300, 3, 0)]


def test_the_empty_queue_name_can_be_configured(broker):
    answer = broker.configure("", leaseTime=9)
    assert answer["configured"] is True and answer["queue"] == ""
    assert answer["options"]["leaseTime"] == 9


@pytest.mark.parametrize("name", ["ünïcödé", "with space", "a/b?c#d", "q\"uote\\", "x" * 255, "ж" * 255])
def test_odd_names_are_kept(broker, queue, name):
    name = (queue + name)[:255]
    assert broker.configure(name)["queue"] == name
    broker.put(name, [{"odd": name}])
    (message,) = broker.take(name, autoAck=True)
    assert message["queue"] == name and message["data"] == {"odd": name}


def test_a_name_of_more_than_255_characters_is_refused(broker):
    assert "error" in broker.post("/api/v1/configure", {"queue": "x" * 256}).expect(400).json


@pytest.mark.parametrize("body", [
    b"", b"{", b"nonsense", b"[]", b"{}", b"null", b"5", b'{"queue":5}', b'{"queue":null}', b'{"queue":["a"]}',
    b'{"options":{"leaseTime":5}}', b'{"queue":"a"} trailing', b'{"queue":"a\\u0000b"}', b'{"queue":"\xff"}'])
def test_a_malformed_request_is_refused_with_an_error_text(broker, body):
    r = broker.post("/api/v1/configure", body).expect(400)
    assert isinstance(r.json["error"], str) and r.json["error"]
    assert r.headers["content-type"].startswith("application/json")


@pytest.mark.parametrize("name", ["retentionSeconds", "completedRetentionSeconds"])
def test_a_positive_retention_without_the_flag_switches_it_on(broker, queue, name):
    assert broker.configure(queue, **{name: 60})["options"]["retentionEnabled"] is True
    assert broker.configure(queue, **{name: 0})["options"]["retentionEnabled"] is False
    assert broker.configure(queue, **{name: 60, "retentionEnabled": False})["options"]["retentionEnabled"] is False
    assert broker.configure(queue, **{name: 60, "retentionEnabled": True})["options"]["retentionEnabled"] is True


def test_the_last_of_two_equal_keys_wins(broker, queue):
    body = '{"queue":"wrong","queue":"%s","options":{"leaseTime":5,"leaseTime":6}}' % queue
    answer = broker.post("/api/v1/configure", body).expect(200).json
    assert answer["queue"] == queue and answer["options"]["leaseTime"] == 6


@pytest.mark.parametrize("options", [
    {},
    {"ttl": 500, "retryDelay": 250, "leaseTime": 7, "retryLimit": 1, "priority": -3, "maxSize": 9, "delayedProcessing": 2, "windowBuffer": 1},
    {"ordering": "none", "maxDeliveries": 0, "encryptionEnabled": True, "retentionSeconds": 86400, "maxWaitTimeSeconds": 60},
    {"retentionSeconds": 5, "retentionEnabled": False, "retryPolicy": {"mode": "scheduled", "strategy": "fixed", "base": 5}},
    {"ordering": "none", "maxInFlight": 5, "rateLimit": 0.5, "rateBurst": 3},
    {"partitions": 3, "completedRetentionSeconds": 70},
])
def test_the_shown_options_change_nothing_when_they_are_sent_again(broker, queue, options):
    broker.configure(queue, **options)
    shown = broker.get("/api/v1/status/queues/" + queue).expect(200).json["queue"]["options"]
    assert all(shown[name] == value for name, value in options.items() if name != "retryPolicy")
    assert ("ttl" in shown, "retryDelay" in shown) == ("ttl" in options, "retryDelay" in options)
    answer = broker.post("/api/v1/configure", {"queue": queue, "options": shown}).expect(200)
    assert broker.get("/api/v1/status/queues/" + queue).expect(200).json["queue"]["options"] == shown
    assert all(answer.json["options"].get(name, 0 if name == "maxDeliveries" else "partition") == value for name, value in shown.items())
