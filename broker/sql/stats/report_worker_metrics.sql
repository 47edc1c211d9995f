-- queen.report_worker_metrics: GET /api/v1/analytics/worker-metrics.
--
-- needs: time_range, throughput, worker_stats, round2, iso_s
-- called by  broker/src/api/monitoring/analytics.c
-- in         p_args: from, to
-- raises     QN001 for an invalid time
create or replace function queen.report_worker_metrics(p_args jsonb)
returns json
language plpgsql
set enable_hashjoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    r        record;
    v_n      int;
    v_points json;
    v_sum    json;
    v_queues json;
begin
    r := queen.time_range(p_args);
    perform queen.freshen_stats();
    select count(*), coalesce(json_agg(json_build_object(
               'timestamp', queen.iso_s(t.bucket), 'pushMessages', t.push_messages, 'popMessages', t.pop_messages,
               'ackMessages', t.ack_success + t.ack_failed, 'pushRequests', t.push_requests, 'popRequests', t.pop_requests,
               'ackRequests', t.ack_requests, 'jobsDone', t.jobs, 'pushPerSecond', queen.round2(t.push_messages / r.seconds),
               'popPerSecond', queen.round2(t.pop_messages / r.seconds),
               'ackPerSecond', queen.round2((t.ack_success + t.ack_failed) / r.seconds),
               'avgEventLoopLagMs', queen.round2(t.loop_us / 1000), 'maxEventLoopLagMs', queen.round2(t.loop_max_us / 1000.0),
               'avgFreeSlots', queen.round2(t.free), 'minFreeSlots', t.free_min, 'dbConnections', t.connections,
               'avgJobQueueSize', queen.round2(t.jobs_waiting), 'maxJobQueueSize', t.jobs_waiting_max, 'backoffSize', 0,
               'avgLagMs', queen.round2(t.lag_us / 1000), 'maxLagMs', queen.round2(t.lag_max_us / 1000.0),
               'lagCount', t.pop_messages, 'dbErrors', t.db_errors, 'ackSuccess', t.ack_success, 'ackFailed', t.ack_failed,
               'dlqCount', t.dlq) order by t.bucket desc), '[]'),
           json_build_object(
               'totalPushMessages', coalesce(sum(t.push_messages), 0), 'totalPopMessages', coalesce(sum(t.pop_messages), 0),
               'totalAckMessages', coalesce(sum(t.ack_success + t.ack_failed), 0),
               'totalPushRequests', coalesce(sum(t.push_requests), 0), 'totalPopRequests', coalesce(sum(t.pop_requests), 0),
               'totalAckRequests', coalesce(sum(t.ack_requests), 0), 'totalDbErrors', coalesce(sum(t.db_errors), 0),
               'totalAckFailed', coalesce(sum(t.ack_failed), 0), 'totalDlq', coalesce(sum(t.dlq), 0),
               'pendingMessages', (select greatest(t.pending_messages, 0) from queen.stats t
                                    where t.stat_type = 'system' and t.stat_key = 'system'))
      into v_n, v_points, v_sum
      from queen.throughput(r.first, r.t_to, r.width, null) t;

    select coalesce(json_agg(json_build_object('queueName', q.queue_name, 'popCount', q.n,
                             'avgLagMs', queen.round2(q.lag_us / nullif(q.n, 0) / 1000.0),
                             'maxLagMs', queen.round2(q.lag_max_us / 1000.0)) order by q.queue_name), '[]')
      into v_queues
      from (select m.queue_name, sum(m.pop_messages) as n, sum(m.lag_us) as lag_us, max(m.lag_max_us) as lag_max_us
              from queen.queue_lag_metrics m
             where m.at >= r.first and m.at <= r.t_to group by 1 having sum(m.pop_messages) > 0) q;
    return json_build_object('timeRange', r.shown, 'bucketMinutes', r.minutes, 'pointCount', v_n, 'timeSeries', v_points,
                             'workers', queen.worker_stats(r.first, r.t_to), 'queues', v_queues, 'summary', v_sum);
end
$$;
