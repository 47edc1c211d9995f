select target, status, wait_us, lane_id, retries, start_seq, take, more,
       first_seq, count, created_at, keys, body, ver
  from queen.claim($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::boolean[], $6::uuid[])
