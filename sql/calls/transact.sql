select kind, error, lane, created_at, seg, status, pos,
       grp, entry, why, released, dead, queue_name, lane_name, lane, consumer, more
  from queen.transact($1::int, $2::int, $3::bigint[], $4::int[], $5::bigint[], $6::int[],
                      $7::bigint[], $8::bigint[], $9::bytea[], $10::bytea[],
                      $11::int[], $12::int[], $13::uuid[],
                      $14::uuid[], $15::text[], $16::bytea[], $17::boolean[], $18::uuid[],
                      $19::int[], $20::int2[], $21::uuid[], $22::text[], $23::uuid[])
