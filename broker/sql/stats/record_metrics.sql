-- queen.record_metrics: store the counters of one broker for one period.
--
-- called by  broker/src/broker/stats/record.c (call "record_metrics"), once per broker and METRICS_AGGREGATE_INTERVAL_S
-- in         p_id: of this batch; p_worker: the counters of the worker, in the order of put_worker() in record.c;
--            p_system: gauges of the process as JSON, from one of its brokers only, else null; then per queue
--            with activity its counters; then queues whose number of parked consumers is reported
-- out        PostgreSQL's time, from which the broker computes the offset of its own clock; a repeated p_id changes nothing
-- locks      the worker's row of worker_metrics_summary
create or replace function queen.record_metrics(
    p_id uuid, p_hostname text, p_worker_id int, p_pid int, p_period_ms int, p_worker bigint[],
    p_port int, p_process text, p_samples int, p_system text,
    p_queue text[], p_push_requests bigint[], p_push_messages bigint[], p_pop_requests bigint[], p_pop_messages bigint[],
    p_pop_empty bigint[], p_auto_acked bigint[], p_ack_requests bigint[], p_ack_success bigint[], p_ack_failed bigint[],
    p_transactions bigint[], p_lag_us bigint[], p_lag_max_us bigint[],
    p_parked_queue text[], p_parked int[])
returns timestamptz
language plpgsql
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_at  timestamptz := v_now - p_period_ms * interval '0.5 milliseconds';
    w     bigint[] := p_worker;
    v_retries bigint;
begin
    insert into queen.worker_metrics
    values (p_id, v_at, p_period_ms, p_hostname, p_worker_id, p_pid, w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9],
            w[10], w[11], w[12], w[13], w[14], w[15], w[16], w[17] / 1000.0, w[18], w[19] / 1000.0, w[20], w[21])
        on conflict (id) do nothing;
    if not found then
        return v_now;
    end if;

    insert into queen.worker_metrics_summary as s
           (hostname, worker_id, push_requests, pop_requests, ack_requests, transactions, push_messages, pop_messages,
            ack_success, ack_failed, dlq, db_errors)
    values (p_hostname, p_worker_id, w[1], w[2], w[3], w[4], w[6], w[7], w[9], w[10], w[11], w[12])
        on conflict (hostname, worker_id) do update
       set push_requests = s.push_requests + excluded.push_requests,
           pop_requests = s.pop_requests + excluded.pop_requests,
           ack_requests = s.ack_requests + excluded.ack_requests,
           transactions = s.transactions + excluded.transactions,
           push_messages = s.push_messages + excluded.push_messages,
           pop_messages = s.pop_messages + excluded.pop_messages,
           ack_success = s.ack_success + excluded.ack_success,
           ack_failed = s.ack_failed + excluded.ack_failed,
           dlq = s.dlq + excluded.dlq,
           db_errors = s.db_errors + excluded.db_errors,
           updated_at = v_now;

    insert into queen.queue_lag_metrics
    select v_at, p_period_ms, u.*
      from unnest(p_queue, p_push_requests, p_push_messages, p_pop_requests, p_pop_messages, p_pop_empty, p_auto_acked,
                  p_ack_requests, p_ack_success, p_ack_failed, p_transactions, p_lag_us, p_lag_max_us) u;
    insert into queen.queue_parked_replica
    select v_now, u.name, p_hostname, p_worker_id, p_pid, u.parked from unnest(p_parked_queue, p_parked) u(name, parked);
    if p_system is not null then
        select count(*) into v_retries from (select from queen.scheduled s where s.kind = 'r' limit 100000) r;
        insert into queen.system_metrics (timestamp, hostname, port, worker_id, sample_count, metrics)
        values (v_at, p_hostname, p_port, p_process, p_samples,
                p_system::jsonb || jsonb_build_object('retries', jsonb_build_object('waiting', jsonb_build_object(
                    'avg', v_retries, 'min', v_retries, 'max', v_retries, 'last', v_retries))));
    end if;
    return v_now;
end
$$;
