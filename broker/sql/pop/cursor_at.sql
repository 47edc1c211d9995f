-- queen.cursor_at: the sequence number of the last message of a lane created at p_time or before; 0 if there is none.
--
-- called by  queen.move_cursors, queen.start_cursor, queen.ensure_consumers
-- Times rise with the sequence numbers, so this is a binary search: about twenty probes for a lane of any length.
create or replace function queen.cursor_at(p_lane bigint, p_time timestamptz)
returns bigint
language plpgsql stable strict
as $$
declare
    v_low  bigint; -- start of a segment created at p_time or before
    v_high bigint; -- all segments from here on are later
    s      record;
    v_last bigint;
begin
    select g.first_seq, g.created_at, g.first_seq + greatest(g.count, 1) - 1 as last_seq into s from queen.segments g
     where g.lane = p_lane order by g.first_seq desc limit 1;
    if not found then
        return 0;
    elsif s.created_at <= p_time then
        return s.last_seq; -- the common case: the end of the lane
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
            -- No segment starts between this one and the middle.
            v_low := (v_low + v_high) / 2;
        else
            v_high := s.first_seq;
        end if;
    end loop;
    return v_last;
end
$$;
