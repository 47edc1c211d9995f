-- queen.list_partitions: GET /api/v1/resources/partitions.
--
-- needs: lane_figures, freshen_stats, json_ms
-- called by  src/api/resources.c
-- in         p_args: queue; without it the partitions of all queues
-- out        {"partitions":[...]}, by queue and name
create or replace function queen.list_partitions(p_args jsonb)
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
    v_queue uuid := (select q.id from queen.queues q where q.name = p_args ->> 'queue');
begin
    perform queen.freshen_stats();
    return (
        -- Put together as text: twice as fast as by functions of JSON.
        select '{"partitions":[' || coalesce(string_agg(concat(
                   '{"id":"', l.id, '","name":', to_json(l.name), ',"queue":', to_json(q.name),
                   ',"createdAt":', queen.json_ms(l.created_at),
                   ',"messages":{"total":', l.total, ',"pending":', l.pending, ',"processing":', l.processing, '}}'),
                   ',' order by q.name, l.name), '') || ']}'
          from queen.lane_figures(v_queue) l
          join queen.lanes n on n.num = l.lane
          join queen.queues q on q.id = n.queue_id
         where v_queue is not null or p_args ->> 'queue' is null);
end
$$;
