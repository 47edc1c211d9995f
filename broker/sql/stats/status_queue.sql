-- queen.status_queue: GET /api/v1/status/queues/:queue.
--
-- needs: lane_counts, queue_stats, freshen_stats, iso_ms
-- called by  broker/src/api/status_queues.c
-- out        200 with the queue, its options, its partitions by name and their sums; 404 if there is no such queue;
--            rows as described in broker/src/api/sql_endpoint.h
create or replace function queen.status_queue(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean, shape text,
               id uuid, name text, created_at timestamptz, total bigint, pending bigint, processing bigint,
               completed bigint, dead_letter bigint, consumed bigint, batches bigint, active_at timestamptz,
               oldest_at timestamptz, newest_at timestamptz)
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
    q        queen.queues%rowtype;
    v_totals jsonb;
begin
    select * into q from queen.queues where name = p_args ->> 'queue';
    if q.id is not null then
        perform queen.freshen_stats();
        select jsonb_build_object('total', f.total, 'pending', f.pending, 'processing', f.processing, 'completed', f.completed,
                                  'failed', 0, 'deadLetter', f.dead_letter)
          into v_totals from queen.queue_stats(q.name) f;
    end if;
    if v_totals is null then -- no such queue, or it was deleted meanwhile
        status := 404;
        piece := '{"error":"Queue not found"}';
        return next;
        return;
    end if;
    status := 200;
    piece := concat(
        '{"queue":', json_build_object(
            'id', q.id, 'name', q.name, 'namespace', q.namespace, 'task', q.task, 'priority', q.priority,
            'createdAt', queen.iso_ms(q.created_at),
            'config', json_build_object(
                'leaseTime', q.lease_time, 'retryLimit', q.retry_limit, 'retryDelay', q.retry_delay,
                'ttl', q.ttl, 'maxQueueSize', q.max_queue_size, 'deadLetterQueue', q.dead_letter_queue)),
        ',"totals":', jsonb_build_object('messages', v_totals) || v_totals, ',"partitions":[');
    shape := '{"id":$1,"name":$2,"createdAt":$3,'
             '"messages":{"total":$4,"pending":$5,"processing":$6,"completed":$7,"failed":0,"deadLetter":$8},'
             '"stats":{"total":$4,"pending":$5,"processing":$6,"completed":$7,"failed":0,"deadLetter":$8},'
             '"cursor":{"totalConsumed":$9,"batchesConsumed":$10},'
             '"lastActivity":$11,"oldestMessage":$12,"newestMessage":$13,'
             '"total":$4,"pending":$5,"processing":$6,"completed":$7,"failed":0,"dlq":$8}';
    return next;
    return query
    select null::int, null::text, null::bytea, null::boolean, null::text,
           l.id, l.name, l.created_at, l.total, l.pending, l.processing, l.completed, l.dead_letter,
           coalesce(b.consumed, 0)::bigint, coalesce(b.batches, 0)::bigint, greatest(l.newest_at, b.last_at), l.oldest_at, l.newest_at
      from queen.lane_counts(q.id) l
      left join (select c.lane, sum(c.consumed) as consumed, sum(c.batches) as batches, max(c.last_at) as last_at
                   from queen.consumer_stats c where c.queue_id = q.id group by c.lane) b on b.lane = l.lane
     order by l.name collate "C";
    piece := ']}';
    shape := null;
    return next;
end
$$;
