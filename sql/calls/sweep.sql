select queue_name, type, removed, after_us, after_lane, more
  from queen.sweep($1::boolean, $2::int, $3::int, $4::bigint, $5::bigint, $6::bigint)
