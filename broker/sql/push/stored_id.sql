-- queen.stored_id: the id of the message at a position, derived or given; null if the message is gone.
--
-- needs: unpack_segment
-- called by  queen.dead_letter; queen.push_items_now for duplicates
create or replace function queen.stored_id(p_lane bigint, p_seq bigint)
returns uuid
language sql stable
as $$
    select u.message_id
      from (select * from queen.segments s
             where s.lane = p_lane and s.first_seq <= p_seq
             order by s.first_seq desc limit 1) s
      cross join lateral queen.unpack_segment(s.lane, s.created_at, s.count, s.keys, s.body) u
     where u.pos = p_seq - s.first_seq
$$;
