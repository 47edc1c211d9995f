-- queen.attempts_of: the recorded attempts of a message, as JSON, in order.
--
-- needs: iso_ms
-- called by  queen.list_dead_letters, queen.get_message
-- in         p_group null: all groups
create or replace function queen.attempts_of(p_message_id uuid, p_group text)
returns json
language sql stable
as $$
    select coalesce(json_agg(json_strip_nulls(json_build_object(
               'attempt', a.attempt, 'consumerGroup', a.grp,
               'outcome', case a.outcome when 'r' then 'retry' when 'i' then 'redelivery' when 'd' then 'dlq' when 'c' then 'completed'
                                         when 'v' then 'redriven' when 'm' then 'redrivenToQueue' when 'x' then 'cancelled'
                                         when 't' then 'triedAgain' end,
               'deliveredAt', queen.iso_ms(a.delivered_at), 'at', queen.iso_ms(a.at), 'nextAttemptAt', queen.iso_ms(a.due_at),
               'error', a.error, 'errorCode', a.error_code, 'worker', a.worker, 'targetQueue', a.target)) order by a.at, a.nth), '[]')
      from queen.attempts a
     where a.message_id = p_message_id and (p_group is null or a.grp = p_group)
$$;
