-- queen.settled_before: the fate of messages that a group has settled before.
--
-- needs: messages_at
-- called by  queen.settle
-- in         p_seq: places in p_lane; p_origin: the partition if p_lane is a retry lane
-- out        one row, in order of seq, for each of them that is a dead letter (outcome d) or waits for its retry (r, with the failed attempt and when
--            the next one is due).  No row: it was completed
create or replace function queen.settled_before(p_lane bigint, p_origin bigint, p_group text, p_seq bigint[])
returns table (seq bigint, outcome "char", attempt int, due_at timestamptz)
language plpgsql
as $$
begin
    -- Without a failure in the partition there is nothing to look for, and no message need be unpacked.
    if not exists (select from queen.attempts a where a.lane = coalesce(p_origin, p_lane))
       and not exists (select from queen.dead_letter_queue d where d.lane in (p_lane, p_origin)) then
        return;
    end if;
    return query
    select m.seq, case when d.found then 'd' else 'r' end::"char", last.attempt, last.due_at
      from queen.messages_at(p_lane, p_seq) m
      left join lateral (select a.outcome, a.attempt, a.due_at from queen.attempts a
                          where a.message_id = (m.message).message_id and a.grp = p_group
                          order by a.nth desc limit 1) last on true
      cross join lateral (select exists (select from queen.dead_letter_queue d
                                          where d.message_id = (m.message).message_id and d.consumer_group = p_group)) d(found)
     where d.found or last.outcome in ('r', 'v')
     order by m.seq;
end
$$;
