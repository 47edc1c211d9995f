"""Pop without waiting: http-api section 4, semantics 7, decisions.md."""
import re
import time
from urllib.parse import quote

import pytest

from harness import QUEUE_MODE, in_parallel, is_uuid, unit_of_time

MESSAGE_KEYS = {"id", "transactionId", "traceId", "data", "producerSub", "createdAt", "partitionId", "partition", "leaseId",
                "consumerGroup", "queue", "retryCount"}
TOP_KEYS = {"success", "queue", "partition", "partitionId", "leaseId", "consumerGroup", "partitionsClaimed", "messages"}
FORMS = ["wildcard", "partition", "seed", "seed with partition"]


def pop_form(broker, form, queue, partition, **params):
    if form == "wildcard":
        return broker.pop(queue, **params)
    if form == "partition":
        return broker.pop(queue, partition, **params)
    if form == "seed":
        return seed(broker, params, queue=queue)
    return seed(broker, params, queue=queue, partition=partition)


def seed(broker, params, **more):
    query = {**more, **params}
    text = "&".join("%s=%s" % (k, quote(str(v).lower() if isinstance(v, bool) else str(v), safe=""))
                    for k, v in query.items())
    return broker.get("/api/v1/pop?" + text)


@pytest.mark.parametrize("form", FORMS)
def test_a_message_has_all_its_fields(broker, queue, group, form):
    trace = "0d9c8b7a-6655-4433-8211-00ffeeddccbb"
    (pushed,) = broker.push([{"queue": queue, "partition": "p", "payload": {"no": 41}, "transactionId": "inv-41",
                              "traceId": trace}]).expect(201).json
    r = pop_form(broker, form, queue, "p", consumerGroup=group).expect(200)
    assert r.headers["content-type"].startswith("application/json")
    answer = r.json
    assert TOP_KEYS <= set(answer)
    assert answer["success"] is True
    assert (answer["queue"], answer["partition"], answer["consumerGroup"]) == (queue, "p", group)
    assert answer["partitionId"] == pushed["partition_id"]
    assert type(answer["partitionsClaimed"]) is int and answer["partitionsClaimed"] == 1
    assert is_uuid(answer["leaseId"])
    (message,) = answer["messages"]
    assert MESSAGE_KEYS <= set(message)
    assert "trace" not in message, "the JS client puts a method there"
    assert message["id"] == pushed["message_id"]
    assert message["transactionId"] == "inv-41" and message["traceId"] == trace
    assert message["data"] == {"no": 41}
    assert message["producerSub"] is None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", message["createdAt"])
    assert message["partitionId"] == pushed["partition_id"] and message["partition"] == "p"
    assert message["leaseId"] == answer["leaseId"] and message["consumerGroup"] == group
    assert message["queue"] == queue
    assert type(message["retryCount"]) is int and message["retryCount"] == 0


@pytest.mark.parametrize("form", FORMS)
def test_queue_mode_is_named(broker, queue, form):
    broker.put(queue, [1], partition="p")
    answer = pop_form(broker, form, queue, "p").expect(200).json
    assert answer["consumerGroup"] == QUEUE_MODE
    assert answer["messages"][0]["consumerGroup"] == QUEUE_MODE


@pytest.mark.parametrize("form", FORMS)
def test_auto_ack_leaves_no_lease(broker, queue, form):
    broker.put(queue, [1, 2, 3], partition="p")
    answer = pop_form(broker, form, queue, "p", autoAck=True, batch=2).expect(200).json
    assert answer["leaseId"] == ""
    assert [m["leaseId"] for m in answer["messages"]] == ["", ""]
    assert [m["data"] for m in broker.take(queue, "p", autoAck=True, batch=9)] == [3]
    assert broker.take(queue, "p") == []


def empty(r):
    r.expect(204)
    assert r.body == b""
    assert r.headers.get("content-length", "0") == "0" and "transfer-encoding" not in r.headers


@pytest.mark.parametrize("form", FORMS)
def test_an_unknown_queue_gives_204_and_is_not_created(broker, queue, sql, form):
    empty(pop_form(broker, form, queue, "p"))
    assert sql("select 1 from queen.queues where name = %s", queue) == []


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_queue_gives_204(broker, queue, form):
    broker.configure(queue)
    empty(pop_form(broker, form, queue, "Default"))


def test_an_unknown_partition_gives_204_and_is_not_created(broker, queue, sql):
    broker.put(queue, [1], partition="p")
    empty(broker.pop(queue, "other"))
    assert sql("select count(*) from queen.partitions p join queen.queues q on q.id = p.queue_id where q.name = %s and "
               "p.name = 'other'", queue) == [(0,)]


@pytest.mark.parametrize("form", FORMS)
def test_a_leased_partition_gives_204_even_to_its_holder(broker, broker2, queue, form):
    broker.put(queue, [1, 2, 3], partition="p")
    assert len(broker.take(queue, "p")) == 1
    for b in (broker, broker2):
        empty(pop_form(b, form, queue, "p"))


def test_a_consumed_queue_gives_204(broker, queue):
    broker.put(queue, [1])
    (message,) = broker.take(queue)
    assert broker.ack(message)["leaseReleased"] is True
    empty(broker.pop(queue))


@pytest.mark.parametrize("batch,expected", [(None, 1), ("1", 1), ("3", 3), ("10", 10), ("1000", 12), ("10000", 12), ("0", 1),
                                            ("-5", 1), ("abc", 1), ("", 1), ("4x", 4)])
def test_batch_limits_the_number_of_messages(broker, queue, batch, expected):
    broker.put(queue, list(range(12)), partition="p")
    for form in (None, "p"):
        group = "g%s" % form
        messages = broker.take(queue, form, batch=batch, consumerGroup=group)
        assert [m["data"] for m in messages] == list(range(expected))


def test_the_first_of_two_equal_parameters_wins(broker, queue):
    broker.put(queue, list(range(5)))
    assert len(broker.get("/api/v1/pop/queue/%s?batch=2&batch=4" % queue).expect(200).json["messages"]) == 2


@pytest.mark.parametrize("value,on", [("true", True), ("1", True), ("false", False), ("0", False), ("yes", False), ("TRUE", False),
                                      ("", False)])
def test_a_flag_is_true_only_as_true_or_one(broker, queue, value, on):
    broker.put(queue, [1])
    answer = broker.get("/api/v1/pop/queue/%s?autoAck=%s" % (queue, value)).expect(200).json
    assert (answer["leaseId"] == "") is on


def test_wait_without_true_does_not_wait(broker, queue):
    begin = time.monotonic()
    for value in ("false", "0", "no", ""):
        empty(broker.get("/api/v1/pop/queue/%s?wait=%s&timeout=30000" % (queue, value)))
    assert time.monotonic() - begin < 20


def test_an_empty_group_is_queue_mode_and_unknown_parameters_are_ignored(broker, queue):
    broker.put(queue, [1])
    r = broker.get("/api/v1/pop/queue/%s?consumerGroup=&shoeSize=44&namespace=n&task=t&" % queue).expect(200)
    assert r.json["consumerGroup"] == QUEUE_MODE


def test_query_values_are_decoded(broker, queue):
    broker.put(queue, [1])
    r = broker.get("/api/v1/pop/queue/%s?consumerGroup=a+b%%2Fc%%26%%C3%%BC" % queue).expect(200)
    assert r.json["consumerGroup"] == "a b/c&ü"


def test_a_plus_in_a_path_is_a_plus_and_an_escaped_slash_does_not_split(broker, queue):
    broker.put(queue + "+a/b", [1], partition="x+y/z")
    r = broker.get("/api/v1/pop/queue/%s+a%%2Fb/partition/x+y%%2Fz" % queue).expect(200)
    assert (r.json["queue"], r.json["partition"]) == (queue + "+a/b", "x+y/z")


def test_messages_of_a_partition_come_in_order(broker, queue):
    broker.put(queue, list(range(50)), partition="p")
    seen = []
    while True:
        messages = broker.take(queue, "p", batch=7)
        if not messages:
            break
        seen += [m["data"] for m in messages]
        assert all(r["success"] for r in broker.ack_batch(messages))
    assert seen == list(range(50))


# --- several partitions ---------------------------------------------------------------------------------------------

def five_by_three(broker, queue):
    for p in range(5):
        broker.put(queue, ["%d-%d" % (p, i) for i in range(3)], partition="p%d" % p)


def test_batch_caps_the_whole_answer_over_the_partitions(broker, queue):
    """Three messages in each of five partitions, partitions=4 and batch=10: 3+3+3+1."""
    five_by_three(broker, queue)
    answer = broker.pop(queue, batch=10, partitions=4).expect(200).json
    sizes = {}
    for m in answer["messages"]:
        sizes[m["partition"]] = sizes.get(m["partition"], 0) + 1
    assert list(sizes.values()) == [3, 3, 3, 1]
    assert answer["partitionsClaimed"] == 4
    assert answer["partition"] == answer["messages"][0]["partition"]
    assert answer["partitionId"] == answer["messages"][0]["partitionId"]
    assert {m["leaseId"] for m in answer["messages"]} == {answer["leaseId"]}
    # concatenated, not interleaved, each in order
    names = [m["partition"] for m in answer["messages"]]
    assert names == sorted(names, key=list(sizes).index)
    for p in sizes:
        got = [m["data"] for m in answer["messages"] if m["partition"] == p]
        assert got == ["%s-%d" % (p[1:], i) for i in range(sizes[p])]


def test_partitions_that_were_made_a_moment_ago_are_all_in_one_pop(broker, queue):
    """For a group that is known a new partition was left out for some milliseconds."""
    assert broker.pop(queue).status == 204
    for i in range(6):
        broker.put(queue, [i], partition="p%d" % i)
    assert broker.pop(queue, batch=10, partitions=10).expect(200).json["partitionsClaimed"] == 6


@pytest.mark.parametrize("value,claimed", [(None, 1), (1, 1), (2, 2), (5, 5), (99, 5), (0, 1), (-3, 1), ("abc", 1)])
def test_partitions_limits_the_number_of_claims(broker, queue, value, claimed):
    five_by_three(broker, queue)
    answer = broker.pop(queue, batch=100, partitions=value).expect(200).json
    assert answer["partitionsClaimed"] == claimed
    assert len(answer["messages"]) == 3 * claimed
    assert len({m["partitionId"] for m in answer["messages"]}) == claimed


def test_partitions_is_ignored_for_a_named_partition(broker, queue):
    five_by_three(broker, queue)
    answer = broker.pop(queue, "p3", batch=100, partitions=4).expect(200).json
    assert [m["data"] for m in answer["messages"]] == ["3-0", "3-1", "3-2"]


def test_a_full_batch_claims_no_further_partition(broker, queue):
    five_by_three(broker, queue)
    assert broker.pop(queue, batch=3, partitions=5).expect(200).json["partitionsClaimed"] == 1
    assert len(broker.drain(queue)) == 12


def test_each_partition_of_a_claim_is_released_for_itself(broker, queue):
    five_by_three(broker, queue)
    messages = broker.take(queue, batch=100, partitions=2)
    first, second = messages[:3], messages[3:]
    results = broker.ack_batch(first)
    assert results[-1]["leaseReleased"] is True
    broker.put(queue, ["new"], partition=first[0]["partition"])
    assert [m["data"] for m in broker.take(queue, first[0]["partition"])] == ["new"]
    assert broker.take(queue, second[0]["partition"]) == []
    assert all(r["success"] for r in broker.ack_batch(second))


def test_a_mixed_batch_over_several_partitions_acknowledges_all(broker, queue):
    five_by_three(broker, queue)
    messages = broker.take(queue, batch=100, partitions=5)
    assert all(r["success"] for r in broker.ack_batch(messages[::-1]))
    assert broker.take(queue) == []


def test_every_partition_is_served_in_turn(broker, queue):
    for p in range(3):
        broker.put(queue, list(range(6)), partition="p%d" % p)
    served = []
    for _ in range(18):
        (message,) = broker.take(queue)
        served.append(message["partition"])
        assert broker.ack(message)["success"]
    for i in range(0, 18, 3):
        assert len(set(served[i:i + 3])) == 3, "least recently served first: %s" % served
    assert broker.take(queue) == []


def test_a_busy_partition_does_not_starve_the_others(broker, queue):
    broker.put(queue, ["quiet"], partition="quiet")
    broker.put(queue, ["busy"], partition="busy")
    for _ in range(6):
        (message,) = broker.take(queue, autoAck=True)
        if message["partition"] == "quiet":
            return
        broker.put(queue, ["busy"], partition="busy")
    pytest.fail("six pops in a row were served from the partition that was pushed to last")


def test_an_empty_claim_does_not_count(broker, queue):
    """A partition whose messages are all still delayed must not hide another one that has some due."""
    unit = unit_of_time()
    broker.configure(queue, delayedProcessing=unit)
    broker.put(queue, ["due"], partition="a")
    time.sleep(unit + 0.1)
    for p in "bcd":
        broker.put(queue, ["later"], partition=p)
    assert [m["data"] for m in broker.take(queue)] == ["due"]


def test_parallel_pops_never_share_a_partition(broker, broker2, queue):
    for p in range(20):
        broker.put(queue, list(range(3)), partition="p%d" % p)
    calls = [lambda b=b: b.take(queue, batch=3) for b in [broker, broker2] * 10]
    got = [m for m in in_parallel(calls) if m]
    names = [m[0]["partition"] for m in got]
    assert len(names) == len(set(names))
    assert len({m[0]["leaseId"] for m in got}) == len(got)
    # skipped rows (locked by a neighbour) may leave some for a second round, never twice
    rest = broker.take(queue, batch=1000, partitions=100)
    assert sorted(set(names) | {m["partition"] for m in rest}) == sorted("p%d" % p for p in range(20))
    assert not set(names) & {m["partition"] for m in rest}


def test_a_pop_with_more_workers_than_messages_gives_each_message_once(broker, queue):
    broker.put(queue, list(range(4)), partition="p")
    got = in_parallel([lambda: broker.take(queue, batch=10) for _ in range(16)])
    assert [len(g) for g in got if g] == [4]


# --- namespace and task ---------------------------------------------------------------------------------------------

@pytest.fixture
def labelled(broker, queue):
    """Queues in two namespaces and two tasks, one message each; name -> labels."""
    labels = {"a": ("n1", "t1"), "b": ("n1", "t2"), "c": ("n2", "t1"), "d": ("", "")}
    for name, (namespace, task) in labels.items():
        broker.configure(queue + name, namespace and queue + namespace, task and queue + task)
        broker.put(queue + name, [name])
    return labels


@pytest.mark.parametrize("namespace,task,expected", [("n1", None, "ab"), (None, "t1", "ac"), ("n1", "t1", "a"), ("n2", "t2", ""),
                                                     ("n9", None, "")])
def test_a_namespace_or_task_selects_the_queues(broker, queue, labelled, namespace, task, expected):
    params = {k: queue + v for k, v in (("namespace", namespace), ("task", task)) if v}
    answer = broker.pop(batch=100, partitions=100, **params)
    if not expected:
        return empty(answer)
    messages = answer.expect(200).json["messages"]
    assert sorted(m["data"] for m in messages) == sorted(expected)
    assert all(m["queue"] == queue + m["data"] for m in messages)
    assert answer.json["queue"] == messages[0]["queue"]
    assert all(r["success"] for r in broker.ack_batch(messages))
    empty(broker.pop(**params))


def test_a_namespace_pop_claims_one_partition_by_default(broker, queue, labelled):
    seen = []
    for _ in range(2):
        answer = broker.pop(namespace=queue + "n1", batch=10).expect(200).json
        assert answer["partitionsClaimed"] == 1
        seen += [m["data"] for m in answer["messages"]]
    assert sorted(seen) == ["a", "b"]


def test_a_namespace_pop_works_for_groups(broker, queue, group, labelled):
    for g in (group, group + "2"):
        got = broker.take(namespace=queue + "n1", batch=10, partitions=10, consumerGroup=g, autoAck=True)
        assert sorted(m["data"] for m in got) == ["a", "b"]


def test_derived_labels_are_found_as_well(broker, queue):
    broker.put(queue + ".orders.eu", [1])
    assert broker.take(namespace=queue, autoAck=True)[0]["queue"] == queue + ".orders.eu"
    broker.put(queue + ".orders.eu", [2])
    assert broker.take(namespace=queue, task="orders")[0]["data"] == 2


@pytest.mark.parametrize("query", ["", "?", "?batch=5", "?namespace=&task=", "?partition=p", "?consumerGroup=g", "?queue="])
def test_a_pop_that_names_nothing_is_refused(broker, query):
    r = broker.get("/api/v1/pop" + query).expect(400)
    assert isinstance(r.json["error"], str)


def test_the_defaults_of_batch_and_timeout_come_from_the_environment(make_broker, queue):
    b = make_broker(DEFAULT_BATCH_SIZE=3, DEFAULT_TIMEOUT=300)
    b.put(queue, list(range(5)))
    assert len(b.take(queue)) == 3
    begin = time.monotonic()
    empty(b.pop(queue, wait=True))
    assert 0.28 < time.monotonic() - begin < 20
