-- queen.list_queues: GET /api/v1/resources/queues and GET /api/v1/status/queues.
--
-- needs: param_int, json_ms, freshen_stats
-- called by  src/api/resources.c, src/api/status_queues.c
-- in         p_args: namespace, task, limit, offset; p_status: the status page, where pending includes what is being processed and
--            a page has 100 queues
-- out        {"queues":[...]}, newest first; for the status page with "pagination"
create or replace function queen.list_queues(p_args jsonb, p_status boolean)
returns text
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
set work_mem = '32MB'
as $$
declare
    v_limit  bigint := queen.param_int(p_args, 'limit', case when p_status then 100 end);
    v_offset bigint := greatest(queen.param_int(p_args, 'offset', 0), 0);
    v_now    timestamptz := clock_timestamp();
    v_queues text;
begin
    if v_limit < 0 then -- null: all
        v_limit := 0;
    end if;
    perform queen.freshen_stats();
    -- Put together as text: twice as fast as by functions of JSON.
    select '{"queues":[' || coalesce(string_agg(concat(
               '{"id":"', q.id, '","name":', to_json(q.name), ',"namespace":', coalesce(to_json(q.namespace)::text, 'null'),
               ',"task":', coalesce(to_json(q.task)::text, 'null'), ',"createdAt":', queen.json_ms(q.created_at),
               ',"partitions":', n.partitions,
               ',"messages":{"total":', coalesce(s.total_messages, 0), ',"pending":', n.pending,
               ',"processing":', n.processing, '},"partitionCount":', n.partitions, ',"priority":', q.priority,
               ',"leaseTime":', q.lease_time, ',"retryLimit":', q.retry_limit, ',"maxSize":', q.max_queue_size,
               ',"encryptionEnabled":', case when q.encryption_enabled then 'true' else 'false' end,
               ',"pending":', n.pending, ',"processing":', n.processing,
               ',"completed":', coalesce(s.completed_messages, 0), ',"failed":0,"dlq":', coalesce(s.dead_letter_messages, 0),
               ',"lagSeconds":', coalesce(floor(date_part('epoch', v_now - s.oldest_pending_at))::bigint, 0), '}'),
               ',' order by q.created_at desc, q.name), '') || ']'
      into v_queues
      from (select * from queen.queues q
             where (p_args ->> 'namespace' is null or q.namespace = p_args ->> 'namespace')
               and (p_args ->> 'task' is null or q.task = p_args ->> 'task')
             order by q.created_at desc, q.name limit v_limit offset v_offset) q
      left join queen.stats s on s.queue_id = q.id and s.stat_type = 'queue'
      cross join lateral (
           select coalesce(s.child_count, 0) as partitions, coalesce(s.processing_messages, 0) as processing,
                  greatest(coalesce(s.pending_messages, 0)
                           + case when p_status then coalesce(s.processing_messages, 0) else 0 end, 0) as pending) n;
    if p_status then
        v_queues := v_queues || format(',"pagination":{"limit":%s,"offset":%s}', v_limit, v_offset);
    end if;
    return v_queues || '}';
end
$$;
