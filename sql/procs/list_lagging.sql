-- queen.list_lagging: GET /api/v1/consumer-groups/lagging.
--
-- needs: param_int, freshen_stats, latest_state, iso_ms
-- called by  src/api/groups_read.c
-- in         p_args: minLagSeconds (3600)
-- out        an array: partitions where a group is further behind than that, worst first
create or replace function queen.list_lagging(p_args jsonb)
returns json
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    v_min bigint := queen.param_int(p_args, 'minLagSeconds', 3600);
    v_now timestamptz := clock_timestamp();
begin
    perform queen.freshen_stats();
    return (
        select coalesce(json_agg(json_build_object(
                   'consumer_group', s.grp, 'queue_name', q.name, 'partition_name', l.name, 'partition_id', l.id,
                   'worker_id', coalesce(st.lease_text, st.lease::text), 'offset_lag', s.lag,
                   'time_lag_seconds', g.lag, 'lag_hours', round(g.lag / 3600.0, 2),
                   'oldest_unconsumed_at', queen.iso_ms(s.oldest_at), 'last_consumed_at', queen.iso_ms(st.last_at),
                   'name', s.grp, 'queue', q.name, 'lagMessages', s.lag, 'lagSeconds', g.lag, 'partitions', 1)
                   order by s.oldest_at, q.name, l.name), '[]')
          from queen.consumer_stats s
          join queen.lanes l on l.num = s.lane
          join queen.queues q on q.id = l.queue_id
          cross join lateral (
               select * from (
                   (select a.ver, a.lease, a.lease_text, a.last_at from queen.consumer_states_a a
                     where a.consumer = s.consumer order by a.ver desc limit 1)
                   union all
                   (select b.ver, b.lease, b.lease_text, b.last_at from queen.consumer_states_b b
                     where b.consumer = s.consumer order by b.ver desc limit 1)) k
                order by ver desc limit 1) st
          cross join lateral (select floor(extract(epoch from v_now - s.oldest_at))::bigint) g(lag)
         where s.oldest_at < v_now - v_min * interval '1 second' and g.lag > v_min);
end
$$;
