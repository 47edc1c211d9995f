select lane, lane_id, lane_name, queue_name, count, late, more, busy, wait_us, through_us
  from queen.fire_due($1::int, $2::int, $3::bigint)
