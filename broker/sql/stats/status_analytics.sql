-- queen.status_analytics: GET /api/v1/status/analytics.
--
-- needs: freshen_stats, param_time, iso_ms
-- called by  broker/src/api/monitoring/status_queues.c
-- in         p_args: interval (minute, hour, day), from (24 h ago), to (now), queue, namespace, task
-- out        messages pushed per bucket, oldest first, including empty buckets
-- raises     QN001 for a range of more than 100,000 buckets or invalid times
create or replace function queen.status_analytics(p_args jsonb)
returns json
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    v_unit text := case when p_args ->> 'interval' in ('minute', 'hour', 'day') then p_args ->> 'interval' else 'hour' end;
    v_to   timestamptz := queen.param_time(p_args, 'to', clock_timestamp());
    v_from timestamptz := queen.param_time(p_args, 'from', v_to - interval '24 hours');
    v_one  boolean := coalesce(p_args ->> 'queue', p_args ->> 'namespace', p_args ->> 'task') is not null;
begin
    if not (isfinite(v_from) and isfinite(v_to))
       or extract(epoch from v_to - v_from) / extract(epoch from ('1 ' || v_unit)::interval) > 100000 then
        raise exception using errcode = 'QN001', message = 'from and to are too far apart for this interval';
    end if;
    perform queen.freshen_stats();
    return (
        with counted as (
            select date_trunc(v_unit, h.bucket_time, 'UTC') as bucket, sum(h.messages_ingested) as messages
              from queen.stats_history h
             where not v_one and h.stat_type = 'system' and h.stat_key = 'system'
               and h.bucket_time >= date_trunc(v_unit, v_from, 'UTC') and h.bucket_time <= v_to
             group by 1
             union all
            select date_trunc(v_unit, h.bucket_time, 'UTC'), sum(h.messages_ingested)
              from queen.queues q
              join queen.stats_history h on h.stat_type = 'queue' and h.stat_key = q.id::text
             where v_one and (p_args ->> 'queue' is null or q.name = p_args ->> 'queue')
               and (p_args ->> 'namespace' is null or q.namespace = p_args ->> 'namespace')
               and (p_args ->> 'task' is null or q.task = p_args ->> 'task')
               and h.bucket_time >= date_trunc(v_unit, v_from, 'UTC') and h.bucket_time <= v_to
             group by 1)
        select json_build_object(
                   'dataPoints', coalesce(json_agg(json_build_object(
                       'timestamp', queen.iso_ms(b.at), 'messages', coalesce(c.messages, 0)) order by b.at), '[]'),
                   'interval', v_unit, 'from', queen.iso_ms(v_from), 'to', queen.iso_ms(v_to))
          from generate_series(date_trunc(v_unit, v_from, 'UTC'), v_to, ('1 ' || v_unit)::interval) b(at)
          left join counted c on c.bucket = b.at);
end
$$;
