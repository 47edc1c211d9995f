-- queen.trim_front: remove segments without messages from the front of a lane.
--
-- needs: forget_messages
-- called by  queen.remove_message, so that deleting from the front leaves no skips
-- locks      none: the caller has locked the lane
create or replace function queen.trim_front(p_lane bigint)
returns void
language plpgsql
as $$
declare
    v_front record;
    v_last  bigint; -- of the deleted messages that begin at the front
    v_gone  record; -- the last segment to remove
begin
    select s.first_seq, s.count into v_front from queen.segments s
     where s.lane = p_lane and s.count > 0 order by s.first_seq limit 1;
    select k.last_seq into v_last from queen.skips k
     where k.lane = p_lane and k.grp = '' and k.first_seq <= v_front.first_seq
     order by k.first_seq desc limit 1;
    if (v_last >= v_front.first_seq + v_front.count - 1) is not true then
        return;
    end if;
    with gone as (
        delete from queen.segments s
         where s.lane = p_lane and s.first_seq <= v_last and s.first_seq + s.count - 1 <= v_last
        returning s.first_seq + greatest(s.count, 1) - 1 as last_seq, s.created_at)
    select g.last_seq, g.created_at into v_gone from gone g order by g.last_seq desc limit 1;
    if not exists (select from queen.segments s where s.lane = p_lane) then
        insert into queen.segments (lane, first_seq, created_at, count, keys, body)
        values (p_lane, v_gone.last_seq, v_gone.created_at, 0, '', '\x01');
    end if;
    perform queen.forget_messages(p_lane, v_gone.last_seq + 1);
end
$$;
