-- queen.report_status: GET /api/v1/status.
--
-- needs: time_range, throughput, worker_stats, queue_stats, round2, iso_s, latest_state
-- called by  broker/src/api/monitoring/analytics.c
-- in         p_args: from, to, queue, namespace, task
-- out        rows as described in broker/src/api/sql_endpoint.h; see docs/reference/api-analytics.md; errors and dead letters of the range,
--            current pending messages and leases
-- raises     QN001 for an invalid time
create or replace function queen.report_status(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean, shape text,
               id uuid, name varchar, namespace varchar, task varchar, partitions bigint, consumed bigint)
language plpgsql
set enable_hashjoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
set work_mem = '32MB'
as $$
#variable_conflict use_column
declare
    r        record;
    v_queues text[];  -- null: no filter
    v_points json;
    v_n      int;
    v_sum    record;
    v_now    record;
    v_lease  record;
    v_dead   record;
begin
    r := queen.time_range(p_args);
    if p_args ?| array['queue', 'namespace', 'task'] then
        select coalesce(array_agg(q.name), '{}') into v_queues from queen.queues q
         where (not p_args ? 'queue' or q.name = p_args ->> 'queue')
           and (not p_args ? 'namespace' or q.namespace = p_args ->> 'namespace')
           and (not p_args ? 'task' or q.task = p_args ->> 'task');
    end if;

    with s as (
        select date_bin(r.width, m.timestamp, 'epoch') as bucket,
               avg((m.metrics #>> '{cpu,user_us,avg}')::float8) / 100 as cpu_user,
               avg((m.metrics #>> '{cpu,system_us,avg}')::float8) / 100 as cpu_system,
               avg((m.metrics #>> '{memory,rss_bytes,avg}')::float8) / 1048576 as rss,
               avg((m.metrics #>> '{database,pool_active,avg}')::float8) as active,
               avg((m.metrics #>> '{database,pool_idle,avg}')::float8) as idle,
               avg((m.metrics #>> '{database,pool_size,avg}')::float8) as size
          from queen.system_metrics m where m.timestamp >= r.first and m.timestamp <= r.t_to group by 1)
    select count(*), coalesce(json_agg(json_build_object(
               'timestamp', queen.iso_s(t.bucket), 'ingested', t.push_messages,
               'processed', t.ack_success + t.auto_acked, 'popMessages', t.pop_messages,
               'ingestedPerSecond', queen.round2(t.push_messages / r.seconds),
               'processedPerSecond', queen.round2((t.ack_success + t.auto_acked) / r.seconds),
               'popPerSecond', queen.round2(t.pop_messages / r.seconds),
               'avgLagMs', queen.round2(t.lag_us / 1000), 'maxLagMs', queen.round2(t.lag_max_us / 1000.0),
               'avgEventLoopLagMs', queen.round2(t.loop_us / 1000), 'maxEventLoopLagMs', queen.round2(t.loop_max_us / 1000.0),
               'minFreeSlots', t.free_min, 'dbErrors', t.db_errors, 'ackFailed', t.ack_failed, 'dlqCount', t.dlq,
               'queenCpuUserPct', round(s.cpu_user::numeric, 2), 'queenCpuSysPct', round(s.cpu_system::numeric, 2),
               'queenRssMb', round(s.rss::numeric, 1), 'dbPoolActive', round(s.active::numeric, 1),
               'dbPoolIdle', round(s.idle::numeric, 1), 'dbPoolSize', round(s.size::numeric, 1))
               order by t.bucket desc), '[]')
      into v_n, v_points
      from queen.throughput(r.first, r.t_to, r.width, v_queues) t left join s using (bucket);

    select coalesce(sum(t.push_messages), 0) as pushed, coalesce(sum(t.pop_messages), 0) as popped,
           coalesce(sum(t.ack_success + t.auto_acked), 0) as done, coalesce(sum(t.ack_success), 0) as acked,
           coalesce(sum(t.ack_failed), 0) as failed, coalesce(sum(t.dlq), 0) as dlq,
           coalesce(sum(t.db_errors), 0) as db_errors, coalesce(sum(t.push_requests), 0) as push_requests,
           coalesce(sum(t.pop_requests), 0) as pop_requests, coalesce(sum(t.ack_requests), 0) as ack_requests
      into v_sum from queen.throughput(r.first, r.t_to, r.width, v_queues) t;
    if v_queues is not null then -- workers count dead letters of all queues together; stored ones have their queue
        select count(*) into v_sum.dlq
          from queen.dead_letter_queue d join queen.lanes l on l.num = d.lane join queen.queues q on q.id = l.queue_id
         where d.failed_at >= r.first and d.failed_at <= r.t_to and q.name = any (v_queues);
    end if;

    perform queen.freshen_stats();
    -- The sum of all queues is stored.
    if v_queues is null then
        select greatest(t.pending_messages, 0) as pending, t.dead_letter_messages as dead into v_now
          from queen.stats t where t.stat_type = 'system' and t.stat_key = 'system';
    else
        select coalesce(sum(f.pending), 0)::bigint as pending, coalesce(sum(f.dead_letter), 0)::bigint as dead into v_now
          from unnest(v_queues) n(queue) cross join lateral queen.queue_stats(n.queue) f;
    end if;

    select count(*) as active, count(distinct c.lane) as lanes, coalesce(sum(st.batch_size), 0) as size,
           coalesce(sum(st.acked), 0) as acked
      into v_lease
      from queen.consumer_stats c
      join queen.queues q on q.id = c.queue_id and (v_queues is null or q.name = any (v_queues))
     cross join lateral queen.latest_state(c.consumer) st
     where c.lease_until > clock_timestamp() and st.lease_until > clock_timestamp();

    -- Of the newest dead letters: their total is stored, their errors are not.
    select count(distinct n.partition_id) as partitions,
           (select coalesce(json_agg(json_build_object('error', e.error, 'count', e.n) order by e.n desc, e.error), '[]')
              from (select k.error, count(*) as n
                      from (select left(d.error_message, 200) as error from queen.dead_letter_queue d
                              join queen.lanes l on l.num = d.lane join queen.queues q on q.id = l.queue_id
                             where v_queues is null or q.name = any (v_queues)
                             order by d.failed_at desc limit 1000) k
                     group by 1 order by n desc, 1 limit 5) e) as errors
      into v_dead
      from (select d.partition_id from queen.dead_letter_queue d
              join queen.lanes l on l.num = d.lane join queen.queues q on q.id = l.queue_id
             where v_queues is null or q.name = any (v_queues)
             order by d.failed_at desc limit 1000) n;

    status := 200;
    piece := left(json_build_object(
        'timeRange', r.shown, 'bucketMinutes', r.minutes, 'pointCount', v_n, 'throughput', v_points,
        'messages', json_build_object(
            'total', v_sum.pushed, 'pending', v_now.pending, 'processing', 0, 'completed', v_sum.done,
            'failed', v_sum.failed, 'deadLetter', v_sum.dlq,
            'requests', json_build_object('push', v_sum.push_requests, 'pop', v_sum.pop_requests, 'ack', v_sum.ack_requests),
            'batchEfficiency', json_build_object(
                'push', queen.round2((v_sum.pushed / nullif(v_sum.push_requests, 0))::float8),
                'pop', queen.round2((v_sum.popped / nullif(v_sum.pop_requests, 0))::float8),
                'ack', queen.round2((v_sum.acked / nullif(v_sum.ack_requests, 0))::float8))),
        'leases', json_build_object('active', v_lease.active, 'partitionsWithLeases', v_lease.lanes,
                                    'totalBatchSize', v_lease.size, 'totalAcked', v_lease.acked),
        'deadLetterQueue', json_build_object('totalMessages', v_now.dead, 'affectedPartitions', v_dead.partitions,
                                             'topErrors', v_dead.errors),
        'workers', queen.worker_stats(r.first, r.t_to),
        'errors', json_build_object('dbErrors', v_sum.db_errors, 'ackFailed', v_sum.failed, 'dlqMessages', v_sum.dlq),
        'statsAge', coalesce((select floor(greatest(extract(epoch from clock_timestamp() - w.at) - w.period_ms / 2000.0, 0))
                                from queen.worker_metrics w order by w.at desc limit 1), 0)::bigint)::text, -1)
        || ',"queues":[';
    shape := '{"id":$1,"name":$2,"namespace":$3,"task":$4,"partitions":$5,"totalConsumed":$6}';
    return next;
    return query
    select null::int, null::text, null::bytea, null::boolean, null::text,
           q.id, q.name, q.namespace, q.task, s.child_count, s.ever_consumed
      from queen.queues q
      join queen.stats s on s.queue_id = q.id and s.stat_type = 'queue'
     where s.total_messages > 0 and (v_queues is null or q.name = any (v_queues))
     order by q.name collate "C";
    piece := ']}';
    shape := null;
    return next;
end
$$;
