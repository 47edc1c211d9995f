-- statement: ingest
call ingest(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- statement: ping
-- Is the database there?  By platform/src/tenant/link.c.
select 1;
