-- returns: lane int8?, first_seq int8?, created_at timestamptz?, seg int4?, status int2, pos int4?,
-- returns: dup_id uuid?, later int4?, wait_us int8?
select lane, first_seq, created_at, seg, status, pos, dup_id, later, wait_us
  from queen.push_mixed($1::int, $2::int, $3::bigint[], $4::bigint[], $5::int[], $6::bigint[],
                        $7::int[], $8::bigint[], $9::bigint[], $10::bytea[], $11::bytea[],
                        $12::int[], $13::int[], $14::uuid[], $15::int[], $16::int[], $17::uuid[],
                        $18::boolean, $19::bigint[], $20::uuid[], $21::bigint[], $22::bigint[],
                        $23::text[], $24::text[], $25::bytea[], $26::int[])
