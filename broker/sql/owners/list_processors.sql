-- queen.list_processors: GET /api/v1/processors.
--
-- needs: latest_state, iso_ms, may_see
-- called by  broker/src/api/admin/owners.c
-- in         p_args: queue, consumerGroup: only these
-- out        {"groups":[...]}: every group that has owned a partition, by queue and group, with partitions, partitions that have an owner now,
--            its live processors with their partitions, the last change of an owner, and the ownership changes ever (sum of the epochs)
create or replace function queen.list_processors(p_args jsonb)
returns json
language sql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
as $$
    with owned as materialized (
        select q.name as queue, q.partitions, o.grp, o.owner, o.epoch, o.since, o.expires_at > clock_timestamp() and o.owner is not null as live
          from queen.owners o
          join queen.lanes l on l.num = o.lane
          join queen.queues q on q.id = l.queue_id
         where (p_args ->> 'queue' is null or q.name = p_args ->> 'queue')
           and (p_args ->> 'consumerGroup' is null or o.grp = p_args ->> 'consumerGroup')
           and queen.may_see(p_args, q.name)
    ), processors as (
        select k.queue, k.grp, json_agg(json_build_object('processor', k.owner, 'partitions', k.n) order by k.owner collate "C") as list
          from (select o.queue, o.grp, o.owner, count(*) as n from owned o where o.live group by 1, 2, 3) k group by 1, 2
    ), groups as (
        select o.queue, o.grp, max(o.partitions) as partitions, count(*) filter (where o.live) as owned, max(o.since) as changed_at,
               sum(o.epoch) as changes
          from owned o group by 1, 2
    )
    select json_build_object('groups', coalesce(json_agg(json_build_object(
               'queue', g.queue, 'consumerGroup', g.grp, 'partitions', g.partitions, 'owned', g.owned, 'changedAt', queen.iso_ms(g.changed_at),
               'changes', g.changes, 'processors', coalesce(p.list, '[]')) order by g.queue collate "C", g.grp collate "C"), '[]'))
      from groups g left join processors p on p.queue = g.queue and p.grp = g.grp
$$;
