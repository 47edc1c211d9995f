-- queen.note_completed: record that messages which had failed before were completed.
--
-- needs: messages_at, note_attempt
-- called by  queen.settle and queen.advance, only for retry lanes and after failed deliveries
-- in         p_seqs: completed now on p_lane; p_origin: the partition if that is a retry lane
create or replace function queen.note_completed(
    p_lane bigint, p_origin bigint, p_group text, p_seqs bigint[], p_delivered_at timestamptz, p_now timestamptz, p_worker text)
returns void
language sql
as $$
    select queen.note_attempt(m.message, p_group, last.lane,
                              case when p_origin is null then last.attempt + 1
                                   else coalesce(((m.message).meta::jsonb ->> 'attempt')::int, 1) end,
                              'c', last.correlation_id, p_delivered_at, p_now, null, last.max_attempts, null, null, p_worker)
      from queen.messages_at(p_lane, p_seqs) m
      cross join lateral (select * from queen.attempts a
                           where a.message_id = (m.message).message_id and a.grp = p_group
                           order by a.nth desc limit 1) last
     where case when p_origin is null then last.outcome = 'i' else last.outcome in ('r', 'v') end
$$;
