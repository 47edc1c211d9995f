-- queen.list_lagging: GET /api/v1/consumer-groups/lagging.
--
-- needs: param_int, freshen_stats, latest_state
-- called by  broker/src/api/admin/groups_read.c
-- in         p_args: minLagSeconds (3600)
-- out        an array: partitions where a group lags by more than that, worst first; worker_id is the owner of the active
--            lease; rows as described in broker/src/api/sql_endpoint.h
create or replace function queen.list_lagging(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean, shape text,
               grp text, queue varchar, partition varchar, partition_id uuid, worker text, lag bigint,
               lag_seconds bigint, lag_hours float8, oldest_at timestamptz, last_at timestamptz)
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
    v_min bigint := queen.param_int(p_args, 'minLagSeconds', 3600);
    v_now timestamptz := clock_timestamp();
begin
    perform queen.freshen_stats();
    status := 200;
    piece := '[';
    shape := '{"consumer_group":$1,"queue_name":$2,"partition_name":$3,"partition_id":$4,"worker_id":$5,"offset_lag":$6,'
             '"time_lag_seconds":$7,"lag_hours":$8,"oldest_unconsumed_at":$9,"last_consumed_at":$10,'
             '"name":$1,"queue":$2,"lagMessages":$6,"lagSeconds":$7,"partitions":1}';
    return next;
    return query
    select null::int, null::text, null::bytea, null::boolean, null::text,
           s.grp, q.name, l.name, l.id,
           coalesce(st.lease_text, st.lease::text),
           s.lag, g.lag::bigint, floor(g.lag / 36 + 0.5) / 100, s.oldest_at, s.last_at
      from queen.consumer_stats s
      join queen.lanes l on l.num = s.lane
      join queen.queues q on q.id = l.queue_id
      left join (select k.consumer, k.lease, k.lease_text
                   from queen.consumer_stats c cross join lateral queen.latest_state(c.consumer) k
                  where c.lease_until > v_now and k.lease_until > v_now) st on st.consumer = s.consumer
      cross join lateral (select greatest(floor(date_part('epoch', v_now - s.oldest_at)), 0)) g(lag)
     where s.oldest_at < v_now - v_min * interval '1 second' and g.lag > v_min
     order by s.oldest_at, q.name collate "C", l.name collate "C";
    piece := ']';
    shape := null;
    return next;
end
$$;
