-- returns: target int4, status int2, wait_us int8?, lane_id uuid?, retries int4?, start_seq int8?, take int4?,
-- returns: more bool?, first_seq int8?, count int4?, created_at timestamptz?, keys bytea?, body bytea?,
-- returns: ver int8?
select target, status, wait_us, lane_id, retries, start_seq, take, more,
       first_seq, count, created_at, keys, body, ver
  from queen.claim($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::boolean[], $6::uuid[])
