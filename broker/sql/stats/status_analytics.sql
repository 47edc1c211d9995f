-- queen.status_analytics: GET /api/v1/status/analytics.
--
-- needs: freshen_stats, param_time, iso_ms
-- called by  broker/src/api/monitoring/status_queues.c
-- in         p_args: interval (minute, 5minutes, 15minutes, hour, day), from (24 h ago), to (now), queue, namespace, task
-- out        per bucket, oldest first, including empty buckets: messages pushed and processed; pending messages, dead letters and the longest wait
--            at its last record, or null without one. A queue without activity is not recorded, so of a selection these are only given
--            for one queue. Of all queues also the most retries that waited and the most messages in the file buffers
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
    v_unit text := case when p_args ->> 'interval' in ('minute', '5minutes', '15minutes', 'hour', 'day') then p_args ->> 'interval' else 'hour' end;
    v_width interval := case v_unit when '5minutes' then '5 minutes' when '15minutes' then '15 minutes' else '1 ' || v_unit end;
    v_to   timestamptz := queen.param_time(p_args, 'to', clock_timestamp());
    v_from timestamptz := queen.param_time(p_args, 'from', v_to - interval '24 hours');
    v_one  boolean := coalesce(p_args ->> 'queue', p_args ->> 'namespace', p_args ->> 'task') is not null;
begin
    if not (isfinite(v_from) and isfinite(v_to))
       or extract(epoch from v_to - v_from) / extract(epoch from v_width) > 100000 then
        raise exception using errcode = 'QN001', message = 'from and to are too far apart for this interval';
    end if;
    perform queen.freshen_stats();
    return (
        with rows as (
            select h.stat_key, h.bucket_time, h.messages_ingested, h.messages_processed, h.pending_messages, h.processing_messages, h.dead_letter_messages,
                   h.max_lag_seconds
              from queen.stats_history h
             where not v_one and h.stat_type = 'system' and h.stat_key = 'system'
               and h.bucket_time >= date_bin(v_width, v_from, 'epoch') and h.bucket_time <= v_to
             union all
            select h.stat_key, h.bucket_time, h.messages_ingested, h.messages_processed, h.pending_messages, h.processing_messages, h.dead_letter_messages,
                   h.max_lag_seconds
              from queen.queues q
              join queen.stats_history h on h.stat_type = 'queue' and h.stat_key = q.id::text
             where v_one and (p_args ->> 'queue' is null or q.name = p_args ->> 'queue')
               and (p_args ->> 'namespace' is null or q.namespace = p_args ->> 'namespace')
               and (p_args ->> 'task' is null or q.task = p_args ->> 'task')
               and h.bucket_time >= date_bin(v_width, v_from, 'epoch') and h.bucket_time <= v_to
        ), counted as (
            select date_bin(v_width, r.bucket_time, 'epoch') as bucket, sum(r.messages_ingested) as pushed, sum(r.messages_processed) as processed,
                   max(r.bucket_time) as last
              from rows r group by 1
        ), processes as (
            select date_bin(v_width, m.timestamp, 'epoch') as bucket, max((m.metrics #>> '{retries,waiting,max}')::numeric) as retries,
                   max((m.metrics #>> '{buffer,pending,max}')::numeric) as buffered
              from queen.system_metrics m
             where not v_one and m.timestamp >= date_bin(v_width, v_from, 'epoch') and m.timestamp <= v_to
             group by 1, m.hostname, m.port, m.worker_id
        ), gauges as ( -- every process counts the retries of all, and its own buffer
            select p.bucket, max(p.retries) as retries, sum(p.buffered) as buffered from processes p group by 1)
        select json_build_object(
                   'dataPoints', coalesce(json_agg(json_build_object(
                       'timestamp', queen.iso_ms(b.at), 'messages', coalesce(c.pushed, 0), 'processed', coalesce(c.processed, 0),
                       'pending', e.pending, 'deadLetter', e.dead, 'maxLagSeconds', e.lag, 'retries', g.retries, 'buffered', g.buffered)
                       order by b.at), '[]'),
                   'interval', v_unit, 'from', queen.iso_ms(v_from), 'to', queen.iso_ms(v_to))
          from generate_series(date_bin(v_width, v_from, 'epoch'), v_to, v_width) b(at)
          left join counted c on c.bucket = b.at
          left join gauges g on g.bucket = b.at
          left join lateral (
               select r.pending_messages + r.processing_messages as pending, r.dead_letter_messages as dead, r.max_lag_seconds as lag
                 from rows r where r.bucket_time = c.last and (not v_one or p_args ->> 'queue' is not null) limit 1) e on true);
end
$$;
