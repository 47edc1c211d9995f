-- statement: ingest
call ingest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- statement: checkpoint
-- How far a partition has come in this database.
select position from ingest_checkpoint where queue = ? and `partition` = ?;

-- statement: ping
-- Is the database there?  By platform/src/tenant/link.c.
select 1;
