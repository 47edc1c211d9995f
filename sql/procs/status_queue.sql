-- queen.status_queue: GET /api/v1/status/queues/:queue.
--
-- needs: lane_figures, freshen_stats, iso_ms
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
as $$
declare
    q        queen.queues%rowtype;
    v_parts  json;
    v_totals jsonb;
begin
    select * into q from queen.queues where name = p_args ->> 'queue';
    if q.id is null then
        return query select 404, '{"error":"Queue not found"}', null::bytea, false;
        return;
    end if;
    perform queen.freshen_stats();
    select coalesce(json_agg(json_build_object(
               'id', l.id, 'name', l.name, 'createdAt', queen.iso_ms(l.created_at),
               'messages', n.six, 'stats', n.six,
               'cursor', json_build_object('totalConsumed', l.consumed, 'batchesConsumed', coalesce(b.batches, 0)),
               'lastActivity', queen.iso_ms(greatest(l.newest_at, b.last_at)),
               'oldestMessage', queen.iso_ms(l.oldest_at), 'newestMessage', queen.iso_ms(l.newest_at),
               'total', l.total, 'pending', l.pending, 'processing', l.processing, 'completed', l.completed,
               'failed', 0, 'dlq', l.dead_letter)), '[]'),
           jsonb_build_object('total', coalesce(sum(l.total), 0), 'pending', coalesce(sum(l.pending), 0),
                              'processing', coalesce(sum(l.processing), 0), 'completed', coalesce(sum(l.completed), 0),
                              'failed', 0, 'deadLetter', coalesce(sum(l.dead_letter), 0))
      into v_parts, v_totals
      from queen.lane_figures(q.id) l
      cross join lateral (select json_build_object(
               'total', l.total, 'pending', l.pending, 'processing', l.processing, 'completed', l.completed,
               'failed', 0, 'deadLetter', l.dead_letter)) n(six)
      left join lateral (select sum(st.total_batches)::bigint as batches, max(st.last_at) as last_at
                           from queen.consumers c
                           cross join lateral (
                                (select a.ver, a.total_batches, a.last_at from queen.consumer_states_a a
                                  where a.consumer = c.num order by a.ver desc limit 1)
                                union all
                                (select b.ver, b.total_batches, b.last_at from queen.consumer_states_b b
                                  where b.consumer = c.num order by b.ver desc limit 1)
                                order by ver desc limit 1) st
                          where c.lane = l.lane) b on true;
    return query
    select 200, json_build_object(
               'queue', json_build_object(
                   'id', q.id, 'name', q.name, 'namespace', q.namespace, 'task', q.task, 'priority', q.priority,
                   'createdAt', queen.iso_ms(q.created_at),
                   'config', json_build_object(
                       'leaseTime', q.lease_time, 'retryLimit', q.retry_limit, 'retryDelay', q.retry_delay,
                       'ttl', q.ttl, 'maxQueueSize', q.max_queue_size, 'deadLetterQueue', q.dead_letter_queue)),
               'partitions', v_parts,
               'totals', jsonb_build_object('messages', v_totals) || v_totals)::text,
           null::bytea, false;
end
$$;
