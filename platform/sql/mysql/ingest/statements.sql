-- statement: ingest
call ingest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- statement: checkpoint
-- The checkpoint of a partition in this database.
select position from ingest_checkpoint where queue = ? and `partition` = ?;

-- statement: ping
-- Checks that the database replies.  By platform/src/tenant/link.c.
select 1;
