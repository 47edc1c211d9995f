"""The functions of broker/sql without a broker: keys, ids, packing, pushes."""
import time
import uuid

import psycopg2
import pytest

from harness import in_parallel
from sqlcore import key, stored, js, v7


# --- keys and ids ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("text", ["order-1", "", "ü", str(uuid.UUID(int=7)), v7().upper(), v7(),
                                  "019f0000-0000-8000-8000-000000000001", "019f0000000070008000000000000001"])
def test_the_key_of_a_transaction_id(core, text):
    assert core.one("select queen.transaction_key(%s)", text) == key(text)


def test_only_version_7_has_a_time(core):
    assert core.one("select queen.key_time(%s::uuid)", v7(1700000000123)) == 1700000000123
    assert core.one("select queen.key_time(%s::uuid)", str(uuid.uuid4())) is None


def test_a_key_is_found_on_a_boundary_only(core):
    a, b = uuid.uuid4().bytes, uuid.uuid4().bytes
    across = a[8:] + b[:8]
    assert core.one("select queen.key_position(%s::bytea, %s::bytea)", a + b, across) is None
    assert core.one("select queen.key_position(%s::bytea, %s::bytea)", a + b + across, across) == 2
    assert core.one("select queen.key_position(%s::bytea, %s::bytea)", a + b, b) == 1


def test_message_ids_rise_with_place_and_time(core):
    ids = [core.one("select queen.message_id('2026-01-01'::timestamptz + %s * interval '1 us', %s, 7)", us, pos)
           for us in (0, 1, 999, 1000) for pos in (0, 1, 255)]
    assert ids == sorted(ids) and len(set(ids)) == len(ids)
    assert {i.version for i in ids} == {7}


def test_a_packed_message_comes_back(core):
    row = core.rows("""select u.* from queen.unpack_segment(3, now(), 2,
        decode(repeat('00', 32), 'hex'), '\\x01' || queen.pack_message('tä', %s::uuid, 'sub', true, %s::uuid, null, '{"a": 1}')
                                                 || queen.pack_message(null, null, null, false, null, null, '"x"')) u""",
                    str(uuid.UUID(int=1)), str(uuid.UUID(int=2)))
    assert (row[0].transaction_id, row[0].trace_id, row[0].producer_sub, row[0].is_encrypted, row[0].message_id,
            row[0].payload) == ("tä", uuid.UUID(int=1), "sub", True, uuid.UUID(int=2), '{"a": 1}')
    assert (row[1].transaction_id, row[1].trace_id, row[1].producer_sub, row[1].is_encrypted, row[1].payload) == (
        str(uuid.UUID(int=0)), None, None, False, '"x"')


def test_further_fields_of_a_message_come_back(core):
    row = core.rows("""select u.* from queen.unpack_segment(3, now(), 2, decode(repeat('00', 32), 'hex'),
        '\\x01' || queen.pack_message('t', null, null, false, null, '{"traceparent":"ä"}', '1')
                || queen.pack_message(null, null, 'sub', false, null, null, '2')) u""")
    assert [(r.transaction_id, r.meta, r.payload) for r in row] == [
        ("t", '{"traceparent":"ä"}', "1"), (str(uuid.UUID(int=0)), None, "2")]


@pytest.mark.parametrize("body", ["\\x02", "\\x0140", "\\x"])
def test_messages_of_an_unknown_format_come_without_payload(core, body):
    """A version or a flag that is not known, or no byte at all: the reader can set such messages aside and go on."""
    rows = core.rows("select * from queen.unpack_segment(1, now(), 2, ''::bytea, %s::bytea)", body)
    assert [(r.pos, r.payload) for r in rows] == [(0, None), (1, None)]


# --- push -----------------------------------------------------------------------------------------------------------

KINDS = [lambda: v7(), lambda: str(uuid.uuid4()), lambda: "order-" + uuid.uuid4().hex, lambda: v7().upper(),
         lambda: v7(1000), lambda: v7(2 ** 47)]


@pytest.mark.parametrize("make", KINDS)
def test_a_duplicate_of_any_kind_is_found_and_named(core, lane, make):
    ids = [make() for _ in range(3)]
    for i in ids:
        stored(core, core.push([(lane[0], [i])]))
    rows = core.push([(lane[0], [ids[1]])])
    assert [(r.status, r.seg, r.pos) for r in rows] == [(1, 1, 0)]
    first = core.one("select id from queen.messages where partition_id = %s and transaction_id = %s", lane[1], ids[1])
    assert rows[0].dup_id == first


def test_every_duplicate_of_a_segment_is_reported(core, lane):
    base = int(time.time() * 1000)
    ids = [v7(base + i) for i in range(40)]
    stored(core, core.push([(lane[0], ids)]))
    rows = core.push([(lane[0], [v7(base), ids[7], "x", ids[39]])])
    assert sorted((r.status, r.pos) for r in rows) == [(1, 1), (1, 3)]
    assert core.one("select count(*) from queen.messages where partition_id = %s", lane[1]) == 40


def test_the_same_id_in_another_lane_is_not_a_duplicate(core, lane, queue):
    other = core.lanes((queue, "other"))[0]
    for i in (v7(), "plain"):
        stored(core, core.push([(lane[0], [i]), (other[0], [i])]))


def test_after_a_duplicate_other_lanes_are_stored_and_its_lane_is_held_back(core, lane, queue):
    other = core.lanes((queue, "other"))[0]
    core.push([(lane[0], ["a"])])
    rows = core.push([(lane[0], ["b"]), (lane[0], ["a"]), (lane[0], ["c"]), (other[0], ["a"])])
    assert sorted((r.status, r.seg) for r in rows if r.status) == [(1, 2), (2, 3)]
    assert {r.lane for r in rows if not r.status} == {lane[0], other[0]}
    # the plain key of what was stored leads to the right place
    assert core.one("select queen.find_message(%s, %s)", lane[0], key("b")) == 2
    assert core.one("select queen.find_message(%s, %s)", lane[0], key("c")) is None


def test_plain_keys_lead_to_their_places_in_several_segments_of_several_lanes(core, lane, queue):
    a, b = lane[0], core.lanes((queue, "other"))[0][0]
    core.push([(b, [v7()])])
    for rows in (core.push([(a, ["a1", v7(), "a3"]), (b, ["b2"]), (a, ["a4"]), (b, [v7(), "b4"])]), core.push([(a, ["a5"]), (a, ["a6", "a7"])])):
        stored(core, rows)
    found = {i: core.one("select queen.find_message(%s, %s)", a if i[0] == "a" else b, key(i)) for i in ("a1", "a3", "a4", "a5", "a6", "a7", "b2", "b4")}
    assert found == {i: int(i[1]) for i in found}


def test_a_whole_request_with_a_duplicate_stores_nothing(core, lane):
    core.push([(lane[0], ["a"])])
    rows = core.push([(lane[0], ["b"]), (lane[0], ["a"])], whole=True)
    assert sorted((r.status, r.seg) for r in rows) == [(1, 2), (2, 1)]
    assert core.one("select count(*) from queen.segments where lane = %s", lane[0]) == 1


def test_sequences_have_no_gap_and_times_rise(core, lane):
    for n in (1, 5, 2):
        core.push([(lane[0], [v7() for _ in range(n)]), (lane[0], [v7()])])
    rows = core.rows("select * from queen.segments where lane = %s order by first_seq", lane[0])
    assert [r.first_seq for r in rows] == [1, 2, 3, 8, 9, 11]
    times = [r.created_at for r in rows]
    assert times == sorted(times) and len(set(times)) == len(times)


def test_a_full_queue_refuses_the_whole_request_and_is_named(core, queue):
    core.configure(queue, maxSize=3)
    core.configure(queue + "-2")
    (a, a_id), (b, _) = core.lanes((queue, "p"), (queue + "-2", "p"))
    assert [r.status for r in core.push([(a, ["0"])])] == [5]
    stored(core, core.push([(a, ["0", "1"])], whole=True))
    rows = core.push([(b, ["x"]), (a, ["2", "3"])], whole=True)
    assert sorted((r.seg, r.status) for r in rows) == [(1, 2), (2, 4)]
    stored(core, core.push([(a, ["2"])], whole=True))
    # consumed messages make room
    consumer = core.consumers("g", a)
    core.claim(consumer, batch=2, auto=True)
    stored(core, core.push([(a, ["3", "4"])], whole=True))
    assert [r.status for r in core.push([(a, ["5"])], whole=True)] == [4]
    with pytest.raises(psycopg2.Error) as e:
        js(core, "push_messages_v2", [{"queue": queue, "partition": "p"}])
    assert e.value.pgcode == "QN004" and queue in str(e.value)
    answer = js(core, "execute_transaction_v2", [{"type": "push", "queue": queue}])
    assert answer["success"] is False and "full" in answer["error"]
    core.configure(queue)
    stored(core, core.push([(a, ["5"])]))


def test_a_deleted_lane_is_reported(core, lane, queue):
    core.rows("delete from queen.queues where name = %s", queue)
    assert [r.status for r in core.push([(lane[0], ["a"])])] == [3]


def test_one_of_many_racing_pushes_wins(connect, lane):
    for make in KINDS:
        i = make()
        cores = [connect() for _ in range(6)]
        # As SQL sessions (origin 0): a broker would wait 100 ms for the lane, which is too short on a busy machine.
        rows = sum(in_parallel([lambda c=c: c.push([(lane[0], [i])], origin=0) for c in cores]), [])
        assert sorted(r.status for r in rows) == [0, 1, 1, 1, 1, 1]
        assert len({r.dup_id for r in rows if r.status}) == 1


def test_creating_lanes_concurrently_never_deadlocks(connect, queue):
    names = [(queue + "-%d" % (i % 7), "p%d" % (i % 13)) for i in range(91)]

    def work(core, shift):
        for n in range(5):
            pairs = [(q + "-%d" % n, p) for q, p in names[shift:] + names[:shift]]
            assert len(core.lanes(*pairs)) == len(pairs)
    in_parallel([lambda c=connect(), s=s: work(c, s) for s in (0, 20, 40, 60)])
