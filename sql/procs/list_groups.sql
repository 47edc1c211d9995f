-- queen.list_groups: GET /api/v1/consumer-groups.
--
-- needs: freshen_stats, json_ms
-- called by  src/api/groups_read.c
-- out        an array, one entry per (group, queue) that has state, by name
create or replace function queen.list_groups(p_args jsonb)
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
    v_now timestamptz := clock_timestamp();
begin
    perform queen.freshen_stats();
    return (
        -- Put together as text: twice as fast as by functions of JSON.
        select '[' || coalesce(string_agg(concat(
                   '{"name":', to_json(s.consumer_group), ',"topics":[', n.queue, '],"queueName":', n.queue,
                   ',"members":', s.child_count, ',"partitionsWithLag":', s.lagging, ',"totalLag":', s.pending_messages,
                   ',"maxTimeLag":', g.lag,
                   ',"state":"', case when g.lag > 300 then 'Lagging' when s.completed_messages > 0 then 'Stable'
                                      else 'Dead' end,
                   '","subscriptionMode":', coalesce(to_json(m.subscription_mode)::text, 'null'),
                   ',"subscriptionTimestamp":', queen.json_ms(m.subscription_timestamp),
                   ',"subscriptionCreatedAt":', queen.json_ms(m.created_at),
                   ',"queue":', n.queue, ',"lagMessages":', s.pending_messages, ',"lagSeconds":', g.lag,
                   ',"partitions":', s.child_count, '}'), ',' order by s.consumer_group, q.name), '') || ']'
          from queen.stats s
          join queen.queues q on q.id = s.queue_id
          cross join lateral (select to_json(q.name)::text as queue offset 0) n
          cross join lateral (select coalesce(greatest(floor(date_part('epoch', v_now - s.oldest_pending_at)), 0), 0)::bigint) g(lag)
          left join (select distinct on (consumer_group, queue_name) * from queen.consumer_groups_metadata
                      order by consumer_group, queue_name, partition_name) m
            on m.consumer_group = s.consumer_group and m.queue_name = q.name
         where s.stat_type = 'group' and s.child_count > 0);
end
$$;
