-- queen.get_group: GET /api/v1/consumer-groups/:group.
--
-- needs: freshen_stats, iso_ms
-- called by  src/api/groups_read.c
-- out        an object keyed by queue; {} for a group that nobody knows
create or replace function queen.get_group(p_args jsonb)
returns json
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    v_now timestamptz := clock_timestamp();
begin
    perform queen.freshen_stats();
    return (
        select coalesce(json_object_agg(k.name, json_build_object('partitions', k.partitions) order by k.name), '{}')
          from (select q.name, json_agg(json_build_object(
                           'partition', l.name,
                           'workerId', case when st.lease_until > v_now then coalesce(st.lease_text, st.lease::text) end,
                           'lastConsumedAt', queen.iso_ms(st.last_at), 'totalConsumed', st.total_messages,
                           'offsetLag', coalesce(s.lag, 0),
                           'timeLagSeconds', coalesce(greatest(floor(extract(epoch from v_now - s.oldest_at)), 0)::bigint, 0),
                           'leaseActive', coalesce(st.lease_until > v_now, false)) order by l.name) as partitions
                  from queen.consumers c
                  join queen.lanes l on l.num = c.lane
                  join queen.queues q on q.id = l.queue_id
                  left join queen.consumer_stats s on s.consumer = c.num
                  cross join lateral (
                       select * from (
                           (select a.ver, a.lease, a.lease_text, a.last_at, a.lease_until, a.total_messages
                              from queen.consumer_states_a a where a.consumer = c.num order by a.ver desc limit 1)
                           union all
                           (select b.ver, b.lease, b.lease_text, b.last_at, b.lease_until, b.total_messages
                              from queen.consumer_states_b b where b.consumer = c.num order by b.ver desc limit 1)) v
                        order by ver desc limit 1) st
                 where c.grp = p_args ->> 'group'
                 group by q.name) k);
end
$$;
