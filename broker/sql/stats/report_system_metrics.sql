-- queen.report_system_metrics: GET /api/v1/analytics/system-metrics.
--
-- needs: time_range, merge_gauges, iso_s
-- called by  broker/src/api/monitoring/analytics.c
-- in         p_args: from, to, hostname, workerId
-- out        per process (host, port, name): its gauges per bucket, oldest first
-- raises     QN001 for an invalid time
create or replace function queen.report_system_metrics(p_args jsonb)
returns json
language plpgsql stable
set enable_hashjoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    r     record;
    v_out json;
begin
    r := queen.time_range(p_args);
    with points as (
        select m.hostname, m.port, m.worker_id, date_bin(r.width, m.timestamp, 'epoch') as bucket,
               sum(m.sample_count) as samples,
               queen.merge_gauges(array_agg(m.metrics order by m.timestamp),
                                  array_agg(m.sample_count order by m.timestamp)) as metrics
          from queen.system_metrics m
         where m.timestamp >= r.first and m.timestamp <= r.t_to
           and (not p_args ? 'hostname' or m.hostname = p_args ->> 'hostname')
           and (not p_args ? 'workerId' or m.worker_id = p_args ->> 'workerId')
         group by 1, 2, 3, 4),
    replicas as (
        select p.hostname, p.port, p.worker_id,
               json_agg(json_build_object('timestamp', queen.iso_s(p.bucket), 'sampleCount', p.samples, 'metrics', p.metrics)
                        order by p.bucket) as series
          from points p group by 1, 2, 3)
    select json_build_object(
               'timeRange', r.shown,
               'replicas', coalesce(json_agg(json_build_object('hostname', s.hostname, 'port', s.port,
                                    'workerId', s.worker_id, 'timeSeries', s.series)
                                    order by s.hostname, s.port, s.worker_id), '[]'),
               'replicaCount', count(*), 'bucketMinutes', r.minutes,
               'pointCount', (select count(*) from points))
      into v_out from replicas s;
    return v_out;
end
$$;
