-- queen.note_completed: record the completion of messages that had failed before.
--
-- needs: messages_at, note_attempts
-- called by  queen.settle and queen.advance, for retry lanes and after failed deliveries only
-- in         p_seqs: completed just now on p_lane; p_origin: the partition if that is a retry lane
create or replace function queen.note_completed(
    p_lane bigint, p_origin bigint, p_group text, p_seqs bigint[], p_delivered_at timestamptz, p_now timestamptz, p_worker text)
returns void
language sql
as $$
    select queen.note_attempts(array_agg(m.message), p_group, coalesce(p_origin, p_lane), array_agg(last.nth),
                               array_agg(case when p_origin is null then last.attempt + 1
                                              else coalesce(((m.message).meta::jsonb ->> 'attempt')::int, 1) end),
                               array_agg('c'::"char"), array_agg(last.correlation_id), p_delivered_at, p_now,
                               array_agg(null::timestamptz), array_agg(last.max_attempts), array_agg(null::text),
                               array_agg(null::text), array_agg(p_worker))
      from queen.messages_at(p_lane, p_seqs) m
      cross join lateral (select * from queen.attempts a
                           where a.message_id = (m.message).message_id and a.grp = p_group
                           order by a.nth desc limit 1) last
     where case when p_origin is null then last.outcome = 'i' else last.outcome in ('r', 'v') end
    having count(*) > 0
$$;
