"""Checkpoints of ingestion (platform/sql/tenant/ingest) without a platform."""
import uuid

import psycopg2
import pytest

from readmodel_db import connect, database, db  # noqa: F401 (fixtures)

INGEST = "select * from crm.ingest('q', '{7}', '{%s}', %s, '{%s}', %%s::uuid[], '{}', null, null, null, null, null, null, null, null, null, " \
         "'{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')"


def ingest(db, stamp, seen):
    return db.rows(INGEST % (stamp, stamp, seen), [str(uuid.uuid4())])


def test_a_late_write_of_the_former_owner_does_not_look_like_a_loss(connect, db):
    """Its stamp is older than that of the next owner, who took the checkpoint for one from a backup."""
    ingest(db, 100, 0)
    ingest(db, 300, 100)  # the next owner
    ingest(db, 200, 100)  # a write of the former owner that had waited
    assert ingest(db, 301, 300) == []
    assert db.one("select (extract(epoch from at) * 1000000)::int from crm.ingest_checkpoint") == 301


def test_a_checkpoint_that_went_back_is_refused(connect, db):
    ingest(db, 300, 0)
    db.rows("update crm.ingest_checkpoint set at = timestamptz 'epoch' + interval '299 microseconds'")
    with pytest.raises(psycopg2.Error, match="went back behind its checkpoint") as why:
        ingest(db, 301, 300)
    assert why.value.pgcode == "QT001"
