select grp, entry, why, released, dead, queue_name, lane_name, lane, consumer, more
  from queen.settle($1::int, $2::uuid[], $3::text[], $4::bytea[], $5::boolean[], $6::uuid[],
                    $7::int[], $8::int2[], $9::uuid[], $10::text[], false)
