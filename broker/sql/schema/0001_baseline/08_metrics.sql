-- Metrics over time: counts of each broker per period, and per queue with activity in the period.
--
-- Rows are only inserted and are deleted by age (queen.trim_metrics).  `at` is the middle of the period; for values that are
-- sampled once it is the time of the sample.

create table queen.worker_metrics (
    id              uuid primary key,      -- of the report: a report that is sent twice counts once
    at              timestamptz not null,
    period_ms       int not null,
    hostname        text not null,
    worker_id       int not null,
    pid             int not null,
    push_requests   bigint not null,
    pop_requests    bigint not null,
    ack_requests    bigint not null,
    transactions    bigint not null,
    jobs_done       bigint not null,       -- requests of all kinds
    push_messages   bigint not null,       -- stored; without duplicates
    pop_messages    bigint not null,
    auto_acked      bigint not null,       -- those of pop_messages that were acknowledged on delivery
    ack_success     bigint not null,
    ack_failed      bigint not null,
    dlq             bigint not null,
    db_errors       bigint not null,
    lag_us          bigint not null,       -- time from stored to delivered, summed over pop_messages
    lag_max_us      bigint not null,
    loop_lag_us     bigint not null,       -- delay of the event loop: average and maximum
    loop_lag_max_us bigint not null,
    free_slots      double precision not null, -- unused connections to PostgreSQL: average and minimum
    free_slots_min  bigint not null,
    job_queue       double precision not null, -- operations that wait for a batch: average and maximum
    job_queue_max   bigint not null,
    db_connections  bigint not null
) with (autovacuum_vacuum_insert_scale_factor = 0.2);
create index worker_metrics_at on queen.worker_metrics (at);

-- Totals of queen.worker_metrics, one row per worker of a host.  They are never reduced.
create table queen.worker_metrics_summary (
    hostname      text not null,
    worker_id     int not null,
    push_requests bigint not null default 0,
    pop_requests  bigint not null default 0,
    ack_requests  bigint not null default 0,
    transactions  bigint not null default 0,
    push_messages bigint not null default 0,
    pop_messages  bigint not null default 0,
    ack_success   bigint not null default 0,
    ack_failed    bigint not null default 0,
    dlq           bigint not null default 0,
    db_errors     bigint not null default 0,
    updated_at    timestamptz not null default now(),
    primary key (hostname, worker_id)
) with (fillfactor = 50);

create table queen.queue_lag_metrics (
    at            timestamptz not null,
    period_ms     int not null,
    queue_name    text not null,
    push_requests bigint not null,
    push_messages bigint not null,
    pop_requests  bigint not null,
    pop_messages  bigint not null,
    pop_empty     bigint not null,
    auto_acked    bigint not null,
    ack_requests  bigint not null,
    ack_success   bigint not null,
    ack_failed    bigint not null,
    transactions  bigint not null,
    lag_us        bigint not null,
    lag_max_us    bigint not null
) with (autovacuum_vacuum_insert_scale_factor = 0.2);
create index queue_lag_metrics_at on queen.queue_lag_metrics (at);
create index queue_lag_metrics_queue on queen.queue_lag_metrics (queue_name, at);

-- Parked pops: one row when the number changes, and one per hour.  It is valid until the next row of the same queue and process, or
-- until the process stops reporting (queen.worker_metrics).
create table queen.queue_parked_replica (
    at         timestamptz not null,
    queue_name text not null,
    hostname   text not null,
    worker_id  int not null,
    pid        int not null,
    parked     int not null
) with (autovacuum_vacuum_insert_scale_factor = 0.2);
create index queue_parked_replica_at on queen.queue_parked_replica (at);
create index queue_parked_replica_queue on queen.queue_parked_replica (queue_name, at);

-- Partitions created and deleted, one row per statement and queue (trigger queen.note_partitions).
create table queen.partition_changes (
    at         timestamptz not null default clock_timestamp(),
    queue_name text not null,
    created    int not null,
    deleted    int not null
) with (autovacuum_vacuum_insert_scale_factor = 0.2);
create index partition_changes_at on queen.partition_changes (at);

create table queen.system_metrics (
    id           uuid primary key default gen_random_uuid(),
    timestamp    timestamptz not null,
    hostname     text not null,
    port         int not null,
    worker_id    text not null,
    sample_count int not null,
    metrics      jsonb not null
) with (autovacuum_vacuum_insert_scale_factor = 0.2);
create index system_metrics_timestamp on queen.system_metrics (timestamp);
