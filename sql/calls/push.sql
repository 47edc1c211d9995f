select lane, first_seq, created_at, seg, status, pos, dup_id
  from queen.push_segments($1::int, $2::boolean, $3::int, $4::bigint[], $5::int[], $6::bigint[], $7::int[],
                           $8::bigint[], $9::bigint[], $10::bytea[], $11::bytea[],
                           $12::int[], $13::int[], $14::uuid[])
