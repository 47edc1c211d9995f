-- statement: claim_work
-- The rows of pops, and after them the segments of their messages, with status null: see queen.claim_work.
-- returns: target int4, status int2?, wait_us int8?, lane_id uuid?, retries int4?, start_seq int8?, take int4?,
-- returns: more bool?, first_seq int8?, count int4?, created_at timestamptz?, keys bytea?, body bytea?
select target, status, wait_us, lane_id, retries, start_seq, take, more, first_seq, count, created_at, keys, body
  from queen.claim_work($1::bigint[], $2::int[], $3::boolean[], $4::uuid[], $5::int[], $6::boolean[])
 order by target, status is null, start_seq, first_seq;
