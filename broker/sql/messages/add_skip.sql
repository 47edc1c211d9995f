-- queen.add_skip: mark a position of a lane as skipped.
--
-- called by  queen.remove_message, queen.move_to_dlq, queen.retry_message
-- in         p_group: the group that skips it; '': all groups
-- locks      none: the caller has locked the lane (queen.lock_lane)
create or replace function queen.add_skip(p_lane bigint, p_group text, p_seq bigint)
returns void
language plpgsql
as $$
declare
    v_first bigint := p_seq;
    v_last  bigint := p_seq;
    r       record;
begin
    -- Merge it with the range that ends right before it and the range that starts right after it.
    for r in
        select k.first_seq, k.last_seq from queen.skips k
         where k.lane = p_lane and k.grp = p_group and k.first_seq <= p_seq + 1
         order by k.first_seq desc limit 2
    loop
        continue when r.last_seq < p_seq - 1;
        v_first := least(v_first, r.first_seq);
        v_last := greatest(v_last, r.last_seq);
        delete from queen.skips k where k.lane = p_lane and k.grp = p_group and k.first_seq = r.first_seq;
    end loop;
    insert into queen.skips (lane, grp, first_seq, last_seq) values (p_lane, p_group, v_first, v_last);
    update queen.lanes set skipping = true, careful = true where num = p_lane and not skipping;
end
$$;
