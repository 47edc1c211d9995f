-- queen.list_partitions: GET /api/v1/resources/partitions.
--
-- needs: lane_figures, freshen_stats, iso_ms
-- called by  src/api/resources.c
-- in         p_args: queue; without it the partitions of all queues
-- out        {"partitions":[...]}, by queue and name
create or replace function queen.list_partitions(p_args jsonb)
returns json
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
begin
    perform queen.freshen_stats();
    return (
        select json_build_object('partitions', coalesce(json_agg(json_build_object(
                   'id', l.id, 'name', l.name, 'queue', q.name, 'createdAt', queen.iso_ms(l.created_at),
                   'messages', json_build_object('total', l.total, 'pending', l.pending, 'processing', l.processing))
                   order by q.name, l.name), '[]'))
          from queen.queues q cross join lateral queen.lane_figures(q.id) l
         where p_args ->> 'queue' is null or q.name = p_args ->> 'queue');
end
$$;
