"""Members and query parameters that nobody reads: refused where ignoring them would change the meaning of the request."""
import json
import os
import re

import pytest

from harness import REPO


def call(broker, method, path, body=None):
    r = broker.request(method, path, body)
    return r.status, r.json if r.body else None


def refused(answer, *words):
    status, body = answer
    assert status == 400, answer
    for word in words:
        assert word in body["error"], answer


def names(broker, queue, n=3):
    for i in range(n):
        assert call(broker, "POST", "/api/v1/push", {"items": [
            {"queue": queue, "payload": i, "transactionId": "t%d" % i, "delaySeconds": 3600}]})[0] == 201


def waiting(broker, queue):
    return call(broker, "GET", "/api/v1/scheduled/count?queue=" + queue)[1]


# ---- calls that destroy something ----

@pytest.mark.parametrize("extra", ["transactonIdPrefix=x", "transactionIdPrefix=", "prefix=x", "kind", "from="])
def test_a_filter_that_is_not_applied_cancels_nothing(broker, queue, extra):
    names(broker, queue)
    before = waiting(broker, queue)
    refused(call(broker, "DELETE", "/api/v1/scheduled?queue=%s&%s" % (queue, extra)), extra.split("=")[0])
    assert waiting(broker, queue) == before


@pytest.mark.parametrize("path", ["/api/v1/queues/%s/clear?partitoin=p", "/api/v1/queues/%s/clear?partition=",
                                  "/api/v1/resources/queues/%s?dryRun=true",
                                  "/api/v1/consumer-groups/g/queues/%s?deleteMetaData=false"])
def test_a_deletion_refuses_every_unknown_or_empty_parameter(broker, queue, path):
    broker.put(queue, [1, 2])
    refused(call(broker, "DELETE", path % queue), "query parameter")
    assert len(broker.take(queue, batch=5)) == 2


def test_a_deletion_refuses_a_body_that_was_meant_as_a_filter(broker, queue):
    broker.put(queue, [1, 2])
    refused(call(broker, "DELETE", "/api/v1/queues/%s/clear" % queue, {"partition": "p"}), "partition")
    assert len(broker.take(queue, batch=5)) == 2


@pytest.mark.parametrize("path, body", [
    ("/api/v1/consumer-groups/g/queues/%s/seek", {"toEnd": True, "timestmap": "2026-01-01T00:00:00Z"}),
    ("/api/v1/consumer-groups/g/queues/%s/partitions/Default/seek", {"timestamp": "2026-01-01T00:00:00Z"}),
    ("/api/v1/consumer-groups/g/queues/%s/seek?partition=p", {"toEnd": True})])
def test_a_seek_refuses_what_it_does_not_read(broker, queue, path, body):
    broker.put(queue, [1, 2])
    assert broker.take(queue, consumerGroup="g", batch=1)
    refused(call(broker, "POST", path % queue, body), "unknown")


@pytest.mark.parametrize("action, query, body", [
    ("dlq", "", {"group": "g"}), ("dlq", "?consumerGroup=g", None), ("dlq", "", {"consumerGroup": "g", "reason": "x"}),
    ("retry", "", {"consumerGroup": "g"}), ("retry", "?consumerGroup=g", None)])
def test_an_action_on_a_message_refuses_what_it_does_not_read(broker, queue, action, query, body):
    (m,) = broker.put(queue, [1], ids=["a"])
    refused(call(broker, "POST", "/api/v1/messages/%s/a/%s%s" % (m["partition_id"], action, query), body), "unknown")
    assert len(broker.take(queue)) == 1, "nothing was moved"


def test_revoking_a_key_refuses_a_body(broker):
    refused(call(broker, "DELETE", "/api/v1/keys/none", {"key": "other"}), "unknown member")
    assert call(broker, "DELETE", "/api/v1/keys/none", {})[0] == 404


def test_a_redrive_refuses_what_it_does_not_read(broker, queue):
    refused(call(broker, "POST", "/api/v1/dlq/redrive", {"queue": queue, "eror": "x"}), "eror", "error")
    refused(call(broker, "POST", "/api/v1/dlq/redrive?queue=x", {"queue": queue}), "queue")


@pytest.mark.parametrize("query, error", [
    ("queue=%s&queue=other", "given twice"), ("queue=%s&from=2020-01-01&from=2099-01-01", "given twice"), ("all=maybe", "all must be true or false")])
def test_a_filter_that_is_not_clear_cancels_nothing(broker, queue, query, error):
    """The second of two was ignored."""
    names(broker, queue)
    before = waiting(broker, queue)
    refused(call(broker, "DELETE", "/api/v1/scheduled?" + query.replace("%s", queue)), error)
    assert waiting(broker, queue) == before


@pytest.mark.parametrize("flag, deleted", [("true", True), ("1", True), ("0", False), ("no", False), ("TRUE", False)])
def test_a_flag_of_the_contract_is_true_only_for_true_and_1(broker, group, flag, deleted):
    """http-api 1.3: anything else is false. It was answered with 400."""
    answer = call(broker, "DELETE", "/api/v1/consumer-groups/%s?deleteMetadata=%s" % (group, flag))
    assert (answer[0], answer[1]["metadataDeleted"]) == (200, deleted)


def test_the_preview_of_a_seek_refuses_a_value_that_is_no_boolean(broker, queue, group):
    broker.put(queue, [1, 2])
    assert broker.take(queue, consumerGroup=group, autoAck=True)
    path = "/api/v1/consumer-groups/%s/queues/%s/seek" % (group, queue)
    refused(call(broker, "GET", path + "?toEnd=yes"), "toEnd must be true or false")
    assert call(broker, "GET", path + "?toEnd=false&timestamp=2020-01-01T00:00:00Z")[1]["again"] == 1


def test_a_subscription_refuses_what_it_does_not_read(broker, group):
    """The queue was ignored, and the subscription changed for all."""
    path = "/api/v1/consumer-groups/%s/subscription" % group
    refused(call(broker, "POST", path, {"subscriptionTimestamp": "2026-01-01T00:00:00Z", "queue": "q"}), '"queue"')
    refused(call(broker, "POST", path + "?queue=q", {"subscriptionTimestamp": "2026-01-01T00:00:00Z"}), '"queue"')


# ---- our own endpoints ----

@pytest.mark.parametrize("path", ["/api/v1/scheduled?limit=x", "/api/v1/scheduled/count?bucketSeconds=1m", "/api/v1/schedules?offset=-", "/api/v1/audit?before=x",
                                  "/api/v1/messages/timeline?correlationId=c&limit=1e3", "/api/v1/dlq/groups?limit=x"])
def test_a_number_that_is_none_is_refused(broker, path):
    """It counted as missing: a program that pages by it would never end."""
    refused(call(broker, "GET", path), "must be a whole number")


def test_a_parameter_that_is_given_twice_is_refused(broker):
    refused(call(broker, "GET", "/api/v1/scheduled?queue=a&queue=b"), '"queue" is given twice')
    assert call(broker, "GET", "/api/v1/resources/queues?limit=1&limit=2")[0] == 200, "the first one, as in the contract"


@pytest.mark.parametrize("verb", ["pause", "resume", "run"])
def test_a_call_without_a_body_refuses_one(broker, queue, verb):
    body = {"name": queue, "queue": queue, "cron": "0 9 1 1 *", "payload": 1}
    assert call(broker, "POST", "/api/v1/schedules", body)[0] in (200, 201)
    refused(call(broker, "POST", "/api/v1/schedules/%s/%s" % (queue, verb), {"payload": 2}), "payload")
    assert call(broker, "POST", "/api/v1/schedules/%s/%s" % (queue, verb), {})[0] in (200, 201)
    assert call(broker, "DELETE", "/api/v1/schedules/" + queue)[0] == 200


def test_a_schedule_refuses_an_unknown_member(broker, queue):
    refused(call(broker, "POST", "/api/v1/schedules", {"name": "s", "queue": queue, "cron": "0 9 * * *", "timeZone": "Europe/Berlin"}),
            "timeZone", 'did you mean "timezone"?')
    refused(call(broker, "GET", "/api/v1/schedules?que=" + queue), "que")


def test_the_timeline_refuses_an_unknown_parameter(broker):
    refused(call(broker, "GET", "/api/v1/messages/timeline?transactionid=x"), 'did you mean "transactionId"?')
    refused(call(broker, "GET", "/api/v1/messages/timeline?transactionId=x&since=1"), '"since"', "known: ")


def test_a_retry_policy_names_its_unknown_members(broker, queue):
    refused(call(broker, "POST", "/api/v1/configure", {"queue": queue, "options": {"retryPolicy": {
        "mode": "scheduled", "delays": [1, 2, 3]}}}), "delays", "list")
    refused(call(broker, "POST", "/api/v1/push", {"items": [{"queue": queue, "payload": 1, "retryPolicy": {"delays": [1]}}]}),
            "item 0", "delays", "list")
    refused(call(broker, "POST", "/api/v1/push", {"items": [{"queue": queue, "payload": 1, "retryPolicy": {"maxAttempt": 3}}]}),
            'did you mean "maxAttempts"?')


# ---- the public contract ----

def test_options_beside_options_are_refused(broker, queue):
    refused(call(broker, "POST", "/api/v1/configure", {"queue": queue, "retryPolicy": {"mode": "scheduled"}}),
            "retryPolicy", 'inside "options"')
    refused(call(broker, "POST", "/api/v1/configure", {"queue": queue, "options": {"leasetime": 5}}), 'did you mean "leaseTime"?')
    assert call(broker, "GET", "/api/v1/resources/queues/" + queue)[0] == 404


@pytest.mark.parametrize("item", [{"delaySecond": 60}, {"transactionid": "x"}, {"partitions": "p"}, {"paylod": 1}])
def test_an_item_refuses_a_name_that_is_nearly_right(broker, queue, item):
    (name,) = item
    refused(call(broker, "POST", "/api/v1/push", {"items": [{"queue": queue, "payload": 1}, {"queue": queue, **item}]}), "item 1", name)
    refused(call(broker, "POST", "/api/v1/transaction", {"operations": [{"type": "push", "items": [{"queue": queue, **item}]}]}), name)
    assert call(broker, "GET", "/api/v1/resources/queues/" + queue)[0] == 404


def test_names_that_clients_send_and_nobody_reads_are_ignored(broker, queue):
    assert call(broker, "POST", "/api/v1/push", {"bufferMs": 100, "bufferMax": 10, "items": [
        {"queue": queue, "payload": 1, "producerSub": "x", "namespace": "n", "task": "t", "messageId": "m", "is_encrypted": False}]})[0] == 201
    status, got = call(broker, "GET", "/api/v1/pop/queue/%s?namespace=n&task=t&batch=1&_=123" % queue)
    assert status == 200
    (m,) = got["messages"]
    assert call(broker, "POST", "/api/v1/ack", {"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": m["leaseId"],
                                               "status": "completed", "error": None, "consumerGroup": None, "took": 5})[1][0]["success"]
    assert call(broker, "GET", "/health?t=1")[0] == 200
    assert call(broker, "POST", "/api/v1/configure", {"queue": queue, "options": {"somethingElse": 1}, "author": "me"})[0] == 200


def test_a_pop_refuses_a_parameter_that_is_nearly_right(broker, queue):
    broker.put(queue, [1])
    refused(call(broker, "GET", "/api/v1/pop/queue/%s?autoack=true" % queue), 'did you mean "autoAck"?')
    refused(call(broker, "GET", "/api/v1/pop/queue/%s?consumergroup=g" % queue), "consumerGroup")
    assert len(broker.take(queue)) == 1


@pytest.mark.parametrize("status", [5, True, ["failed"], {}])
def test_a_status_that_is_no_text_settles_nothing(broker, queue, status):
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    entry = {"transactionId": m["transactionId"], "partitionId": m["partitionId"], "leaseId": m["leaseId"], "status": status}
    refused(call(broker, "POST", "/api/v1/ack", entry), "status must be a string")
    refused(call(broker, "POST", "/api/v1/ack/batch", {"acknowledgments": [entry]}), "entry 0", "status must be a string")
    assert broker.ack(m)["success"]


@pytest.mark.parametrize("field, value", [("errorCode", 404), ("worker", True)])
def test_a_field_of_another_type_settles_nothing(broker, queue, field, value):
    """errorCode was ignored, so that the policy retried what must not be retried."""
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    entry = {"transactionId": m["transactionId"], "partitionId": m["partitionId"], "status": "completed", field: value}
    refused(call(broker, "POST", "/api/v1/ack", entry), field + " must be a string")
    refused(call(broker, "POST", "/api/v1/ack/batch", {"acknowledgments": [entry]}), "entry 0", field + " must be a string")
    refused(call(broker, "POST", "/api/v1/transaction", {"operations": [{"type": "ack", **entry}]}), field + " must be a string")
    assert broker.ack(m)["success"]


@pytest.mark.parametrize("leases", ["LEASE", {"a": 1}, [5], [["LEASE"]]])
def test_required_leases_of_another_type_settle_nothing(broker, queue, sql, leases):
    broker.put(queue, [1])
    (m,) = broker.take(queue)
    ack = {"type": "ack", "transactionId": m["transactionId"], "partitionId": m["partitionId"]}
    refused(call(broker, "POST", "/api/v1/transaction", {"operations": [ack], "requiredLeases": leases}), "requiredLeases must be")
    if leases != [["LEASE"]]:
        with pytest.raises(Exception, match="requiredLeases must be"):
            sql("select queen.execute_transaction_v2(%s::jsonb)", json.dumps({"operations": [ack], "requiredLeases": leases}))
    assert broker.ack(m)["success"]


# ---- calls from SQL ----

PUSH = "select queen.push_messages_v2('[{\"queue\":\"Q\",\"payload\":1,%s}]')"
ACK = "select queen.ack_messages_v2('[{\"transactionId\":\"a\",\"partitionId\":\"P\",%s}]')"


@pytest.mark.parametrize("statement, error", [
    (PUSH % '"delaySecond":60', 'item 0: unknown member "delaySecond"; did you mean "delaySeconds"'),
    (PUSH % '"partitionKey":"k"', "item 0: partitionKey is read only by POST"),
    ("select queen.execute_transaction_v2('[{\"type\":\"push\",\"queue\":\"Q\",\"paylod\":1}]')", 'did you mean "payload"'),
    ("select queen.execute_transaction_v2('{\"operations\":[{\"type\":\"push\",\"queue\":\"Q\"}],\"requiredLease\":[]}')", "requiredLeases"),
    ("select queen.pop_specific_batch('[{\"queue_name\":\"Q\",\"consumer_grup\":\"g\"}]')", 'did you mean "consumer_group"'),
    (ACK % '"status":5', "acknowledgment 0: status must be a string"),
    (ACK % '"consumerGroup":5', "acknowledgment 0: consumerGroup must be a string"),
    (ACK % '"leaseid":"x"', 'did you mean "leaseId"'),
    ("select queen.renew_lease_v2('[{\"leaseId\":\"a\",\"extendSecond\":5}]')", 'did you mean "extendSeconds"'),
    ("select queen.configure_queue_v1('Q', '{\"leasetime\":5}')", 'did you mean "leaseTime"'),
    ("select queen.configure_queue_v1('Q', '{\"options\":{},\"retryPolicy\":{}}')", "inside"),
])
def test_sql_refuses_what_changes_the_meaning(broker, queue, sql, statement, error):
    (pushed,) = broker.put(queue, [1], ids=["a"])
    with pytest.raises(Exception, match="unknown|must be|read only|inside") as e:
        sql(statement.replace("Q", queue).replace('"P"', '"%s"' % pushed["partition_id"]))
    assert error in str(e.value)
    assert len(broker.take(queue, batch=5)) == 1, "nothing was changed"


def test_sql_ignores_other_names(broker, queue, sql):
    sql(PUSH.replace("Q", queue) % '"origin":"crm"')
    assert len(broker.take(queue)) == 1


def test_all_lists_of_options_are_the_same(broker, queue):
    """ordering was missing, so that "orderin" made an ordinary queue."""
    code = open(os.path.join(REPO, "broker/src/api/admin/configure.c")).read()
    (names,) = re.findall(r"option_names\[\] = {(.*?)NULL}", code, re.S)
    in_c = set(re.findall(r'"(\w+)"', names))
    text = open(os.path.join(REPO, "broker/sql/admin/configure_queue.sql")).read()
    (names,) = re.findall(r"check_names\(o, '{(.*?)}'", text, re.S)
    in_sql = {n.strip() for n in names.split(",")}
    read = set(re.findall(r"option_\w+\(o, '(\w+)'", text)) | set(re.findall(r"\bo ->>? '(\w+)'", text))
    code = open(os.path.join(REPO, "cli/cmd_queue.c")).read()
    (names,) = re.findall(r"option_names\[\] = {(.*?)NULL}", code, re.S)
    assert in_c == in_sql == read == set(re.findall(r'"(\w+)"', names))
    refused(call(broker, "POST", "/api/v1/configure", {"queue": queue, "options": {"orderin": "none"}}), 'did you mean "ordering"?')
    refused(call(broker, "POST", "/api/v1/configure", {"queue": queue, "ordering": "none"}), 'inside "options"')


# ---- a queue without a name ----

def test_nothing_is_sent_to_a_queue_without_a_name(broker, sql):
    refused(call(broker, "POST", "/api/v1/push", {"items": [{"queue": "", "payload": 1}]}), "item 0", "queue must not be empty")
    refused(call(broker, "POST", "/api/v1/transaction", {"operations": [{"type": "push", "queue": "", "payload": 1}]}), "queue must not be empty")
    refused(call(broker, "POST", "/api/v1/schedules", {"name": "s", "queue": "", "cron": "0 9 * * *"}), "queue")
    with pytest.raises(Exception, match="queue must"):
        sql("""select queen.push_messages_v2('[{"queue":"","payload":1}]'::jsonb)""")
