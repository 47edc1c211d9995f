-- queen.redrive_here: deliver dead letters again, each to the group in which it failed.
--
-- needs: messages_at, retry_lane, schedule_retry, note_attempt
-- called by  queen.redrive, which has locked the dead letters and deletes them
-- in         p_letters; p_due: when each is due
-- out        the dead letters that were scheduled: not those whose message is gone
--
-- Attempts count from one again. Earlier attempts stay in the history.
create or replace function queen.redrive_here(p_letters uuid[], p_due timestamptz[], p_now timestamptz)
returns uuid[]
language plpgsql
as $$
declare
    d      record;
    v_done uuid[] := '{}';
begin
    for d in
        select k.id, l.num as lane, k.consumer_group::text as grp, k.error_message, u.due, m.message,
               coalesce((select min(a.at) from queen.attempts a
                          where a.message_id = k.message_id and a.grp = k.consumer_group), k.failed_at) as first_failed_at,
               coalesce((m.message).meta::jsonb ->> 'correlationId', (m.message).transaction_id) as correlation_id
          from unnest(p_letters, p_due) with ordinality u(id, due, ord)
          join queen.dead_letter_queue k on k.id = u.id
          join queen.lanes l on l.id = k.partition_id
          cross join lateral queen.messages_at(k.lane, array[k.seq]) m
         order by u.ord
    loop
        if not queen.schedule_retry(d.message, queen.retry_lane(d.lane, d.grp), d.grp, 1, d.due, d.correlation_id, d.first_failed_at,
                                    d.error_message) then
            raise exception 'the further fields of message % are too long for a retry', (d.message).message_id using errcode = 'QN001';
        end if;
        perform queen.note_attempt(d.message, d.grp, d.lane, 0, 'v', d.correlation_id, null, p_now, d.due, null, null, null, null);
        v_done := v_done || d.id;
    end loop;
    return v_done;
end
$$;
