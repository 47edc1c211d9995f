-- queen.slowest_cursor: the last message that every group of a lane has consumed; null when there is no group.
--
-- needs: latest_state, start_cursor
-- called by  queen.sweep
-- A group whose pops have not looked at all partitions yet (queen.group_scans) counts with the position where it will start.
create or replace function queen.slowest_cursor(p_lane bigint)
returns bigint
language sql stable
as $$
    select least((select min(st.cursor_seq)
                    from queen.consumers c
                    cross join lateral queen.latest_state(c.num) st
                   where c.lane = p_lane),
                 (select min(queen.start_cursor(l.num, s.grp))
                    from queen.lanes l
                    join queen.group_scans s on s.queue_id = l.queue_id and s.unread
                   where l.num = p_lane
                     and (select c.num from queen.consumers c where c.lane = l.num and c.grp = s.grp) is null))
$$;
