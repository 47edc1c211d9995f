-- queen.push_messages_v2: push from SQL, in the caller's transaction.
--
-- needs: push_items, notify_pushed, iso_ms
-- called by  SQL sessions, tests of clients, outbox tables
-- in         p_items: array as in POST /api/v1/push; also messageId, producerSub, is_encrypted, namespace, task.
--            Items with scheduledAt or delaySeconds are scheduled (status scheduled).
--            Duplicates and maxSize are always checked; the other two parameters exist for callers that pass them
-- out        array of results in order, as in the HTTP answer (without queueName)
-- locks      as queen.push_items_now; other pushes to these partitions wait until the transaction ends
-- raises     QN001 malformed request, QN003 wrong isolation level, QN004 queue full
create or replace function queen.push_messages_v2(
    p_items jsonb, p_check_duplicates boolean default true, p_check_capacity boolean default true)
returns jsonb
language plpgsql
as $$
declare
    v_answer jsonb;
    v_queues text[];
begin
    select coalesce(jsonb_agg(
        case when r.due_at is not null
             then jsonb_build_object('index', r.idx, 'status', 'scheduled', 'transaction_id', r.transaction_id,
                                     'message_id', r.message_id, 'partition_id', r.lane_id,
                                     'trace_id', r.trace_id, 'schedule_id', r.message_id,
                                     'scheduled_at', queen.iso_ms(r.due_at))
             when r.created_at is null
             then jsonb_build_object('index', r.idx, 'status', 'duplicate', 'transaction_id', r.transaction_id,
                                     'message_id', r.message_id)
             else jsonb_build_object('index', r.idx, 'status', 'queued', 'transaction_id', r.transaction_id,
                                     'message_id', r.message_id, 'partition_id', r.lane_id,
                                     'trace_id', r.trace_id) end order by r.idx), '[]'),
           array_agg(r.queue) filter (where r.created_at is not null)
      into v_answer, v_queues
      from queen.push_items(p_items) r;
    perform queen.notify_pushed(v_queues);
    return v_answer;
end
$$;
