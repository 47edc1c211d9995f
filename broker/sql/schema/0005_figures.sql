-- Maintained figures: what status pages show, kept up by a pass that looks at lanes that changed (queen.count_lanes).
--
-- queen.lane_stats and queen.consumer_stats remember what the pass last saw of a lane and of a consumer, so that sums
-- can be kept by difference.  Only the pass writes here; it rewrites a table that has grown much larger than its
-- contents, by TRUNCATE, which no open snapshot holds back.
create table queen.lane_stats (
    lane       bigint primary key,
    queue_id   uuid not null,
    first_seq  bigint not null,          -- of the oldest message; next_seq when there is none
    next_seq   bigint not null,          -- 1 when nothing was ever written
    tail_seq   bigint not null,          -- start of the last segment: the next probe begins there
    waiting    bigint not null,          -- some group has not consumed them
    processing bigint not null,          -- of these, under a lease
    dead       bigint not null,          -- dead letters, one per message and group
    newest_at  timestamptz,
    oldest_at  timestamptz               -- of the first that waits
) with (fillfactor = 70);
create index lane_stats_oldest on queen.lane_stats (queue_id, oldest_at) where oldest_at is not null;

create table queen.consumer_stats (
    consumer    bigint primary key,
    lane        bigint not null,
    queue_id    uuid not null,
    grp         text not null,
    ver         bigint not null,
    cursor_seq  bigint not null,
    lag         bigint not null,         -- messages behind the cursor that are still there
    consumed    bigint not null,
    leased_to   bigint,                  -- last message under the lease
    lease_until timestamptz,             -- null when there is none, or it has run out
    oldest_at   timestamptz              -- of the first behind the cursor
) with (fillfactor = 70);
create index consumer_stats_lane on queen.consumer_stats (lane);
create index consumer_stats_oldest on queen.consumer_stats (queue_id, grp, oldest_at) where oldest_at is not null;
create index consumer_stats_lease on queen.consumer_stats (lease_until) where lease_until is not null;

-- One row: how far the pass has come.
create table queen.stats_pass (
    one          boolean primary key default true check (one),
    seen         pg_snapshot,             -- of the last look into the change feed; null: count everything anew
    emptied      bigint not null default 0,
    blocks_a     bigint not null default 0, -- sizes of the slots of consumer states at that look
    blocks_b     bigint not null default 0,
    blocks_feed  bigint not null default 0, -- and of the feed, both slots
    passed_at    timestamptz,
    reconciled_at timestamptz,
    reconciled_to bigint not null default 0, -- the lane up to which the round of recounts has come
    rewritten_at timestamptz
);
-- A database that has lanes already is counted from scratch once.
insert into queen.stats_pass (seen)
select case when not exists (select from queen.lanes) then pg_current_snapshot() end;

-- Sums: stat_type 'queue' (key: the queue's id), 'group' (queue's id, a slash, the group) and 'system' (key: system).
create table queen.stats (
    stat_type               varchar(20) not null,
    stat_key                text not null,
    queue_id                uuid,
    partition_id            uuid,
    consumer_group          text,
    child_count             bigint not null default 0, -- queue: partitions ever written to; group: partitions it has state for
    total_messages          bigint not null default 0, -- stored
    pending_messages        bigint not null default 0, -- queue: not consumed by some group, without those under lease; group: lag
    processing_messages     bigint not null default 0,
    completed_messages      bigint not null default 0, -- stored and consumed; group and system: ever consumed
    dead_letter_messages    bigint not null default 0,
    oldest_pending_at       timestamptz,
    newest_message_at       timestamptz,
    avg_lag_seconds         double precision,
    max_lag_seconds         double precision,
    median_lag_seconds      double precision,
    avg_offset_lag          double precision,
    max_offset_lag          bigint,
    ingested_per_second     double precision,
    processed_per_second    double precision,
    prev_total_messages     bigint,
    prev_completed_messages bigint,
    prev_snapshot_at        timestamptz,
    last_scanned_at         timestamptz,
    last_scanned_message_id uuid,
    last_computed_at        timestamptz,
    ever_pushed             bigint not null default 0,
    ever_consumed           bigint not null default 0,
    ever_dead               bigint not null default 0,
    lagging                 bigint not null default 0, -- group: partitions with something behind the cursor
    primary key (stat_type, stat_key)
) with (fillfactor = 70);
create index stats_queue on queen.stats (queue_id);
insert into queen.stats (stat_type, stat_key) values ('system', 'system');

-- Per minute: what came and what was consumed, of the system and of queues where something happened.
create table queen.stats_history (
    stat_type            varchar(20) not null,
    stat_key             text not null,
    bucket_time          timestamptz not null,
    total_messages       bigint not null default 0,
    pending_messages     bigint not null default 0,
    processing_messages  bigint not null default 0,
    completed_messages   bigint not null default 0,
    dead_letter_messages bigint not null default 0,
    messages_ingested    bigint not null default 0,
    messages_processed   bigint not null default 0,
    max_lag_seconds      double precision,
    primary key (stat_type, stat_key, bucket_time)
) with (fillfactor = 80);
create index stats_history_time on queen.stats_history (bucket_time);

-- Traces: events that clients attach to messages.  They go with the message.
create table queen.message_traces (
    id             uuid primary key default gen_random_uuid(),
    message_id     uuid not null,
    partition_id   uuid not null,
    transaction_id varchar(255) not null,
    consumer_group varchar(255) not null default '__QUEUE_MODE__',
    event_type     varchar(100) not null default 'info',
    data           jsonb not null,
    created_at     timestamptz not null default clock_timestamp(),
    worker_id      text,
    lane           bigint not null,
    seq            bigint not null
);
create index message_traces_lane on queen.message_traces (lane, seq);
create table queen.message_trace_names (
    trace_id   uuid not null references queen.message_traces (id) on delete cascade,
    trace_name text not null,
    primary key (trace_id, trace_name)
);
create index message_trace_names_name on queen.message_trace_names (trace_name);
