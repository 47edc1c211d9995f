-- queen.clear_lane: remove the messages of a lane, from the front, and everything that refers to them.
--
-- needs: skipped, forget_segments, forget_messages
-- called by  queen.clear_queue
-- in         p_limit: maximum number of segments
-- out        messages, segments: how many were removed; done: none is left. The lane then keeps a marker (see queen.sweep)
-- locks      none: the caller has locked the lane and its consumers
create or replace function queen.clear_lane(p_lane bigint, p_limit int, out messages bigint, out segments int, out done boolean)
language plpgsql
as $$
declare
    v_end  record; -- the last segment
    v_upto record; -- the last one to remove in this step
begin
    messages := 0;
    segments := 0;
    done := true;
    select s.first_seq, s.count, s.first_seq + greatest(s.count, 1) - 1 as last_seq, s.created_at into v_end
      from queen.segments s where s.lane = p_lane order by s.first_seq desc limit 1;
    if not found or v_end.count = 0 then
        return; -- nothing was ever written, or only the marker is left
    end if;
    select k.first_seq, k.first_seq + k.count - 1 as last_seq into v_upto
      from (select s.first_seq, s.count from queen.segments s where s.lane = p_lane order by s.first_seq limit p_limit) k
     order by k.first_seq desc limit 1;
    select sum(s.count), count(*) into messages, segments
      from queen.segments s where s.lane = p_lane and s.first_seq <= v_upto.first_seq;
    if (select l.skipping from queen.lanes l where l.num = p_lane) then
        messages := messages - queen.skipped(p_lane, '', 0, v_upto.last_seq);
    end if;
    if v_upto.first_seq < v_end.first_seq then
        done := false;
        perform queen.forget_segments(p_lane, v_upto.first_seq);
        return;
    end if;
    delete from queen.segments s where s.lane = p_lane;
    insert into queen.segments (lane, first_seq, created_at, count, keys, body)
    values (p_lane, v_end.last_seq, v_end.created_at, 0, '', '\x01');
    delete from queen.message_keys k where k.lane = p_lane and k.seq > 0; -- scheduled messages are not in the queue yet
    perform queen.forget_messages(p_lane, v_end.last_seq + 1);
end
$$;
