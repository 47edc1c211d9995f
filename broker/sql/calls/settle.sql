-- returns: grp int4, entry int4?, why int2, released bool?, dead bool?, queue_name text?, lane_name text?,
-- returns: lane int8?, consumer int8?, more bool?, attempt int4?, due_at timestamptz?, wait_us int8?
select grp, entry, why, released, dead, queue_name, lane_name, lane, consumer, more,
       attempt, due_at, (extract(epoch from due_at - clock_timestamp()) * 1000000)::int8 as wait_us
  from queen.settle_2($1::int, $2::uuid[], $3::text[], $4::bytea[], $5::boolean[], $6::uuid[],
                      $7::int[], $8::int2[], $9::uuid[], $10::text[], $11::text[], $12::text[], $13::text[], false)
