-- queen.has_pending_messages: whether a group has messages after its cursor.
--
-- needs: latest_state, start_cursor
-- called by  SQL sessions
-- in         p_partition null or '': any partition; p_group null or '': queue mode
-- out        leased, delayed and expired messages count as long as they are stored
create or replace function queen.has_pending_messages(p_queue text, p_partition text, p_group text)
returns boolean
language sql stable
as $$
    select exists (
        select from queen.queues q
          join queen.lanes l on l.queue_id = q.id
          join lateral (select s.first_seq + s.count as next_seq, s.count from queen.segments s
                         where s.lane = l.num order by s.first_seq desc limit 1) head on head.count > 0
          cross join lateral (select coalesce(nullif(p_group, ''), '__QUEUE_MODE__')) g(name)
          left join queen.consumers c on c.lane = l.num and c.grp = g.name
          left join lateral queen.latest_state(c.num) st on true
         where q.name = p_queue and (coalesce(p_partition, '') = '' or l.name = p_partition)
           and head.next_seq > coalesce(st.cursor_seq, queen.start_cursor(l.num, g.name)) + 1)
$$;
