-- queen.forget_segments: remove the oldest segments of a lane and everything that refers to their messages.
--
-- called by  queen.sweep, which ensures that no other session removes from this lane
-- in         p_upto: start of the last segment to remove
-- locks      none: messages are not locked, and the caller protects the end of the lane
create or replace function queen.forget_segments(p_lane bigint, p_upto bigint)
returns void
language plpgsql
as $$
declare
    v_last bigint; -- the last message to remove
    v_all  boolean; -- UUIDv7 keys may have rows as well
begin
    select s.first_seq + s.count - 1 into v_last
      from queen.segments s where s.lane = p_lane and s.first_seq = p_upto;
    if exists (select from queen.message_keys k where k.lane = p_lane) then
        v_all := coalesce((select l.scheduling from queen.lanes l where l.num = p_lane), false);
        delete from queen.message_keys k
         using queen.segments g, generate_series(0, g.count - 1) i
         where g.lane = p_lane and g.first_seq <= p_upto
           and (get_byte(g.keys, i * 16 + 6) >> 4 <> 7 or v_all)
           and k.lane = p_lane and k.key = encode(substr(g.keys, i * 16 + 1, 16), 'hex')::uuid
           and k.seq = g.first_seq + i;
    end if;
    perform queen.forget_messages(p_lane, v_last + 1);
    delete from queen.segments g where g.lane = p_lane and g.first_seq <= p_upto;
end
$$;
