"""Helpers and fixtures of the tests of stream queries."""
import uuid

import pytest

SEP = "\u001f"


def register(broker, name, source="src", hash="h1", status=200, **more):
    return broker.post("/streams/v1/queries", {"name": name, "source_queue": source, "config_hash": hash,
                                               **more}).expect(status).json


def cycle(broker, query, partition, status=200, **fields):
    return broker.post("/streams/v1/cycle", {"query_id": query, "partition_id": partition, **fields}).expect(status).json


def state(broker, query, partition, **filters):
    answer = broker.post("/streams/v1/state/get", {"query_id": query, "partition_id": partition, **filters}).expect(200).json
    assert answer["success"] is True
    return answer["rows"]


def values(broker, query, partition, **filters):
    return {r["key"]: r["value"] for r in state(broker, query, partition, **filters)}


def upsert(key, value):
    return {"type": "upsert", "key": key, "value": value}


def delete(key):
    return {"type": "delete", "key": key}


def ack_of(messages, lease=True, **more):
    m = messages[-1]
    ack = {"transactionId": m["transactionId"], "status": "completed", "count": len(messages), **more}
    if lease:
        ack.setdefault("leaseId", m["leaseId"])
    return ack


def failed(answer, text):
    assert answer["success"] is False and text in answer["error"] and answer["ack_result"] is None, answer
    return answer


@pytest.fixture
def name():
    return "test-" + uuid.uuid4().hex[:12]


@pytest.fixture
def query(broker, name, queue):
    return register(broker, name, queue)["query_id"]


@pytest.fixture
def out(queue):
    return queue + "-out"


@pytest.fixture
def part():
    return str(uuid.uuid4())
