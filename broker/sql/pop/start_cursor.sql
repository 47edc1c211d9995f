-- queen.start_cursor: the initial cursor of a group on a lane that it has not used yet.
--
-- With a start time T the cursor is the last message created before T, so messages created at T or later are delivered. Without
-- one it is 0. queen.ensure_consumers computes the same for many lanes.
-- needs: cursor_at, start_time
create or replace function queen.start_cursor(p_lane bigint, p_group text)
returns bigint
language plpgsql stable
as $$
begin
    return coalesce((select queen.cursor_at(p_lane, t.starts_at - interval '1 microsecond')
                       from queen.start_time(p_lane, p_group) t), 0);
end
$$;
