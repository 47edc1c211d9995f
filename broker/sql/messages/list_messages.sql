-- queen.list_messages: GET /api/v1/messages.
--
-- needs: newest_messages, messages_at, freshen_stats, param_int, param_time, iso_ms
-- called by  broker/src/api/admin/messages.c
-- in         p_args: queue, partition, ns or namespace, task, status, from (an hour ago), to, limit (200), offset; contains: text of the
--            payload or the transaction id, in any case, searched in the newest `search` (1000, at most 10000) that match the rest
-- out        {"messages":[...],"mode":{...}}, newest first, without payloads; with contains "searched", the number of messages read.
--            Encrypted payloads are not searched
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
    v_contains  text := nullif(lower(p_args ->> 'contains'), '');
    v_search    bigint := least(greatest(queen.param_int(p_args, 'search', 1000), 0), 10000);
    v_limit     bigint := greatest(queen.param_int(p_args, 'limit', 200), 0);
    v_offset    bigint := greatest(queen.param_int(p_args, 'offset', 0), 0);
    v_list      json;
    v_searched  bigint;
    v_mode      json;
    m           record;
begin
    perform queen.freshen_stats();
    -- Include the whole minute of "to".
    v_to := date_trunc('minute', v_to) + interval '1 minute' - interval '1 microsecond';
    with page as materialized (
        select * from queen.newest_messages(
                 p_args ->> 'queue', p_args ->> 'partition', v_namespace, p_args ->> 'task', p_args ->> 'status', v_from, v_to,
                 case when v_contains is null then v_limit else v_search end, case when v_contains is null then v_offset else 0 end)
    ), hits as ( -- each segment is unpacked once
        select k.lane, f.seq
          from (select p.lane, array_agg(p.seq) as seqs from page p where v_contains is not null group by p.lane) k
         cross join lateral queen.messages_at(k.lane, k.seqs) f
         where strpos(lower((f.message).transaction_id), v_contains) > 0
            or not (f.message).is_encrypted and strpos(lower((f.message).payload), v_contains) > 0)
    select (select count(*) from page), coalesce(json_agg(json_build_object(
               'id', k.id, 'transactionId', k.transaction_id, 'partitionId', k.lane_id,
               'queuePath', k.queue_name || '/' || k.lane_name, 'queue', k.queue_name, 'partition', k.lane_name,
               'namespace', k.namespace, 'task', k.task, 'status', k.status, 'queueStatus', k.queue_status,
               'busStatus', json_build_object('consumedBy', k.consumed_by, 'totalGroups', k.groups),
               'traceId', k.trace_id, 'producerSub', k.producer_sub, 'queuePriority', k.priority,
               'createdAt', queen.iso_ms(k.created_at), 'leaseExpiresAt', queen.iso_ms(k.lease_until),
               'retryCount', k.retry_count) order by k.nth), '[]')
      into v_searched, v_list
      from (select p.* from page p
             where v_contains is null or (p.lane, p.seq) in (select h.lane, h.seq from hits h)
             order by p.nth limit v_limit offset case when v_contains is null then 0 else v_offset end) k;
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
    v_mode := json_build_object(
        'hasQueueMode', m.queued, 'busGroupsCount', m.named,
        'type', case when m.queued and m.named > 0 then 'hybrid' when m.queued then 'queue'
                     when m.named > 0 then 'bus' else 'none' end);
    if v_contains is null then
        return json_build_object('messages', v_list, 'mode', v_mode);
    end if;
    return json_build_object('messages', v_list, 'mode', v_mode, 'searched', v_searched);
end
$$;
