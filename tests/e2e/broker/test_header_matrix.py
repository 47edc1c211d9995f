"""No header that is missing, empty or repeated may harm the broker (header_matrix.py)."""
import header_matrix
import pytest


@pytest.mark.one_broker
def test_every_route_survives_every_header_missing_empty_and_repeated(pg, make_broker):
    b = make_broker(database=pg.create_database("header_matrix"), NUM_WORKERS=1)
    sent, wrong = header_matrix.run(b)
    assert not wrong, "\n".join(wrong)
    assert sent > 1000
    b.get("/ready").expect(200)


@pytest.mark.parametrize("path", ["push", "push/queue/x", "push/queue/x/partition/y"])
@pytest.mark.parametrize("event", ["", "ce-specversion: 1.0\r\nce-id: 1\r\nce-source: /s\r\nce-type: t\r\nce-queue: x\r\n"])
def test_a_push_without_content_type_is_answered(broker, path, event):
    data = "POST /api/v1/%s HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nConnection: close\r\n%s\r\n{}" % (path, event)
    statuses, said = header_matrix.talk(broker, data.encode())
    assert statuses == [201 if event else 400 if path == "push" else 415], said


def test_the_headers_of_the_matrix_come_from_the_sources():
    names = header_matrix.names_in_sources()
    assert {"content-type", "authorization", "accept", "content-encoding", "traceparent", "x-request-id"} <= names
