-- queen.forget_messages: remove everything that refers to the messages of a lane before p_below.
--
-- needs: mind_skips
-- called by  functions that remove segments from the front of a lane: queen.forget_segments, queen.clear_lane, queen.trim_front;
--            a trigger of queen.segments removes traces
-- locks      none: the caller has locked the lane, or prevents its deletion (queen.sweep)
create or replace function queen.forget_messages(p_lane bigint, p_below bigint)
returns void
language plpgsql
as $$
begin
    delete from queen.dead_letter_queue d where d.lane = p_lane and d.seq < p_below;
    delete from queen.correlations c where c.lane = p_lane and c.seq < p_below;
    if (select l.skipping from queen.lanes l where l.num = p_lane) then
        delete from queen.skips k where k.lane = p_lane and k.last_seq < p_below;
        perform queen.mind_skips(array[p_lane]);
    end if;
end
$$;
