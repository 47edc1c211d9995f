-- queen.list_queues: GET /api/v1/resources/queues and GET /api/v1/status/queues.
--
-- needs: param_int, iso_ms, freshen_stats
-- called by  src/api/resources.c, src/api/status_queues.c
-- in         p_args: namespace, task, limit, offset; p_status: the status page, where pending includes what is being processed and
--            a page has 100 queues
-- out        {"queues":[...]}, newest first; for the status page with "pagination"
create or replace function queen.list_queues(p_args jsonb, p_status boolean)
returns json
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    v_limit  bigint := queen.param_int(p_args, 'limit', case when p_status then 100 end);
    v_offset bigint := greatest(queen.param_int(p_args, 'offset', 0), 0);
    v_now    timestamptz := clock_timestamp();
    v_queues json;
begin
    if v_limit < 0 then -- null: all
        v_limit := 0;
    end if;
    perform queen.freshen_stats();
    select coalesce(json_agg(k.entry order by k.created_at desc, k.name), '[]') into v_queues
      from (select q.created_at, q.name, json_build_object(
                       'id', q.id, 'name', q.name, 'namespace', q.namespace, 'task', q.task,
                       'createdAt', queen.iso_ms(q.created_at), 'partitions', coalesce(s.child_count, 0),
                       'messages', json_build_object(
                           'total', coalesce(s.total_messages, 0),
                           'pending', greatest(f.pending, 0),
                           'processing', coalesce(s.processing_messages, 0)),
                       'partitionCount', coalesce(s.child_count, 0), 'priority', q.priority,
                       'leaseTime', q.lease_time, 'retryLimit', q.retry_limit, 'maxSize', q.max_queue_size,
                       'encryptionEnabled', q.encryption_enabled,
                       'pending', greatest(f.pending, 0), 'processing', coalesce(s.processing_messages, 0),
                       'completed', coalesce(s.completed_messages, 0), 'failed', 0,
                       'dlq', coalesce(s.dead_letter_messages, 0),
                       'lagSeconds', coalesce(floor(extract(epoch from v_now - s.oldest_pending_at))::bigint, 0)) as entry
              from (select * from queen.queues q
                     where (p_args ->> 'namespace' is null or q.namespace = p_args ->> 'namespace')
                       and (p_args ->> 'task' is null or q.task = p_args ->> 'task')
                     order by q.created_at desc, q.name limit v_limit offset v_offset) q
              left join queen.stats s on s.queue_id = q.id and s.stat_type = 'queue'
              cross join lateral (select coalesce(s.pending_messages, 0)
                                       + case when p_status then coalesce(s.processing_messages, 0) else 0 end) f(pending)
           ) k;
    if p_status then
        return json_build_object('queues', v_queues,
                                 'pagination', json_build_object('limit', v_limit, 'offset', v_offset));
    end if;
    return json_build_object('queues', v_queues);
end
$$;
