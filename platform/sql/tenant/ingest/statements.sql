-- statement: ingest
select duplicate from crm.ingest_2($1::text, $2::text[], $3::int8[], $4::uuid[], $5::uuid[],
    $6::text::jsonb, $7::text::jsonb, $8::text::jsonb, $9::text::jsonb, $10::text::jsonb,
    $11::text::jsonb, $12::text::jsonb, $13::text::jsonb,
    $14::uuid[], $15::uuid[], $16::uuid[], $17::uuid[], $18::uuid[], $19::uuid[], $20::uuid[], $21::uuid[]);

-- statement: ping
-- Is the database there?  By platform/src/tenant/link.c.
select 1;
