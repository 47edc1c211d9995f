-- queen.list_groups: GET /api/v1/consumer-groups.
--
-- needs: param_int, freshen_stats
-- called by  broker/src/api/admin/groups_read.c
-- in         p_args: queue, consumerGroup (only of this one), search (part of the name of the group or of the queue, in any case),
--            sort: lag (furthest behind first), limit, offset
-- out        an array, one entry per (group, queue) that has state, by name unless sort is given; rows as described in
--            broker/src/api/sql_endpoint.h. state follows the contract: Dead if nothing was ever acknowledged. activity is Unused only
--            if nothing was ever delivered. partitions are counted as for the queue: only those that were written to
-- raises     QN001 for an unknown sort
create or replace function queen.list_groups(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean, shape text,
               name text, queue varchar, members bigint, lagging bigint, lag bigint, lag_seconds bigint, state text, activity text, partitions bigint,
               subscription_mode text, subscription_timestamp timestamptz, subscribed_at timestamptz)
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
    v_now    timestamptz := clock_timestamp();
    v_sort   text := nullif(p_args ->> 'sort', '');
    v_limit  bigint := queen.param_int(p_args, 'limit', null); -- null: all
    v_offset bigint := greatest(queen.param_int(p_args, 'offset', 0), 0);
    v_search text := nullif(lower(p_args ->> 'search'), '');
begin
    if v_sort <> 'lag' then
        raise exception 'sort must be lag' using errcode = 'QN001';
    end if;
    perform queen.freshen_stats();
    status := 200;
    piece := '[';
    shape := '{"name":$1,"topics":[$2],"queueName":$2,"members":$3,"partitionsWithLag":$4,"totalLag":$5,"maxTimeLag":$6,'
             '"state":$7,"subscriptionMode":$10,"subscriptionTimestamp":$11,"subscriptionCreatedAt":$12,"queue":$2,'
             '"lagMessages":$5,"lagSeconds":$6,"activity":$8,"partitions":$9}';
    return next;
    return query
    select null::int, null::text, null::bytea, null::boolean, null::text,
           s.consumer_group, q.name, s.child_count, s.lagging, s.pending_messages, g.lag,
           case when g.lag > 300 then 'Lagging' when s.completed_messages > 0 then 'Stable' else 'Dead' end,
           case when g.lag > 300 then 'Lagging'
                when s.completed_messages > 0 or exists (select from queen.consumer_stats c
                                                          where c.queue_id = s.queue_id and c.grp = s.consumer_group and c.last_at is not null)
                then 'Stable' else 'Unused' end,
           least(s.child_count, coalesce(w.child_count, 0)),
           m.subscription_mode, m.subscription_timestamp, m.created_at
      from queen.stats s
      join queen.queues q on q.id = s.queue_id
      left join queen.stats w on w.queue_id = s.queue_id and w.stat_type = 'queue'
      cross join lateral (select coalesce(greatest(floor(date_part('epoch', v_now - s.oldest_pending_at)), 0), 0)::bigint) g(lag)
      left join (select distinct on (consumer_group, queue_name) * from queen.consumer_groups_metadata
                  order by consumer_group, queue_name, partition_name) m
        on m.consumer_group = s.consumer_group and m.queue_name = q.name
     where s.stat_type = 'group' and s.child_count > 0 and queen.may_see(p_args, q.name)
       and (p_args ->> 'queue' is null or q.name = p_args ->> 'queue')
       and (p_args ->> 'consumerGroup' is null or s.consumer_group = p_args ->> 'consumerGroup')
       and (v_search is null or strpos(lower(s.consumer_group), v_search) > 0 or strpos(lower(q.name), v_search) > 0)
     order by case when v_sort = 'lag' then g.lag end desc, case when v_sort = 'lag' then s.pending_messages end desc,
              s.consumer_group collate "C", q.name collate "C"
     limit case when v_limit < 0 then 0 else v_limit end offset v_offset;
    piece := ']';
    shape := null;
    return next;
end
$$;
