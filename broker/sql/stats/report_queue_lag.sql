-- queen.report_queue_lag: GET /api/v1/analytics/queue-lag.
--
-- needs: time_range, round2, iso_s
-- called by  broker/src/api/monitoring/analytics.c
-- in         p_args: from, to, queue
-- out        per queue and minute in which messages were delivered: how long they had waited; newest first
-- raises     QN001 for an invalid time
create or replace function queen.report_queue_lag(p_args jsonb)
returns json
language sql stable
set enable_hashjoin = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
    select coalesce(json_agg(json_build_object('queueName', m.queue_name, 'popCount', m.n,
                             'avgLagMs', queen.round2((m.lag_us / m.n / 1000.0)::float8),
                             'maxLagMs', queen.round2(m.lag_max_us / 1000.0), 'bucketTime', queen.iso_s(m.bucket))
                             order by m.bucket desc, m.queue_name), '[]')
      from (select q.queue_name, date_trunc('minute', q.at) as bucket, sum(q.pop_messages) as n, sum(q.lag_us) as lag_us,
                   max(q.lag_max_us) as lag_max_us
              from queen.time_range(p_args) r
              join queen.queue_lag_metrics q on q.at >= date_trunc('minute', r.t_from) and q.at <= r.t_to
             where not p_args ? 'queue' or q.queue_name = p_args ->> 'queue'
             group by 1, 2 having sum(q.pop_messages) > 0) m
$$;
