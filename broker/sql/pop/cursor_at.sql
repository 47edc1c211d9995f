-- queen.cursor_at: the last message of a lane that was created at p_time or before; 0 when there is none.
--
-- called by  queen.move_cursors, queen.start_cursor, queen.ensure_consumers
-- Times rise with the sequence, so this halves the lane instead of walking it: some twenty probes whatever its length.
create or replace function queen.cursor_at(p_lane bigint, p_time timestamptz)
returns bigint
language plpgsql stable strict
as $$
declare
    v_low  bigint; -- start of a segment of that time or before
    v_high bigint; -- no segment from here on is
    s      record;
    v_last bigint;
begin
    select g.first_seq, g.created_at, g.first_seq + greatest(g.count, 1) - 1 as last_seq into s from queen.segments g
     where g.lane = p_lane order by g.first_seq desc limit 1;
    if not found then
        return 0;
    elsif s.created_at <= p_time then
        return s.last_seq; -- often: the end of the lane
    end if;
    v_high := s.first_seq;
    select g.first_seq, g.created_at, g.first_seq + greatest(g.count, 1) - 1 as last_seq into s from queen.segments g
     where g.lane = p_lane order by g.first_seq limit 1;
    if s.created_at > p_time then
        return 0;
    end if;
    v_low := s.first_seq;
    v_last := s.last_seq;
    while v_high - v_low > 1 loop
        select g.first_seq, g.created_at, g.first_seq + greatest(g.count, 1) - 1 as last_seq into s from queen.segments g
         where g.lane = p_lane and g.first_seq <= (v_low + v_high) / 2
         order by g.first_seq desc limit 1;
        if s.created_at <= p_time then
            v_last := s.last_seq;
            -- Nothing starts between this segment and the middle.
            v_low := (v_low + v_high) / 2;
        else
            v_high := s.first_seq;
        end if;
    end loop;
    return v_last;
end
$$;
