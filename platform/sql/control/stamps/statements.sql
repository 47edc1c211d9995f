-- statement: load_stamps
-- returns: partition text, stamp int8
-- The last known stamp of each partition of a tenant.
select partition, stamp from platform.ingest_stamp where tenant = $1::text and queue = $2::text;

-- statement: save_stamps
-- returns one row: done void?
-- Records stamps that tenants' databases have committed.
select platform.save_stamps($1::text, $2::text[], $3::text[], $4::int8[]);
