-- queen.queue_pending: the number of messages of a queue that at least one group has not consumed.
--
-- called by  queen.push_segments, for queues with a maxSize only; the JSON surface
-- out        the sum over its lanes of the messages that the slowest group has not consumed, or of all messages if no group
--            has a consumer there. Costs a few index probes per lane of this queue.
-- needs: latest_state, skipped
create or replace function queen.queue_pending(p_queue_id uuid)
returns bigint
language sql stable
as $$
    select coalesce(sum(greatest(h.next_seq - n.seq, 0)
                        - case when l.skipping then queen.skipped(l.num, '', n.seq - 1, h.next_seq - 1) else 0 end), 0)::bigint
      from queen.lanes l
      join lateral (select s.first_seq + s.count as next_seq from queen.segments s
                     where s.lane = l.num order by s.first_seq desc limit 1) h on true
      join lateral (select s.first_seq from queen.segments s
                     where s.lane = l.num and s.count > 0 order by s.first_seq limit 1) f on true
      left join lateral (select min(st.cursor_seq) as slowest
                           from queen.consumers c cross join lateral queen.latest_state(c.num) st
                          where c.lane = l.num) c on true
      cross join lateral (select greatest(coalesce(c.slowest + 1, 0), f.first_seq)) n(seq)
     where l.queue_id = p_queue_id
$$;
