-- queen.status_queue: GET /api/v1/status/queues/:queue.
--
-- needs: param_int, queue_options, lane_counts, queue_stats, freshen_stats, iso_ms
-- called by  broker/src/api/monitoring/status_queues.c
-- in         p_args: queue; for its partitions limit, offset, search (part of the name, in any case), sort (name, pending: most first,
--            oldest: the longest wait first). Without any of these all partitions are shown
-- out        200 with the queue, its options (config: as the contract has it; options: those that take effect), its partitions by name and the sums of all of
--            them, with "pagination" if p_args choose some of them; 404 if there is no such queue;
--            rows as described in broker/src/api/sql_endpoint.h
-- raises     QN001 for an unknown sort
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
    v_paged  boolean := p_args ?| array['limit', 'offset', 'search', 'sort'];
    v_limit  bigint := case when v_paged then greatest(queen.param_int(p_args, 'limit', 100), 0) end; -- null: all
    v_offset bigint := greatest(queen.param_int(p_args, 'offset', 0), 0);
    v_search text := nullif(lower(p_args ->> 'search'), '');
    v_sort   text := coalesce(nullif(p_args ->> 'sort', ''), 'name');
    v_total  bigint;
begin
    if v_sort not in ('name', 'pending', 'oldest') then
        raise exception 'sort must be name, pending or oldest' using errcode = 'QN001';
    end if;
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
                'ttl', q.ttl, 'maxQueueSize', q.max_queue_size, 'deadLetterQueue', q.dead_letter_queue),
            'options', queen.queue_options(q)),
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
     where v_search is null or strpos(lower(l.name), v_search) > 0
     order by case when v_sort = 'pending' then l.pending end desc nulls last,
              case when v_sort = 'oldest' and l.pending > 0 then l.oldest_at end nulls last,
              l.name collate "C"
     limit v_limit offset v_offset;
    if v_paged then
        select count(*) into v_total from queen.lane_counts(q.id) l where v_search is null or strpos(lower(l.name), v_search) > 0;
        piece := format('],"pagination":{"limit":%s,"offset":%s,"total":%s}}', v_limit, v_offset, v_total);
    else
        piece := ']}';
    end if;
    shape := null;
    return next;
end
$$;
