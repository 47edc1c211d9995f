-- queen.scheduled_duplicates: find the duplicates in a push to lanes that have or had scheduled messages.
--
-- needs: waiting_id, stored_id
-- called by  queen.push_segments, which has locked the lanes
-- in         p_marked: lanes with the mark "scheduling"; p_lane, p_keys: one element per segment
-- out        per duplicate: segment (1-based), position, and the id of the earlier message, scheduled or delivered
create or replace function queen.scheduled_duplicates(p_marked bigint[], p_lane bigint[], p_keys bytea[])
returns table (seg int, pos int, id uuid)
language sql stable
as $$
    select u.seg::int, i.pos,
           case when k.seq <= 0 then queen.waiting_id(k.lane, k.key) else queen.stored_id(k.lane, k.seq) end
      from unnest(p_lane, p_keys) with ordinality u(lane, keys, seg)
      cross join lateral generate_series(0, length(u.keys) / 16 - 1) i(pos)
      cross join lateral (select * from queen.message_keys k
                           where k.lane = u.lane and k.key = encode(substr(u.keys, i.pos * 16 + 1, 16), 'hex')::uuid offset 0) k
     where u.lane = any (p_marked)
$$;
