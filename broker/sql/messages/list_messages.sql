-- queen.list_messages: GET /api/v1/messages.
--
-- needs: newest_messages, freshen_stats, param_int, param_time, iso_ms
-- called by  broker/src/api/admin/messages.c
-- in         p_args: queue, partition, ns or namespace, task, status, from (an hour ago), to, limit (200), offset
-- out        {"messages":[...],"mode":{...}}, newest first, without payloads
-- raises     QN001 for invalid times
create or replace function queen.list_messages(p_args jsonb)
returns json
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    v_namespace text := coalesce(p_args ->> 'ns', p_args ->> 'namespace');
    v_from      timestamptz := queen.param_time(p_args, 'from', clock_timestamp() - interval '1 hour');
    v_to        timestamptz := queen.param_time(p_args, 'to', null);
    v_list      json;
    m           record;
begin
    perform queen.freshen_stats();
    -- Include the whole minute of "to".
    v_to := date_trunc('minute', v_to) + interval '1 minute' - interval '1 microsecond';
    select coalesce(json_agg(json_build_object(
               'id', k.id, 'transactionId', k.transaction_id, 'partitionId', k.lane_id,
               'queuePath', k.queue_name || '/' || k.lane_name, 'queue', k.queue_name, 'partition', k.lane_name,
               'namespace', k.namespace, 'task', k.task, 'status', k.status, 'queueStatus', k.queue_status,
               'busStatus', json_build_object('consumedBy', k.consumed_by, 'totalGroups', k.groups),
               'traceId', k.trace_id, 'producerSub', k.producer_sub, 'queuePriority', k.priority,
               'createdAt', queen.iso_ms(k.created_at), 'leaseExpiresAt', queen.iso_ms(k.lease_until),
               'retryCount', k.retry_count) order by k.nth), '[]')
      into v_list
      from queen.newest_messages(p_args ->> 'queue', p_args ->> 'partition', v_namespace, p_args ->> 'task',
                                 p_args ->> 'status', v_from, v_to,
                                 greatest(queen.param_int(p_args, 'limit', 200), 0),
                                 greatest(queen.param_int(p_args, 'offset', 0), 0)) k;
    select coalesce(bool_or(k.name = '__QUEUE_MODE__'), false) as queued,
           count(*) filter (where k.name <> '__QUEUE_MODE__') as named
      into m
      from (select distinct s.consumer_group as name
              from queen.stats s
             where s.stat_type = 'group' and s.child_count > 0
               and (coalesce(p_args ->> 'queue', v_namespace, p_args ->> 'task') is null
                    or s.queue_id = any (array(
                           select q.id from queen.queues q
                            where (p_args ->> 'queue' is null or q.name = p_args ->> 'queue')
                              and (v_namespace is null or q.namespace = v_namespace)
                              and (p_args ->> 'task' is null or q.task = p_args ->> 'task'))))) k;
    return json_build_object(
        'messages', v_list,
        'mode', json_build_object(
            'hasQueueMode', m.queued, 'busGroupsCount', m.named,
            'type', case when m.queued and m.named > 0 then 'hybrid' when m.queued then 'queue'
                         when m.named > 0 then 'bus' else 'none' end));
end
$$;
