"""Point-in-time recovery, as docs/operations/backups.md describes it, with messages in the file buffer of a broker."""
import os
import shutil
import subprocess

import pytest

import harness
from harness import wait_until

pytestmark = pytest.mark.one_broker


class Archived(harness.Postgres):
    """A server with a base backup and an archive of its WAL."""

    def __init__(self):
        super().__init__()
        self.archive, self.base = os.path.join(self.root, "archive"), os.path.join(self.root, "base")
        subprocess.run(self.prefix + ["mkdir", self.archive], check=True)
        self.settings = {"wal_level": "replica", "archive_mode": "on", "archive_command": "cp %%p %s/%%f" % self.archive}

    def back_up(self):
        subprocess.run(self.prefix + [os.path.join(self.bin, "pg_basebackup"), "-h", self.host, "-p", str(self.port), "-U", self.user,
                                      "-D", self.base, "--checkpoint=fast"], check=True)

    def archive_all(self):
        with self.connect() as c, c.cursor() as cur:
            cur.execute("select pg_walfile_name(pg_switch_wal())")
            (name,) = cur.fetchone()
        wait_until(lambda: os.path.exists(os.path.join(self.archive, name)), 30, "the archive has " + name)

    def restore(self, point):
        """The base backup and the archive up to a restore point, at the place of the old data."""
        shutil.rmtree(self.data)
        os.rename(self.base, self.data)
        subprocess.run(self.prefix + ["touch", os.path.join(self.data, "recovery.signal")], check=True)
        self.settings.update(restore_command="cp %s/%%f %%p" % self.archive, recovery_target_name=point, recovery_target_action="promote")
        self.launch()

        def is_promoted():
            with self.connect() as c, c.cursor() as cur:
                cur.execute("select pg_is_in_recovery()")
                return not cur.fetchone()[0]
        wait_until(is_promoted, 60, "the end of the recovery", 0.2)


def item(queue, n):
    return {"queue": queue, "partition": "p", "payload": n, "transactionId": "t-%s" % n}


def test_a_restore_to_a_point_keeps_what_was_stored_before_it_and_what_is_in_the_buffer(queue, tmp_path):
    pg = Archived().start()
    try:
        env = {**pg.env(), "SIDECAR_POOL_SIZE": "4", "FILE_BUFFER_DIR": str(tmp_path)}
        broker = harness.begin(env)
        broker.push([item(queue, n) for n in (1, 2, 3)]).expect(201)
        first, *_ = broker.take(queue, "p", batch=1)
        broker.ack(first)
        pg.back_up()
        broker.push([item(queue, 4)]).expect(201)
        with pg.connect() as c, c.cursor() as cur:
            cur.execute("select pg_create_restore_point('before the mistake')")
        second, *_ = broker.take(queue, "p", batch=1)
        broker.ack(second)
        broker.push([item(queue, 5)]).expect(201)
        pg.archive_all()
        broker.post("/api/v1/system/maintenance", {"enabled": True}).expect(200)
        assert broker.push([item(queue, 6)]).expect(201).json[0]["status"] == "buffered"
        harness.end(broker, clean_exit=True)
        pg.halt()
        pg.restore("before the mistake")

        broker = harness.begin(env)
        # Maintenance was switched on after the point, so it is off, and the buffer is stored at once.
        wait_until(lambda: broker.get("/api/v1/status/buffers").expect(200).json["pending"] == 0, 30, "the buffer is stored")
        # Producers send again what they had sent since the point. What is there is a duplicate.
        again = broker.push([item(queue, n) for n in (4, 5, 6)]).expect(201).json
        assert [r["status"] for r in again] == ["duplicate", "queued", "duplicate"]
        # The acknowledgement of 2 came after the point.
        assert [m["data"] for m in broker.drain(queue)] == [2, 3, 4, 6, 5]
        harness.end(broker, clean_exit=True)
    finally:
        pg.stop()
