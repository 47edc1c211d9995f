-- returns: lane int8?, first_seq int8?, created_at timestamptz?, seg int4?, status int2, pos int4?,
-- returns: dup_id uuid?
select lane, first_seq, created_at, seg, status, pos, dup_id
  from queen.push_correlated($1::int, $2::boolean, $3::int, $4::bigint[], $5::bigint[], $6::int[], $7::bigint[],
                             $8::int[], $9::bigint[], $10::bigint[], $11::bytea[], $12::bytea[],
                             $13::int[], $14::int[], $15::uuid[], $16::int[], $17::int[], $18::uuid[])
