-- queen.list_groups: GET /api/v1/consumer-groups.
--
-- needs: freshen_stats
-- called by  broker/src/api/groups_read.c
-- out        an array, one entry per (group, queue) that has state, by name; rows as described in broker/src/api/sql_endpoint.h
create or replace function queen.list_groups(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean, shape text,
               name text, queue varchar, members bigint, lagging bigint, lag bigint, lag_seconds bigint, state text,
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
    v_now timestamptz := clock_timestamp();
begin
    perform queen.freshen_stats();
    status := 200;
    piece := '[';
    shape := '{"name":$1,"topics":[$2],"queueName":$2,"members":$3,"partitionsWithLag":$4,"totalLag":$5,"maxTimeLag":$6,'
             '"state":$7,"subscriptionMode":$8,"subscriptionTimestamp":$9,"subscriptionCreatedAt":$10,"queue":$2,'
             '"lagMessages":$5,"lagSeconds":$6,"partitions":$3}';
    return next;
    return query
    select null::int, null::text, null::bytea, null::boolean, null::text,
           s.consumer_group, q.name, s.child_count, s.lagging, s.pending_messages, g.lag,
           case when g.lag > 300 then 'Lagging' when s.completed_messages > 0 then 'Stable' else 'Dead' end,
           m.subscription_mode, m.subscription_timestamp, m.created_at
      from queen.stats s
      join queen.queues q on q.id = s.queue_id
      cross join lateral (select coalesce(greatest(floor(date_part('epoch', v_now - s.oldest_pending_at)), 0), 0)::bigint) g(lag)
      left join (select distinct on (consumer_group, queue_name) * from queen.consumer_groups_metadata
                  order by consumer_group, queue_name, partition_name) m
        on m.consumer_group = s.consumer_group and m.queue_name = q.name
     where s.stat_type = 'group' and s.child_count > 0
     order by s.consumer_group collate "C", q.name collate "C";
    piece := ']';
    shape := null;
    return next;
end
$$;
