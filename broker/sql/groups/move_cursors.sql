-- queen.move_cursors: move consumers to another position and end their leases.
--
-- needs: latest_state
-- called by  queen.seek_group, queen.seek_partition
-- in         p_time null: after the last message; else after the last one created at that time or before
-- out        the number of consumers moved
-- locks      the consumers in num order
create or replace function queen.move_cursors(p_consumer bigint[], p_time timestamptz)
returns bigint
language plpgsql
as $$
declare
    v_moved bigint;
begin
    perform c.num from queen.consumers c where c.num = any (p_consumer) order by c.num for no key update;
    -- A separate statement, so that it sees what earlier owners of the locks have written.
    insert into queen.consumer_states
           (consumer, ver, cursor_seq, total_messages, total_batches, last_at, slot)
    select c.num, st.ver + 1,
           case when p_time is null
                then coalesce((select s.first_seq + greatest(s.count, 1) - 1 from queen.segments s
                                where s.lane = c.lane order by s.first_seq desc limit 1), 0)
                else queen.cursor_at(c.lane, p_time) end,
           st.total_messages, st.total_batches, st.last_at, r.active
      from queen.consumers c
      cross join lateral queen.latest_state(c.num) st
      cross join queen.rotation r
     where c.num = any (p_consumer);
    get diagnostics v_moved = row_count;
    return v_moved;
end
$$;
