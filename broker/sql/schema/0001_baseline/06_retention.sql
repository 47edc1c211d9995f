-- Retention and eviction: when messages become too old, and how many were removed.
--
-- A push writes nothing here.  queen.note_ages reads the change feed to find lanes of queues with an age limit that got messages.

-- One row per lane with messages that will become too old.  A time may be too early but not too late, except for messages that
-- wait for their consumers: see queen.sweep.  Null: nothing of this kind to do.
create table queen.lane_due (
    lane      bigint primary key,
    evict_at  timestamptz,  -- ttl, maxWaitTimeSeconds
    retain_at timestamptz   -- retentionSeconds, completedRetentionSeconds
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500, vacuum_truncate = off);
create index lane_due_evict on queen.lane_due (evict_at, lane) where evict_at is not null;
create index lane_due_retain on queen.lane_due (retain_at, lane) where retain_at is not null;

-- One row: how far queen.note_ages has read the change feed.
create table queen.sweeps (
    one  boolean primary key default true check (one),
    seen text not null default pg_current_snapshot()::text
);
insert into queen.sweeps default values;

create table queen.retention_history (
    id               uuid primary key default gen_random_uuid(),
    partition_id     uuid,
    messages_deleted int not null default 0,
    retention_type   varchar(50) not null,
    executed_at      timestamptz not null default now(),
    segments_deleted int not null default 0  -- queen.rows_stuck compares it with the dead rows that vacuum reports
) with (vacuum_truncate = off);
create index retention_history_executed_at on queen.retention_history (executed_at);
create index retention_history_partition on queen.retention_history (partition_id);
