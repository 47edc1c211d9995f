-- queen.ack_messages_v2: acknowledge from SQL, in the caller's transaction.
--
-- numbers:   why ack_why
-- needs: group_acks, settle, require_read_committed
-- called by  SQL sessions
-- in         p_acknowledgments: array of {index?, transactionId, partitionId, leaseId?, status?, consumerGroup?,
--            error?, errorCode?, worker?, retryAfter?}
-- out        array of results in order, as POST /api/v1/ack/batch answers
-- locks      consumers in num order
-- raises     QN001 malformed request, QN003 wrong isolation level
create or replace function queen.ack_messages_v2(p_acknowledgments jsonb)
returns jsonb
language plpgsql
as $$
begin
    perform queen.require_read_committed();
    return (
        select coalesce(jsonb_agg(jsonb_build_object(
                   'index', coalesce(x.value -> 'index', to_jsonb(e.item)),
                   'transactionId', x.value -> 'transactionId',
                   'success', s.why = 0,
                   'error', case s.why when 1 then 'Message not found' when 2 then 'Invalid or expired lease'
                                       when 3 then format('Unknown status ''%s''', x.value ->> 'status')
                                       when 4 then 'Message is waiting for its retry' when 5 then 'Message is not delivered'
                                       when 6 then 'Message is settled already'
                                       when 7 then 'retryAfter needs ordering "none" or settlement "message"' end,
                   'queueName', s.queue_name, 'partitionName', s.lane_name,
                   'leaseReleased', s.released, 'dlq', s.dead)
                   || case when s.due_at is null then '{}'
                           else jsonb_build_object('nextAttempt', coalesce(s.attempt, 0) + 1, 'nextAttemptAt', to_char(s.due_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) end
                   order by e.item), '[]')
          from queen.group_acks(p_acknowledgments) a
          cross join lateral queen.settle(0, a.lane_id, a.grp, a.keys, a.uniform, a.lease, a.entry_group,
                                            a.entry_status, a.entry_lease, a.entry_error, a.entry_code, a.entry_worker,
                                            null, false, '{}', a.entry_after) s
          join lateral (select u.item, u.grp, row_number() over (partition by u.grp order by u.item) - 1 as entry
                          from unnest(a.entry_group, a.item) u(grp, item)) e
            on e.grp = s.grp and e.entry = s.entry
          cross join lateral (select p_acknowledgments -> e.item) x(value));
end
$$;
