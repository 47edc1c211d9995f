-- statement: ingest
-- returns: duplicate text
call ingest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- statement: checkpoint
-- returns: position int8
-- The checkpoint of a partition in this database.
select position from ingest_checkpoint where queue = ? and `partition` = ?;

-- statement: ping
-- returns one row: one int4
-- Checks that the database replies.  By platform/src/tenant/tenant_db.c.
select 1;
