-- queen.get_overview: GET /api/v1/resources/overview.
--
-- needs: freshen_stats, iso_ms
-- called by  broker/src/api/admin/resources.c
-- out        counts of everything; total, completed, failed and deadLetter never decrease, even if messages are deleted;
--            failed is as old as the last report of the brokers (METRICS_AGGREGATE_INTERVAL_S)
create or replace function queen.get_overview(p_args jsonb)
returns json
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_sum queen.stats%rowtype;
    q     record;
    h     record;
begin
    perform queen.freshen_stats();
    select * into v_sum from queen.stats where stat_type = 'system' and stat_key = 'system';
    select (select count(*) from queen.queues) as queues,
           (select count(*) from (select distinct n.namespace from queen.queues n where n.namespace <> '') k) as namespaces,
           (select count(*) from (select distinct n.task from queen.queues n where n.task <> '') k) as tasks,
           avg(k.lag) as avg, percentile_cont(0.5) within group (order by k.lag) as median, max(k.lag) as max,
           min(k.lag) as min, avg(k.pending) as offset_avg, percentile_cont(0.5) within group (order by k.pending) as offset_median,
           min(k.pending) as offset_min, max(k.pending) as offset_max
      into q
      from (select s.pending_messages + s.processing_messages as pending,
                   greatest(date_part('epoch', v_now - s.oldest_pending_at), 0) as lag -- (extract returns numeric, which is slower)
              from queen.stats s where s.stat_type = 'queue') k;
    -- Whole minutes and the current one: since the start of the first.
    select coalesce(sum(t.messages_ingested), 0) as ingested, coalesce(sum(t.messages_processed), 0) as processed,
           extract(epoch from v_now - date_trunc('minute', v_now - interval '5 minutes'))::float8 as seconds
      into h
      from queen.stats_history t
     where t.stat_type = 'system' and t.stat_key = 'system'
       and t.bucket_time >= date_trunc('minute', v_now - interval '5 minutes');
    return json_build_object(
        'queues', q.queues, 'partitions', v_sum.child_count, 'namespaces', q.namespaces, 'tasks', q.tasks,
        'messages', json_build_object(
            'total', v_sum.ever_pushed, 'pending', greatest(v_sum.pending_messages, 0),
            'processing', v_sum.processing_messages, 'completed', v_sum.ever_consumed,
            'failed', (select coalesce(sum(w.ack_failed), 0) from queen.worker_metrics_summary w),
            'deadLetter', v_sum.ever_dead),
        'lag', json_build_object(
            'time', json_build_object('avg', coalesce(round(q.avg::numeric, 2), 0),
                                      'median', coalesce(round(q.median::numeric, 2), 0),
                                      'min', coalesce(round(q.min::numeric, 2), 0),
                                      'max', coalesce(round(q.max::numeric, 2), 0)),
            'offset', json_build_object('avg', coalesce(round(q.offset_avg, 2), 0), 'median', coalesce(round(q.offset_median::numeric, 2), 0),
                                        'min', coalesce(q.offset_min, 0),
                                        'max', coalesce(q.offset_max, 0))),
        'throughput', json_build_object('ingestedPerSecond', round((h.ingested / h.seconds)::numeric, 2),
                                        'processedPerSecond', round((h.processed / h.seconds)::numeric, 2)),
        'timestamp', queen.iso_ms(v_now),
        'statsAge', coalesce((select greatest(floor(extract(epoch from v_now - p.passed_at)), 0)::bigint
                                from queen.stats_pass p), -1));
end
$$;
