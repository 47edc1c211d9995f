-- queen.push_and_claim: store segments, and lease or acknowledge them at once for pops that wait for them, in one transaction.
--
-- needs: push_segments, claim
-- called by  broker/src/broker/push/push.c (call "push_claim"), with the claims of broker/src/broker/pop/hand_over.c
-- in         p_origin to p_plain_key as queen.push_segments; then p_consumer to p_lease as queen.claim
-- out        first the rows of queen.push_segments (stored_lane to dup_id), then those of queen.claim (target to buried)
-- locks      as queen.push_segments, then as queen.claim, which waits for no lock
create or replace function queen.push_and_claim(
    p_origin int, p_whole boolean, p_lanes int,
    p_lane bigint[], p_last bigint[], p_nth int[], p_before bigint[], p_count int[],
    p_key_min bigint[], p_key_max bigint[], p_keys bytea[], p_body bytea[],
    p_plain_seg int[], p_plain_pos int[], p_plain_key uuid[],
    p_consumer bigint[], p_ver bigint[], p_near bigint[], p_batch int[], p_auto boolean[], p_lease uuid[])
returns table (target int, status int2, wait_us bigint, lane_id uuid, retries int, start_seq bigint, take int, more boolean,
               first_seq bigint, count int, created_at timestamptz, keys bytea, body bytea, ver bigint, buried int,
               stored_lane bigint, stored_seq bigint, stored_at timestamptz, seg int, stored_status int2, pos int, dup_id uuid)
language plpgsql
as $$
#variable_conflict use_column
begin
    return query
    select null::int, null::int2, null::bigint, null::uuid, null::int, null::bigint, null::int, null::boolean,
           null::bigint, null::int, null::timestamptz, null::bytea, null::bytea, null::bigint, null::int,
           p.lane, p.first_seq, p.created_at, p.seg, p.status, p.pos, p.dup_id
      from queen.push_segments(p_origin, p_whole, p_lanes, p_lane, p_last, p_nth, p_before, p_count, p_key_min, p_key_max,
                               p_keys, p_body, p_plain_seg, p_plain_pos, p_plain_key) p;
    -- A statement of its own, so its snapshot includes the segments.
    return query
    select c.target, c.status, c.wait_us, c.lane_id, c.retries, c.start_seq, c.take, c.more,
           c.first_seq, c.count, c.created_at, c.keys, c.body, c.ver, null::int,
           null::bigint, null::bigint, null::timestamptz, null::int, null::int2, null::int, null::uuid
      from queen.claim(p_consumer, p_ver, p_near, p_batch, p_auto, p_lease) c;
end
$$;
