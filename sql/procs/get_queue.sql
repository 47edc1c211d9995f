-- queen.get_queue: GET /api/v1/resources/queues/:queue.
--
-- needs: lane_figures, freshen_stats, iso_ms
-- called by  src/api/resources.c
-- out        200 with the queue, its partitions by name and their sums; 404 when there is none of that name
create or replace function queen.get_queue(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean)
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    q queen.queues%rowtype;
begin
    select * into q from queen.queues where name = p_args ->> 'queue';
    if q.id is null then
        return query select 404, '{"error":"Queue not found"}', null::bytea, false;
        return;
    end if;
    perform queen.freshen_stats();
    return query
    select 200, json_build_object(
               'id', q.id, 'name', q.name, 'namespace', q.namespace, 'task', q.task,
               'createdAt', queen.iso_ms(q.created_at),
               'partitions', coalesce(json_agg(json_build_object(
                   'id', l.id, 'name', l.name, 'createdAt', queen.iso_ms(l.created_at),
                   'stats', json_build_object('total', l.total, 'pending', l.pending, 'processing', l.processing,
                                              'completed', l.completed, 'failed', 0, 'deadLetter', l.dead_letter),
                   'oldestMessage', queen.iso_ms(l.oldest_at), 'newestMessage', queen.iso_ms(l.newest_at),
                   'total', l.total, 'pending', l.pending, 'processing', l.processing, 'completed', l.completed,
                   'failed', 0, 'dlq', l.dead_letter)) filter (where l.id is not null), '[]'),
               'totals', json_build_object(
                   'total', coalesce(sum(l.total), 0), 'pending', coalesce(sum(l.pending), 0),
                   'processing', coalesce(sum(l.processing), 0), 'completed', coalesce(sum(l.completed), 0),
                   'failed', 0, 'deadLetter', coalesce(sum(l.dead_letter), 0)))::text,
           null::bytea, false
      from queen.lane_figures(q.id) l;
end
$$;
