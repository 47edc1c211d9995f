-- queen.report_parked: GET /api/v1/analytics/queue-parked-replicas.
--
-- needs: time_range, parked_spans, round2, iso_s
-- called by  broker/src/api/monitoring/analytics.c
-- in         p_args: from, to, queue
-- out        long polls parked per queue and worker, averaged over each bucket, oldest first
-- raises     QN001 for an invalid time
create or replace function queen.report_parked(p_args jsonb)
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
        select b.bucket, p.queue_name, p.hostname, p.worker_id,
               sum(p.parked * extract(epoch from least(p.until, b.bucket + r.width) - greatest(p.since, b.bucket)))
                   / extract(epoch from r.width) as parked
          from queen.parked_spans(r.first, r.t_to, p_args ->> 'queue') p
         cross join lateral generate_series(date_bin(r.width, p.since, 'epoch'), p.until, r.width) b(bucket)
         where b.bucket < p.until
         group by 1, 2, 3, 4)
    select json_build_object(
               'timeRange', r.shown, 'bucketMinutes', r.minutes,
               'series', coalesce(json_agg(json_build_object(
                   'bucket', queen.iso_s(p.bucket), 'queueName', p.queue_name, 'hostname', p.hostname,
                   'workerId', p.worker_id, 'parkedCount', queen.round2(p.parked::float8))
                   order by p.bucket, p.queue_name, p.hostname, p.worker_id), '[]'),
               'replicas', coalesce((select json_agg(json_build_object('hostname', w.hostname, 'workerId', w.worker_id)
                                                     order by w.hostname, w.worker_id)
                                       from (select distinct hostname, worker_id from points) w), '[]'))
      into v_out from points p;
    return v_out;
end
$$;
