-- queen.unused_consumers: select the consumers that can be removed, because a new row would start at the same position.
--
-- needs: latest_state, start_cursor
-- called by  queen.forget_consumers
-- in         p_before: consumers created later, and groups that have found the queue empty since then, are in use
--
-- The first version of the state means that the group has received nothing here and its cursor was never moved. If messages wait for
-- the group the row stays, because retention must not treat them as completed.
create or replace function queen.unused_consumers(p_consumers bigint[], p_before timestamptz)
returns table (consumer bigint, queue_name text, grp text)
language sql stable
as $$
    select c.num, q.name::text, c.grp
      from unnest(p_consumers) u(num)
      cross join lateral (select c.num, c.lane, c.grp from queen.consumers c
                           where c.num = u.num and c.created_at < p_before offset 0) c
      cross join lateral (select st.cursor_seq from queen.latest_state(c.num) st where st.ver = 1 offset 0) st
      cross join lateral (select l.id, l.queue_id from queen.lanes l where l.num = c.lane and l.origin is null offset 0) l
      cross join lateral (select q.name from queen.queues q where q.id = l.queue_id offset 0) q
      left join lateral (select s.first_seq + s.count - 1 as last_seq, s.count from queen.segments s
                          where s.lane = c.lane order by s.first_seq desc limit 1) head on true
     where (head.last_seq <= st.cursor_seq or head.count = 0 or head.count is null)
       and not exists (select from queen.consumer_watermarks w
                        where w.queue_name = q.name and w.consumer_group = c.grp and w.updated_at >= p_before offset 0)
       and not exists (select from queen.lanes r where r.queue_id = l.id and r.name = c.grp offset 0) -- its retry lane
       and not exists (select from queen.skips k where k.lane = c.lane and k.grp = c.grp offset 0)
       and not exists (select from queen.owners o where o.lane = c.lane and o.grp = c.grp offset 0)
       and st.cursor_seq = queen.start_cursor(c.lane, c.grp)
$$;
