-- queen.get_queue: GET /api/v1/resources/queues/:queue.
--
-- needs: fill_retry_policy, lane_counts, queue_stats, freshen_stats, json_ms
-- called by  broker/src/api/admin/resources.c
-- out        200 with the queue, its partitions by name and their sums; 404 if there is no such queue; rows as
--            described in broker/src/api/sql_endpoint.h
create or replace function queen.get_queue(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean, shape text,
               id uuid, name text, created_at timestamptz, total bigint, pending bigint, processing bigint,
               completed bigint, dead_letter bigint, oldest_at timestamptz, newest_at timestamptz)
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
    q queen.queues%rowtype;
    f record;
begin
    select * into q from queen.queues where name = p_args ->> 'queue';
    if q.id is not null then
        perform queen.freshen_stats();
        select * into f from queen.queue_stats(q.name);
    end if;
    if not found then -- no such queue, or it was deleted meanwhile
        status := 404;
        piece := '{"error":"Queue not found"}';
        return next;
        return;
    end if;
    status := 200;
    piece := concat('{"id":"', q.id, '","name":', to_json(q.name), ',"namespace":', to_json(q.namespace),
                    ',"task":', to_json(q.task), ',"createdAt":', queen.json_ms(q.created_at),
                    ',"retryPolicy":' || queen.fill_retry_policy(q.retry_policy)::text, ',"maxDeliveries":', q.max_deliveries, ',"totals":{"total":', f.total,
                    ',"pending":', f.pending, ',"processing":', f.processing, ',"completed":', f.completed,
                    ',"failed":0,"deadLetter":', f.dead_letter, '},"partitions":[');
    shape := '{"id":$1,"name":$2,"createdAt":$3,'
             '"stats":{"total":$4,"pending":$5,"processing":$6,"completed":$7,"failed":0,"deadLetter":$8},'
             '"oldestMessage":$9,"newestMessage":$10,'
             '"total":$4,"pending":$5,"processing":$6,"completed":$7,"failed":0,"dlq":$8}';
    return next;
    return query
    select null::int, null::text, null::bytea, null::boolean, null::text,
           l.id, l.name, l.created_at, l.total, l.pending, l.processing, l.completed, l.dead_letter, l.oldest_at, l.newest_at
      from queen.lane_counts(q.id) l
     order by l.name collate "C";
    piece := ']}';
    shape := null;
    return next;
end
$$;
