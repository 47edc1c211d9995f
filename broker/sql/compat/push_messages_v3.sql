-- queen.push_messages_v3: queen.push_messages_v2 with more fields in the answer.
--
-- needs: push_items, notify_pushed, iso_ms
-- called by  tests of clients
-- in         as queen.push_messages_v2
-- out        {"items": results incl. queueName, "partition_updates": newest message of each partition}
-- raises     as queen.push_messages_v2
create or replace function queen.push_messages_v3(
    p_items jsonb, p_check_duplicates boolean default true, p_check_capacity boolean default true)
returns jsonb
language plpgsql
as $$
declare
    v_answer jsonb;
    v_queues text[];
begin
    with r as materialized (select * from queen.push_items(p_items)),
    newest as (
        select distinct on (r.lane) r.queue, r.lane_id, r.message_id, r.created_at
          from r where r.created_at is not null
         order by r.lane, r.idx desc)
    select jsonb_build_object(
        'items', (select coalesce(jsonb_agg(
            case when r.due_at is not null
                 then jsonb_build_object('index', r.idx, 'status', 'scheduled', 'transaction_id', r.transaction_id,
                                         'message_id', r.message_id, 'partition_id', r.lane_id,
                                         'trace_id', r.trace_id, 'schedule_id', r.message_id,
                                         'scheduled_at', queen.iso_ms(r.due_at), 'queueName', r.queue)
                 when r.created_at is null
                 then jsonb_build_object('index', r.idx, 'status', 'duplicate', 'transaction_id', r.transaction_id,
                                         'message_id', r.message_id, 'queueName', r.queue)
                 else jsonb_build_object('index', r.idx, 'status', 'queued', 'transaction_id', r.transaction_id,
                                         'message_id', r.message_id, 'partition_id', r.lane_id,
                                         'trace_id', r.trace_id, 'queueName', r.queue) end
            order by r.idx), '[]') from r),
        'partition_updates', (select coalesce(jsonb_agg(jsonb_build_object(
            'queue_name', n.queue, 'partition_id', n.lane_id, 'last_message_id', n.message_id,
            'last_message_created_at', n.created_at)), '[]') from newest n)),
        (select array_agg(n.queue) from newest n)
      into v_answer, v_queues;
    perform queen.notify_pushed(v_queues);
    return v_answer;
end
$$;
