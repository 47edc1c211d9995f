"""Correct answers: aggregates over everything, errors with their cause, input that can never work."""
import json

import pytest

SCHEDULED = {"mode": "scheduled", "strategy": "fixed", "base": 3600, "maxAttempts": 3}


# ---- the timeline of many messages ----

def test_the_timeline_of_a_correlation_id_covers_all_of_its_messages(broker, queue):
    broker.configure(queue, retryPolicy=SCHEDULED)
    broker.push([{"queue": queue, "partition": "p", "payload": i, "transactionId": "m%03d" % i, "correlationId": queue}
                 for i in range(300)]).expect(201)
    messages = broker.take(queue, "p", batch=300)
    assert all(r["success"] for r in broker.ack_batch([broker.ack_entry(m, "failed" if m["data"] == 250 else "completed") for m in messages]))
    line = broker.get("/api/v1/messages/timeline?correlationId=" + queue).expect(200).json
    assert (line["status"], line["total"], line["truncated"], len(line["messages"])) == ("RETRYING", 300, False, 100)
    assert line["nextAttemptAt"] is not None
    seen = []
    for offset in (0, 150, 300):
        page = broker.get("/api/v1/messages/timeline?correlationId=%s&limit=150&offset=%d" % (queue, offset)).expect(200).json
        assert (page["status"], page["total"]) == ("RETRYING", 300)
        seen += [m["transactionId"] for m in page["messages"]]
    assert sorted(seen) == ["m%03d" % i for i in range(300)]


# ---- errors of the database ----

def test_a_failure_of_the_database_has_a_cause_and_an_id(broker, sql, queue):
    sql("""create function queen.test_refuse() returns trigger language plpgsql as $$
           begin raise exception 'secret detail' using errcode = 'XX001'; end $$""")
    sql("create trigger test_refuse before insert on queen.schedules for each row execute function queen.test_refuse()")
    try:
        answer = broker.post("/api/v1/schedules", {"name": queue, "queue": queue, "cron": "0 9 * * *"}).expect(500)
    finally:
        sql("drop trigger test_refuse on queen.schedules")
        sql("drop function queen.test_refuse()")
    error, request = answer.json["error"], answer.headers["x-request-id"]
    assert error == "the database failed: SQLSTATE XX001, internal error; request " + request
    log = broker.log_text() + (broker.twin.log_text() if broker.twin else "")
    (line,) = [x for x in log.splitlines() if "event=db.request_failed" in x and request in x]
    assert "secret detail" in line and "sqlstate=XX001" in line


def test_a_statement_that_takes_too_long_names_the_setting(make_broker, sql, queue):
    """The answer was that an operator had stopped it."""
    b = make_broker(DB_STATEMENT_TIMEOUT="300")
    sql("create function queen.test_slow() returns trigger language plpgsql as $$ begin perform pg_sleep(30); return new; end $$")
    sql("create trigger test_slow before insert on queen.schedules for each row execute function queen.test_slow()")
    try:
        answer = b.post("/api/v1/schedules", {"name": queue, "queue": queue, "cron": "0 9 * * *"}).expect(503)
    finally:
        sql("drop trigger test_slow on queen.schedules")
        sql("drop function queen.test_slow()")
    assert "SQLSTATE 57014, longer than DB_STATEMENT_TIMEOUT" in answer.json["error"], answer.json


@pytest.fixture
def refuse(sql):
    """refuse(table, condition): PostgreSQL refuses such rows with XX001 until the test ends."""
    tables = []
    sql("""create function queen.test_refuse_row() returns trigger language plpgsql as $$
           begin raise exception 'secret detail' using errcode = 'XX001'; end $$""")

    def add(table, condition):
        sql("create trigger test_refuse_row before insert on queen.%s for each row when (%s) execute function queen.test_refuse_row()"
            % (table, condition))
        tables.append(table)
    yield add
    for table in tables:
        sql("drop trigger test_refuse_row on queen." + table)
    sql("drop function queen.test_refuse_row()")


def lane_of(sql, queue):
    ((num,),) = sql("select l.num from queen.lanes l join queen.queues q on q.id = l.queue_id where q.name = %s and l.name = 'Default'", queue)
    return num


@pytest.mark.parametrize("what", ["message", "scheduled message", "partition", "transaction"])
def test_a_push_that_the_database_refuses_has_the_cause(broker, sql, queue, refuse, what):
    """It had neither the SQLSTATE nor the cause, in the answer and in the log."""
    broker.put(queue, [1])
    item = {"queue": queue, "payload": 2}
    if what == "partition":
        item["partition"] = "refused-" + queue
        refuse("lanes", "new.name = '%s'" % item["partition"])
    elif what == "scheduled message":
        item["delaySeconds"] = 3600
        refuse("scheduled", "new.lane = %d" % lane_of(sql, queue))
    else:
        refuse("segments", "new.lane = %d" % lane_of(sql, queue))
    if what == "transaction":
        answer = broker.post("/api/v1/transaction", {"operations": [{"type": "push", "items": [item]}]})
    else:
        answer = broker.push([item])
    answer.expect(500)
    request = answer.headers["x-request-id"]
    assert answer.json["error"] == "the database failed: SQLSTATE XX001, internal error; request " + request
    log = broker.log_text() + (broker.twin.log_text() if broker.twin else "")
    (line,) = [x for x in log.splitlines() if "event=db.request_failed" in x and request in x]
    assert "secret detail" in line and "sqlstate=XX001" in line


@pytest.mark.parametrize("options", [{}, {"ordering": "none"}])
def test_a_pop_that_the_database_refuses_is_logged(make_broker, sql, queue, refuse, options):
    """Consumers of existing clients stop at an error, so the answer is that of an empty queue. Nothing was logged."""
    b = make_broker()
    b.configure(queue, **options)
    b.put(queue, [1])
    assert b.ack(b.take(queue)[0])["success"]
    b.put(queue, [2])
    ((num,),) = sql("select c.num from queen.consumers c where c.lane = %s", lane_of(sql, queue))
    refuse("consumer_states", "new.consumer = %d" % num)
    if options:
        refuse("holds", "new.consumer = %d" % num)
    assert b.pop(queue).status == 204
    (line, *_) = [x for x in b.log_text().splitlines() if "event=db.statement_failed" in x]
    assert "sqlstate=XX001" in line and "secret detail" in line


# ---- input that can never work ----

@pytest.mark.parametrize("cron", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_cron_expression_that_never_fires_is_refused(broker, queue, cron):
    answer = broker.post("/api/v1/schedules", {"name": queue, "queue": queue, "cron": cron}).expect(400)
    assert "never fires" in answer.json["error"]


def test_the_29th_of_february_fires(broker, queue):
    broker.post("/api/v1/schedules", {"name": queue, "queue": queue, "cron": "0 0 29 2 *"}).expect(201)


def test_error_texts_are_cut_between_characters(broker, sql, queue):
    broker.configure(queue, retryLimit=0)
    broker.put(queue, [1], partition="p")
    (m,) = broker.take(queue, "p")
    assert broker.ack(m, "failed", error="\u00e9" * 5000, errorCode="c" * 300, worker="w" * 300)["dlq"] is True
    (letter,) = broker.get("/api/v1/dlq?queue=" + queue).expect(200).json["messages"]
    assert letter["errorMessage"] == "\u00e9" * 4000
    (row,) = sql("select length(a.error), length(a.error_code), length(a.worker) from queen.attempts a where a.message_id = %s", letter["id"])
    assert row == (4000, 255, 255)


@pytest.mark.parametrize("policy, attempt, seconds", [
    ({}, 1, 10), ({"strategy": "fixed", "base": 7}, 1000000, 7), ({"strategy": "exponential"}, 2147483647, 604800),
    ({"strategy": "fibonacci", "base": 1}, 2147483647, 604800), ({"strategy": "list", "delays": [1, 2]}, 9, 2),
    ({"strategy": "list", "delays": [1, 2]}, 0, 1), ({"cap": 30}, 100, 30), ({"base": 5}, -3, 5)])
def test_the_delay_of_a_partial_policy_and_of_a_late_attempt(sql, policy, attempt, seconds):
    assert sql("select queen.retry_delay(%s::jsonb, %s)", json.dumps(policy), attempt) == [(seconds,)]
