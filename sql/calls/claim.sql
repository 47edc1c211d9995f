select target, status, wait_us, lane_id, retries, start_seq, take, more,
       first_seq, count, created_at, keys, body
  from queen.claim($1::bigint[], $2::int[], $3::boolean[], $4::uuid[])
