-- queen.status_queue: GET /api/v1/status/queues/:queue.
--
-- needs: lane_figures, freshen_stats, iso_ms, json_ms
-- called by  src/api/status_queues.c
-- out        200 with the queue, its options, its partitions by name and their sums; 404 when there is none of that name
create or replace function queen.status_queue(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean)
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
set work_mem = '32MB'
as $$
declare
    q        queen.queues%rowtype;
    v_parts  text;
    v_totals jsonb;
begin
    select * into q from queen.queues where name = p_args ->> 'queue';
    if q.id is null then
        return query select 404, '{"error":"Queue not found"}', null::bytea, false;
        return;
    end if;
    perform queen.freshen_stats();
    -- The list is put together as text: twice as fast as by functions of JSON.
    select '[' || coalesce(string_agg(concat(
               '{"id":"', l.id, '","name":', to_json(l.name), ',"createdAt":', queen.json_ms(l.created_at),
               ',"messages":', n.six, ',"stats":', n.six,
               ',"cursor":{"totalConsumed":', coalesce(b.consumed, 0), ',"batchesConsumed":', coalesce(b.batches, 0),
               '},"lastActivity":', queen.json_ms(greatest(l.newest_at, b.last_at)),
               ',"oldestMessage":', queen.json_ms(l.oldest_at), ',"newestMessage":', queen.json_ms(l.newest_at),
               ',"total":', l.total, n.four, ',"dlq":', l.dead_letter, '}'), ',' order by l.name), '') || ']',
           jsonb_build_object('total', coalesce(sum(l.total), 0), 'pending', coalesce(sum(l.pending), 0),
                              'processing', coalesce(sum(l.processing), 0), 'completed', coalesce(sum(l.completed), 0),
                              'failed', 0, 'deadLetter', coalesce(sum(l.dead_letter), 0))
      into v_parts, v_totals
      from queen.lane_figures(q.id) l
      cross join lateral (select concat(',"pending":', l.pending, ',"processing":', l.processing,
                                        ',"completed":', l.completed, ',"failed":0') as four offset 0) m
      cross join lateral (select m.four, concat('{"total":', l.total, m.four, ',"deadLetter":', l.dead_letter, '}') as six
                          offset 0) n
      left join (select c.lane, sum(c.consumed) as consumed, sum(c.batches) as batches, max(c.last_at) as last_at
                   from queen.consumer_stats c where c.queue_id = q.id group by c.lane) b on b.lane = l.lane;
    return query
    select 200, concat(
               '{"queue":', json_build_object(
                   'id', q.id, 'name', q.name, 'namespace', q.namespace, 'task', q.task, 'priority', q.priority,
                   'createdAt', queen.iso_ms(q.created_at),
                   'config', json_build_object(
                       'leaseTime', q.lease_time, 'retryLimit', q.retry_limit, 'retryDelay', q.retry_delay,
                       'ttl', q.ttl, 'maxQueueSize', q.max_queue_size, 'deadLetterQueue', q.dead_letter_queue)),
               ',"partitions":', v_parts,
               ',"totals":', jsonb_build_object('messages', v_totals) || v_totals, '}'),
           null::bytea, false;
end
$$;
