-- queen.worker_stats: the workers that reported in a time range, in the format of reports.
--
-- needs: round2, iso_s
-- called by  queen.report_status, queen.report_worker_metrics
-- out        an array of objects, by host and worker; a restarted worker counts as one
create or replace function queen.worker_stats(p_first timestamptz, p_to timestamptz)
returns json
language sql stable
set enable_hashjoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
    select coalesce(json_agg(json_build_object(
               'hostname', g.hostname, 'workerId', g.worker_id,
               'avgEventLoopLagMs', queen.round2(g.loop_us / 1000.0), 'maxEventLoopLagMs', queen.round2(g.loop_max_us / 1000.0),
               'freeSlots', g.free_slots, 'dbConnections', g.db_connections, 'jobQueueSize', g.job_queue, 'backoffSize', 0,
               'messagesProcessed', g.messages, 'lastSeen', queen.iso_s(g.seen)) order by g.hostname, g.worker_id), '[]')
      from (select w.hostname, w.worker_id, avg(w.loop_lag_us)::float8 as loop_us, max(w.loop_lag_max_us) as loop_max_us,
                   (array_agg(w.free_slots_min order by w.at desc))[1] as free_slots,
                   (array_agg(w.db_connections order by w.at desc))[1] as db_connections,
                   round((array_agg(w.job_queue order by w.at desc))[1]) as job_queue,
                   sum(w.push_messages + w.pop_messages + w.ack_success)::bigint as messages, max(w.at) as seen
              from queen.worker_metrics w
             where w.at >= p_first and w.at <= p_to
             group by 1, 2) g
$$;
