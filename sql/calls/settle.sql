select grp, entry, why, released, dead, queue_name, lane_name, lane, consumer, more,
       attempt, due_at, (extract(epoch from due_at - clock_timestamp()) * 1000000)::int8 as wait_us
  from queen.settle_2($1::int, $2::uuid[], $3::text[], $4::bytea[], $5::boolean[], $6::uuid[],
                      $7::int[], $8::int2[], $9::uuid[], $10::text[], $11::text[], $12::text[], $13::text[], false)
