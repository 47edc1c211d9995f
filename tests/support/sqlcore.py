"""The SQL of Queen without a broker: loads broker/sql into a database and calls its functions as the broker does."""
import glob
import hashlib
import json
import os
import re
import sys
import time
import uuid

import psycopg2.extras

from harness import REPO

sys.path.insert(0, os.path.join(REPO, "tools"))
import embed_sql  # noqa: E402

psycopg2.extras.register_uuid()
SQL = os.path.join(REPO, "broker", "sql")
QUEUE_MODE = "__QUEUE_MODE__"


def statements(root=SQL):
    """The statements that the broker sends, by name, with their comments."""
    found = {}
    for path in glob.glob(os.path.join(root, "*", "statements.sql")):
        with open(path) as f:
            parts = embed_sql.STATEMENT.split(f.read())
        found.update(zip(parts[1::2], parts[2::2]))
    return found


def load(conn, root=SQL, schema="queen"):
    """Everything of broker/sql (or of a folder like it), in the order and form in which the program does it."""
    def run(path, change=lambda path, text, schema: text):
        with open(path) as f, conn.cursor() as cur:
            cur.execute(change(path, f.read(), schema))

    assert os.path.isdir(os.path.join(root, "schema")), root
    with conn.cursor() as cur:
        cur.execute("create schema " + schema)
        for _, _, text in embed_sql.load_migrations(root, []):
            cur.execute(text)
    files = {os.path.basename(f)[:-4]: f for f in glob.glob(os.path.join(root, "*", "*.sql"))
             if os.path.basename(os.path.dirname(f)) != "schema" and os.path.basename(f) != "statements.sql"}
    done = set()

    def visit(name):
        if name in done:
            return
        done.add(name)
        with open(files[name]) as f:
            needs = re.findall(r"^-- needs:(.*)$", f.read(), re.M)
        for need in ",".join(needs).split(","):
            if need.strip():
                visit(need.strip())
        run(files[name], embed_sql.pin_search_path)

    for name in sorted(files):
        visit(name)


def key(text):
    """queen.transaction_key, written a second time."""
    if re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-79a-f][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", text):
        return uuid.UUID(text)
    h = bytearray(hashlib.sha256(text.encode()).digest()[:16])
    h[6] = h[6] & 15 | 128
    return uuid.UUID(bytes=bytes(h))


def v7(ms=None):
    """A UUIDv7 with this time inside."""
    raw = bytearray(int((time.time() * 1000) if ms is None else ms).to_bytes(6, "big") + uuid.uuid4().bytes[6:])
    raw[6] = raw[6] & 15 | 0x70
    raw[8] = raw[8] & 63 | 128
    return str(uuid.UUID(bytes=bytes(raw)))


def key_time(k):
    return int.from_bytes(k.bytes[:6], "big") if k.bytes[6] >> 4 == 7 else None


class Core:
    """One connection, the calls of the broker."""

    def __init__(self, conn):
        self.conn = conn

    def rows(self, text, *args):
        with self.conn.cursor(cursor_factory=psycopg2.extras.NamedTupleCursor) as cur:
            cur.execute(text, args or None)
            return cur.fetchall() if cur.description else []

    def one(self, text, *args):
        return self.rows(text, *args)[0][0]

    def configure(self, queue, **options):
        return self.rows("select * from queen.configure_queue(%s, '', '', %s)", queue,
                         psycopg2.extras.Json(options))[0]

    def lanes(self, *pairs):
        """(number, id) of (queue, partition) pairs."""
        return [(r.lane, r.lane_id) for r in self.rows("select * from queen.ensure_lanes(%s::text[], %s::text[])",
                                                       [p[0] for p in pairs], [p[1] for p in pairs])]

    def push(self, segments, whole=False, origin=1, last=0):
        """segments: (lane, [transaction id, ...]) each; the rows that push_segments returns.  last: the hint p_last."""
        seen, cols, plain = {}, [[] for _ in range(9)], ([], [], [])
        for n, (lane, ids) in enumerate(segments):
            nth, before = seen.get(lane, (0, 0))
            seen[lane] = (nth + 1, before + len(ids))
            keys = [key(i) for i in ids]
            times = [t for t in map(key_time, keys) if t is not None]
            body = b"\1" + b"".join(pack(i) for i in ids)
            for col, value in zip(cols, (lane, last, nth, before, len(ids), min(times, default=None),
                                         max(times, default=None), b"".join(k.bytes for k in keys), body)):
                col.append(value)
            for pos, k in enumerate(keys):
                if key_time(k) is None:
                    for col, value in zip(plain, (n + 1, pos, k)):
                        col.append(value)
        return self.rows(
            "select * from queen.push_segments(%s, %s, %s, %s::bigint[], %s::bigint[], %s::int[], %s::bigint[], %s::int[], %s::bigint[],"
            " %s::bigint[], %s::bytea[], %s::bytea[], %s::int[], %s::int[], %s::uuid[])",
            origin, whole, len(seen), *cols, *plain)

    def consumers(self, group, *lanes):
        return [r.consumer for r in self.rows("select * from queen.ensure_consumers(%s::bigint[], %s::text[])",
                                              list(lanes), [group] * len(lanes))]

    def claim(self, consumers, batch=1, parts=1, auto=False, lease=None, seconds=0):
        """One pop; (rows, lease)."""
        lease, n = lease or uuid.uuid4(), len(consumers)
        rows = self.rows(
            "select * from queen.claim_careful(%s::int[], %s::bigint[], %s::int[], %s::int[], %s::boolean[], %s::uuid[],"
            " %s::text[], %s::int[])", [1] * n, list(consumers), [batch] * n, [parts] * n, [auto] * n, [lease] * n,
            [None] * n, [seconds] * n)
        return rows, lease

    def claim_hot(self, consumers, batch=1, auto=False, lease=None, ver=0, near=0):
        """Pops of one lane each, the hot way; (rows, lease)."""
        lease, n = lease or uuid.uuid4(), len(consumers)
        rows = self.rows(
            "select * from queen.claim(%s::bigint[], %s::bigint[], %s::bigint[], %s::int[], %s::boolean[], %s::uuid[])",
            list(consumers), [ver] * n, [near] * n, [batch] * n, [auto] * n, [lease] * n)
        return rows, lease

    def settle(self, lane_id, group, ids, statuses=None, leases=None, lease=None, final=False, origin=1, after=None):
        """statuses None: all completed under `lease`, the short form.  after: seconds before each is delivered again."""
        uniform = statuses is None
        n = 0 if uniform else len(ids)
        return self.rows(
            "select * from queen.settle(%s, %s::uuid[], %s::text[], %s::bytea[], %s::boolean[], %s::uuid[], %s::int[],"
            " %s::int2[], %s::uuid[], %s::text[], null, null, null, %s, '{}', %s::int[])", origin, [lane_id], [group],
            [b"".join(key(i).bytes for i in ids)], [uniform], [lease], [1] * n, statuses or [],
            leases or [None] * n, ["because"] * n, final, after)

    def state(self, consumer):
        return self.rows("select * from queen.latest_state(%s)", consumer)[0]

    def age(self, seconds):
        """Lets time pass for all that is stored."""
        self.rows("update queen.segments set created_at = created_at - %s * interval '1 second'", seconds)


def pack(transaction_id, payload=b"{}"):
    k = str(key(transaction_id))
    text = b"" if k == transaction_id else len(transaction_id.encode()).to_bytes(2, "big") + transaction_id.encode()
    return bytes([1 if text else 0]) + text + len(payload).to_bytes(4, "big") + payload


def js(core, function, value):
    return core.one("select queen.%s(%%s::jsonb)" % function, json.dumps(value))


def stored(core, rows):
    assert [r.status for r in rows] == [0] * len(rows), rows
    return rows


def discover(core, queue, group, mode="", start="", partition=None):
    return core.rows("select * from queen.discover(%s, %s, %s, '', '', %s, %s)", queue, partition, group, mode, start)
