-- statement: record_audit
-- returns one row: n int8
-- By platform/src/platform/audit.c.
select platform.record_audit($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[], $10::int8[],
                             $11::text[], $12::text);

-- statement: list_audit
-- returns one row: body text
-- By platform/src/platform/audit.c.
select platform.list_audit($1::jsonb)::text;

-- statement: trim_audit
-- returns: nothing
-- Removes records older than so many days.  By platform/src/platform/audit.c.
delete from platform.audit a
 where a.id = any (array(select k.id from platform.audit k where k.at < clock_timestamp() - $1::int * interval '1 day'
                          order by k.at limit 10000 for update skip locked));
