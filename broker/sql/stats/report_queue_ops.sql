-- queen.report_queue_ops: GET /api/v1/analytics/queue-ops.
--
-- needs: time_range, parked_spans, queue_stats, round2, iso_s
-- called by  broker/src/api/monitoring/analytics.c
-- in         p_args: from, to, queue
-- out        per bucket and queue with activity (or with waiting consumers), oldest first
-- raises     QN001 for an invalid time
create or replace function queen.report_queue_ops(p_args jsonb)
returns json
language plpgsql stable
set enable_hashjoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    r       record;
    v_queue text := p_args ->> 'queue';
    v_out   json;
begin
    r := queen.time_range(p_args);
    with ops as (
        select date_bin(r.width, m.at, 'epoch') as bucket, m.queue_name, sum(m.push_requests) as push_requests,
               sum(m.push_messages) as push_messages, sum(m.pop_messages) as pop_messages, sum(m.pop_empty) as pop_empty,
               sum(m.ack_requests) as ack_requests, sum(m.ack_success) as ack_success, sum(m.ack_failed) as ack_failed,
               sum(m.transactions) as transactions, sum(m.lag_us) as lag_us, max(m.lag_max_us) as lag_max_us
          from queen.queue_lag_metrics m
         where m.at >= r.first and m.at <= r.t_to and (v_queue is null or m.queue_name = v_queue)
         group by 1, 2),
    changed as (
        select date_bin(r.width, c.at, 'epoch') as bucket, c.queue_name, sum(c.created) as created,
               sum(c.deleted) as deleted
          from queen.partition_changes c
         where c.at >= r.first and (v_queue is null or c.queue_name = v_queue)
         group by 1, 2),
    parked as ( -- consumer-seconds of each bucket, over its width
        select b.bucket, p.queue_name,
               sum(p.parked * extract(epoch from least(p.until, b.bucket + r.width) - greatest(p.since, b.bucket)))
                   / r.seconds as parked
          from queen.parked_spans(r.first, r.t_to, v_queue) p
         cross join lateral generate_series(date_bin(r.width, p.since, 'epoch'), p.until, r.width) b(bucket)
         where b.bucket < p.until
         group by 1, 2),
    points as (
        select bucket, queue_name, ops.push_requests, ops.push_messages, ops.pop_messages, ops.pop_empty, ops.ack_requests,
               ops.ack_success, ops.ack_failed, ops.transactions, ops.lag_us, ops.lag_max_us, changed.created,
               changed.deleted, parked.parked
          from ops full join changed using (bucket, queue_name) full join parked using (bucket, queue_name)),
    shown as (
        select p.*, f.partitions
                    - coalesce((select sum(c.created - c.deleted) from changed c
                                 where c.queue_name = p.queue_name and c.bucket > p.bucket), 0) as partition_count
          from points p left join queen.queue_stats() f on f.name = p.queue_name
         where p.bucket <= r.t_to)
    select json_build_object(
               'timeRange', r.shown, 'bucketMinutes', r.minutes,
               'series', coalesce(json_agg(json_build_object(
                   'bucket', queen.iso_s(s.bucket), 'queueName', s.queue_name,
                   'pushRequests', coalesce(s.push_requests, 0), 'pushMessages', coalesce(s.push_messages, 0),
                   'popMessages', coalesce(s.pop_messages, 0), 'popEmpty', coalesce(s.pop_empty, 0),
                   'ackRequests', coalesce(s.ack_requests, 0), 'ackSuccess', coalesce(s.ack_success, 0),
                   'ackFailed', coalesce(s.ack_failed, 0), 'transactions', coalesce(s.transactions, 0),
                   'partitionsCreated', coalesce(s.created, 0), 'partitionsDeleted', coalesce(s.deleted, 0),
                   'partitionCount', case when s.partition_count < 0 then 0 else s.partition_count end,
                   'avgLagMs', queen.round2((s.lag_us / nullif(s.pop_messages, 0) / 1000.0)::float8),
                   'maxLagMs', queen.round2(s.lag_max_us / 1000.0),
                   'pushPerSecond', queen.round2(coalesce(s.push_messages, 0) / r.seconds),
                   'popPerSecond', queen.round2(coalesce(s.pop_messages, 0) / r.seconds),
                   'ackPerSecond', queen.round2(coalesce(s.ack_success + s.ack_failed, 0) / r.seconds),
                   'emptyPerSecond', queen.round2(coalesce(s.pop_empty, 0) / r.seconds),
                   'parkedCount', queen.round2(s.parked::float8))
                   order by s.bucket, s.queue_name), '[]'),
               'queues', coalesce((select json_agg(distinct s2.queue_name order by s2.queue_name) from shown s2), '[]'))
      into v_out from shown s;
    return v_out;
end
$$;
