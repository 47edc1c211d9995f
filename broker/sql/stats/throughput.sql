-- queen.throughput: the throughput of the brokers, per bucket.
--
-- needs: round2, iso_s
-- called by  queen.report_status, queen.report_worker_metrics
-- in         p_queues: only messages of these queues (null: of all); gauges of workers and errors are always those of all queues
-- out        one row per bucket in which a broker reported
create or replace function queen.throughput(p_first timestamptz, p_to timestamptz, p_width interval, p_queues text[])
returns table (
    bucket timestamptz, push_messages bigint, pop_messages bigint, auto_acked bigint, ack_success bigint,
    ack_failed bigint, push_requests bigint, pop_requests bigint, ack_requests bigint, jobs bigint, lag_us float8,
    lag_max_us bigint, loop_us float8, loop_max_us bigint, free float8, free_min bigint, jobs_waiting float8,
    jobs_waiting_max bigint, connections bigint, db_errors bigint, dlq bigint)
language sql stable
set enable_hashjoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
    with w as (
        select date_bin(p_width, at, 'epoch') as bucket, sum(push_messages) as push_messages,
               sum(pop_messages) as pop_messages, sum(auto_acked) as auto_acked, sum(ack_success) as ack_success,
               sum(ack_failed) as ack_failed, sum(push_requests) as push_requests, sum(pop_requests) as pop_requests,
               sum(ack_requests) as ack_requests, sum(jobs_done) as jobs, sum(lag_us) as lag_us,
               max(lag_max_us) as lag_max_us, avg(loop_lag_us) as loop_us, max(loop_lag_max_us) as loop_max_us,
               avg(free_slots) as free, min(free_slots_min) as free_min, avg(job_queue) as jobs_waiting,
               max(job_queue_max) as jobs_waiting_max, sum(db_errors) as db_errors, sum(dlq) as dlq
          from queen.worker_metrics
         where at >= p_first and at <= p_to
         group by 1),
    c as ( -- connections: each worker's average, then their sum
        select bucket, sum(n) as connections
          from (select date_bin(p_width, at, 'epoch') as bucket, avg(db_connections) as n from queen.worker_metrics
                 where at >= p_first and at <= p_to group by 1, hostname, worker_id, pid) per
         group by 1),
    q as (
        select date_bin(p_width, at, 'epoch') as bucket, sum(push_messages) as push_messages,
               sum(pop_messages) as pop_messages, sum(auto_acked) as auto_acked, sum(ack_success) as ack_success,
               sum(ack_failed) as ack_failed, sum(push_requests) as push_requests, sum(pop_requests) as pop_requests,
               sum(ack_requests) as ack_requests, sum(lag_us) as lag_us, max(lag_max_us) as lag_max_us
          from queen.queue_lag_metrics
         where p_queues is not null and queue_name = any (p_queues) and at >= p_first and at <= p_to
         group by 1)
    select bucket, f.push_messages::bigint, f.pop_messages::bigint, f.auto_acked::bigint, f.ack_success::bigint,
           f.ack_failed::bigint, f.push_requests::bigint, f.pop_requests::bigint, f.ack_requests::bigint, w.jobs::bigint,
           coalesce(f.lag_us / nullif(f.pop_messages, 0), 0)::float8, f.lag_max_us::bigint, w.loop_us::float8,
           w.loop_max_us, w.free, w.free_min, w.jobs_waiting, w.jobs_waiting_max, round(c.connections)::bigint,
           w.db_errors::bigint, w.dlq::bigint
      from w join c using (bucket) left join q using (bucket)
     cross join lateral (
           select w.push_messages, w.pop_messages, w.auto_acked, w.ack_success, w.ack_failed, w.push_requests,
                  w.pop_requests, w.ack_requests, w.lag_us, w.lag_max_us
            where p_queues is null
           union all
           select coalesce(q.push_messages, 0), coalesce(q.pop_messages, 0), coalesce(q.auto_acked, 0),
                  coalesce(q.ack_success, 0), coalesce(q.ack_failed, 0), coalesce(q.push_requests, 0),
                  coalesce(q.pop_requests, 0), coalesce(q.ack_requests, 0), coalesce(q.lag_us, 0),
                  coalesce(q.lag_max_us, 0)
            where p_queues is not null) f
$$;
