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
    select coalesce(sum(coalesce(c.waiting, a.waiting)), 0)::bigint
      from queen.lanes l
      join lateral (select s.first_seq + s.count as next_seq from queen.segments s
                     where s.lane = l.num order by s.first_seq desc limit 1) h on true
      join lateral (select s.first_seq from queen.segments s
                     where s.lane = l.num and s.count > 0 order by s.first_seq limit 1) f on true
      -- On a work queue, messages after the cursor that are settled do not count.
      left join lateral (select max(greatest(h.next_seq - n.seq, 0) + n.leased
                                    - case when l.skipping then queen.skipped(l.num, '', n.seq - 1, h.next_seq - 1) else 0 end) as waiting
                           from queen.consumers c
                           cross join lateral queen.latest_state(c.num) st
                           cross join lateral (select greatest(coalesce(st.taken_seq, st.cursor_seq) + 1, f.first_seq) as seq,
                                                      case when st.taken_seq is null then 0 else st.batch_size end as leased) n
                          where c.lane = l.num) c on true
      left join lateral (select greatest(h.next_seq - f.first_seq, 0)
                                - case when l.skipping then queen.skipped(l.num, '', f.first_seq - 1, h.next_seq - 1) else 0 end as waiting
                          where c.waiting is null) a on true
     where l.queue_id = p_queue_id
$$;
