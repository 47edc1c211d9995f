-- returns: record_metrics timestamptz
select queen.record_metrics($1::uuid, $2::text, $3::int, $4::int, $5::int, $6::bigint[], $7::int, $8::text, $9::int,
                            $10::text, $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
                            $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[],
                            $22::bigint[], $23::bigint[], $24::text[], $25::int[])
