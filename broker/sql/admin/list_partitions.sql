-- queen.list_partitions: GET /api/v1/resources/partitions.
--
-- needs: lane_counts, freshen_stats
-- called by  broker/src/api/admin/resources.c
-- in         p_args: queue; without it the partitions of all queues
-- out        {"partitions":[...]}, by queue and name; rows as described in broker/src/api/sql_endpoint.h
create or replace function queen.list_partitions(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean, shape text,
               id uuid, name text, queue varchar, created_at timestamptz, total bigint, pending bigint, processing bigint)
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
    v_queue uuid := (select q.id from queen.queues q where q.name = p_args ->> 'queue');
begin
    perform queen.freshen_stats();
    status := 200;
    piece := '{"partitions":[';
    shape := '{"id":$1,"name":$2,"queue":$3,"createdAt":$4,"messages":{"total":$5,"pending":$6,"processing":$7}}';
    return next;
    return query
    select null::int, null::text, null::bytea, null::boolean, null::text,
           l.id, l.name, q.name, l.created_at, l.total, l.pending, l.processing
      from queen.lane_counts(v_queue) l
      join queen.queues q on q.id = l.queue_id
     where (v_queue is not null or p_args ->> 'queue' is null) and queen.may_see(p_args, q.name)
     order by q.name collate "C", l.name collate "C";
    piece := ']}';
    shape := null;
    return next;
end
$$;
