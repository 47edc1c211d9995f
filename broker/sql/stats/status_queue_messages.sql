-- queen.status_queue_messages: GET /api/v1/status/queues/:queue/messages.
--
-- needs: newest_messages, freshen_stats, param_int, iso_ms
-- called by  broker/src/api/monitoring/status_queues.c
-- in         p_args: queue, limit (50), offset
-- out        an array, newest first; [] for an unknown queue
create or replace function queen.status_queue_messages(p_args jsonb)
returns json
language plpgsql
as $$
begin
    perform queen.freshen_stats();
    return (
        select coalesce(json_agg(json_build_object(
                   'id', k.id, 'transactionId', k.transaction_id, 'partitionId', k.lane_id,
                   'queuePath', k.queue_name || '/' || k.lane_name, 'queue', k.queue_name, 'partition', k.lane_name,
                   'status', k.status, 'createdAt', queen.iso_ms(k.created_at)) order by k.nth), '[]')
          from queen.newest_messages(p_args ->> 'queue', null, null, null, null, null, null,
                                     greatest(queen.param_int(p_args, 'limit', 50), 0),
                                     greatest(queen.param_int(p_args, 'offset', 0), 0)) k);
end
$$;
