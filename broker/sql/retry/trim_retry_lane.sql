-- queen.trim_retry_lane: remove messages that the group has consumed from its retry lane.
--
-- needs: forget_segments, rows_stuck
-- called by  queen.settle and queen.advance, which have locked the lane's only consumer
-- in         p_cursor: the last message consumed
--
-- The newest segment stays, so that a session that appends need not wait for this one. Everything from the first dead letter on stays,
-- too: the dead letter refers to this lane because its message was removed from the partition. While vacuum cannot reclaim the
-- rows that were removed before, nothing is removed; a later call does it.
create or replace function queen.trim_retry_lane(p_lane bigint, p_cursor bigint)
returns void
language plpgsql
as $$
declare
    v_upto bigint;
begin
    select max(s.first_seq) into v_upto
      from queen.segments s
     where s.lane = p_lane
       and s.first_seq + s.count - 1
           <= least(p_cursor, (select min(d.seq) - 1 from queen.dead_letter_queue d where d.lane = p_lane))
       and s.first_seq < (select max(n.first_seq) from queen.segments n where n.lane = p_lane);
    if v_upto is not null and queen.rows_stuck('queen.segments') = 0 then
        perform queen.forget_segments(p_lane, v_upto);
    end if;
end
$$;
