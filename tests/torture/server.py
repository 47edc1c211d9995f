"""A PostgreSQL that may be in any state, and its recovery."""
import os
import shutil

import psycopg2

from actor import Postgres, wait_until
from disk import Disk

WAL_BYTES = 128 << 20


class Server(Postgres):
    """It listens on several addresses, so that each broker may have its own; its log of changes is on a small disk."""

    def __init__(self, folder, addresses):
        super().__init__()
        self.wal = Disk(os.path.join(folder, "wal"), WAL_BYTES)
        wal = os.path.join(self.wal.path, "pg")
        os.mkdir(wal)
        shutil.chown(wal, os.stat(self.root).st_uid, os.stat(self.root).st_gid)
        # Small segments, so that a full disk is noticed at once.
        self.initdb_args = ["--waldir", wal, "--wal-segsize", "1"]
        self.settings = {"listen_addresses": ",".join(addresses), "max_wal_size": "48MB", "min_wal_size": "4MB"}

    @property
    def postmaster(self):
        return self.process.pid if self.process is not None and self.process.poll() is None else None

    def ensure(self):
        """Up again, however it went down."""
        if self.postmaster is None:
            self.launch()
        wait_until(self.answers, 60, "PostgreSQL answers", 0.05)

    def answers(self):
        try:
            self.connect().close()
            return True
        except psycopg2.Error:
            return False

    def stop(self):
        super().stop()
        self.wal.dispose()
