-- queen.list_queues: GET /api/v1/resources/queues and GET /api/v1/status/queues.
--
-- needs: param_int, freshen_stats
-- called by  broker/src/api/resources.c, broker/src/api/status_queues.c
-- in         p_args: namespace, task, limit, offset; p_status: for the status page, where pending includes messages under a lease and
--            a page has 100 queues
-- out        {"queues":[...]}, newest first; for the status page with "pagination"; rows as described in broker/src/api/sql_endpoint.h
create or replace function queen.list_queues(p_args jsonb, p_status boolean)
returns table (status int, piece text, payload bytea, sealed boolean, shape text,
               id uuid, name varchar, namespace varchar, task varchar, created_at timestamptz, partitions bigint,
               total bigint, pending bigint, processing bigint, completed bigint, dead_letter bigint, priority int,
               lease_time int, retry_limit int, max_size int, encrypted boolean, lag_seconds bigint)
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
set work_mem = '32MB'
as $$
#variable_conflict use_column
declare
    v_limit  bigint := queen.param_int(p_args, 'limit', case when p_status then 100 end);
    v_offset bigint := greatest(queen.param_int(p_args, 'offset', 0), 0);
    v_now    timestamptz := clock_timestamp();
begin
    if v_limit < 0 then -- null: all
        v_limit := 0;
    end if;
    perform queen.freshen_stats();
    status := 200;
    piece := '{"queues":[';
    shape := '{"id":$1,"name":$2,"namespace":$3,"task":$4,"createdAt":$5,"partitions":$6,'
             '"messages":{"total":$7,"pending":$8,"processing":$9},"partitionCount":$6,"priority":$12,"leaseTime":$13,'
             '"retryLimit":$14,"maxSize":$15,"encryptionEnabled":$16,"pending":$8,"processing":$9,"completed":$10,'
             '"failed":0,"dlq":$11,"lagSeconds":$17}';
    return next;
    return query
    select null::int, null::text, null::bytea, null::boolean, null::text,
           q.id, q.name, q.namespace, q.task, q.created_at, coalesce(s.child_count, 0), coalesce(s.total_messages, 0),
           greatest(coalesce(s.pending_messages, 0)
                    + case when p_status then coalesce(s.processing_messages, 0) else 0 end, 0),
           coalesce(s.processing_messages, 0), coalesce(s.completed_messages, 0), coalesce(s.dead_letter_messages, 0),
           q.priority, q.lease_time, q.retry_limit, q.max_queue_size, q.encryption_enabled,
           coalesce(greatest(floor(date_part('epoch', v_now - s.oldest_pending_at)), 0)::bigint, 0)
      from (select * from queen.queues q
             where (p_args ->> 'namespace' is null or q.namespace = p_args ->> 'namespace')
               and (p_args ->> 'task' is null or q.task = p_args ->> 'task')
             order by q.created_at desc, q.name collate "C" limit v_limit offset v_offset) q
      left join queen.stats s on s.queue_id = q.id and s.stat_type = 'queue'
     order by q.created_at desc, q.name collate "C";
    piece := case when p_status then format('],"pagination":{"limit":%s,"offset":%s}}', v_limit, v_offset) else ']}' end;
    shape := null;
    return next;
end
$$;
