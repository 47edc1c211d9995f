-- statement: ingest
-- returns: duplicate uuid?
select duplicate from crm.ingest($1::text, $2::text[], $3::int8[], $4::int8, $5::int8[], $6::uuid[], $7::uuid[],
    $8::text::jsonb, $9::text::jsonb, $10::text::jsonb, $11::text::jsonb, $12::text::jsonb,
    $13::text::jsonb, $14::text::jsonb, $15::text::jsonb, $16::text::jsonb,
    $17::uuid[], $18::uuid[], $19::uuid[], $20::uuid[], $21::uuid[], $22::uuid[], $23::uuid[], $24::uuid[], $25::uuid[]);

-- statement: checkpoint
-- returns: position int8
-- The checkpoint of a partition in this database.
select position from crm.ingest_checkpoint where queue = $1::text and partition = $2::text;

-- statement: ping
-- returns one row: one int4
-- Checks that the database replies.  By platform/src/tenant/tenant_db.c.
select 1;
