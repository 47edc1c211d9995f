-- queen.map_partitions: GET /api/v1/status/queues/:queue/map.
--
-- needs: strict_int, lane_counts, latest_state, freshen_stats, iso_ms
-- called by  broker/src/api/monitoring/status_queues.c
-- in         p_args: queue; cells (400, at most 2000); from, to: names of partitions, the first and the last of the range; group: whose backlog
--            (without it: messages that some group has not consumed)
-- out        200 {"partitions","groups","cells":[...]}: the partitions by name in at most so many cells of neighbours, each with its first and last name,
--            number of partitions, pending messages, those of the worst partition, messages in flight, oldest pending, number of leased partitions, and for a
--            cell of one partition who holds its leases. 404: no such queue
create or replace function queen.map_partitions(p_args jsonb)
returns table (status int, answer json)
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
    v_cells bigint := least(greatest(queen.strict_int(p_args, 'cells', 400), 1), 2000);
    v_now   timestamptz := clock_timestamp();
    v_id    uuid := (select q.id from queen.queues q where q.name = p_args ->> 'queue');
    v_from  text := nullif(p_args ->> 'from', '') collate "C";
    v_to    text := nullif(p_args ->> 'to', '') collate "C";
    v_group text := nullif(p_args ->> 'group', '');
begin
    if v_id is null then
        status := 404;
        answer := json_build_object('error', 'Queue not found');
        return next;
        return;
    end if;
    perform queen.freshen_stats();
    status := 200;
    with leased as (
        select s.lane, count(*) as n, array_agg(s.consumer) as consumers
          from queen.consumer_stats s
         where s.queue_id = v_id and s.lease_until > v_now and (v_group is null or s.grp = v_group)
         group by s.lane
    ), p as (
        select l.lane, l.name, case when v_group is null then l.pending else coalesce(c.lag, l.total) end as pending, l.processing,
               case when v_group is null then case when l.pending > 0 then l.oldest_at end when c.consumer is null then l.oldest_at else c.oldest_at end as oldest_at,
               x.consumers,
               (row_number() over (order by l.name collate "C") - 1) as at, count(*) over () as total
          from queen.lane_counts(v_id) l
          left join queen.consumer_stats c on v_group is not null and c.lane = l.lane and c.grp = v_group
          left join leased x on x.lane = l.lane
         where (v_from is null or l.name collate "C" >= v_from) and (v_to is null or l.name collate "C" <= v_to)
    ), cells as (
        select p.at * least(v_cells, p.total) / p.total as cell, min(p.name collate "C") as first, max(p.name collate "C") as last, count(*) as n,
               sum(p.pending) as pending, max(p.pending) as most, sum(p.processing) as processing, min(p.oldest_at) as oldest_at,
               count(p.consumers) as leased, min(p.lane) as lane
          from p group by 1
    )
    select json_build_object(
               'partitions', coalesce(sum(c.n), 0),
               'groups', (select coalesce(json_agg(s.consumer_group order by s.consumer_group collate "C"), '[]') from queen.stats s
                           where s.queue_id = v_id and s.stat_type = 'group' and s.child_count > 0),
               'cells', coalesce(json_agg(json_build_object(
                   'first', c.first, 'last', c.last, 'partitions', c.n, 'pending', c.pending, 'mostPending', c.most, 'processing', c.processing,
                   'oldestMessage', queen.iso_ms(c.oldest_at), 'leased', c.leased, 'leases', h.holders) order by c.cell), '[]'))
      into answer
      from cells c
      left join lateral (
           select json_agg(json_build_object('consumerGroup', k.grp, 'leaseId', coalesce(st.lease_text, st.lease::text),
                                             'expiresAt', queen.iso_ms(st.lease_until)) order by k.grp) as holders
             from leased x
            cross join unnest(x.consumers) u(consumer)
             join queen.consumer_stats k on k.consumer = u.consumer
            cross join lateral queen.latest_state(k.consumer) st
            where c.n = 1 and x.lane = c.lane and st.lease_until > v_now) h on c.n = 1 and c.leased > 0;
    return next;
end
$$;
