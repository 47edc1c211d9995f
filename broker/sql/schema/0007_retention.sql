-- Retention, eviction and clean-up: what falls due when, and what was removed.
--
-- Pushing writes nothing here.  Which lanes of queues with an age limit have got messages is read from the
-- change feed (queen.note_ages), at a cost that follows what was pushed.
alter table queen.queues add column ages boolean not null generated always as (
    ttl_acts or max_wait_time_seconds > 0
    or (retention_enabled and (retention_seconds > 0 or completed_retention_seconds > 0))) stored;
create index queues_that_age on queen.queues (id) where ages;

-- One row per lane that has messages which will become too old.  A time may be earlier than the truth, never later
-- (but for messages that only wait for their consumers: see queen.sweep); null: nothing of this kind to do.
create table queen.lane_due (
    lane      bigint primary key,
    evict_at  timestamptz,  -- ttl, maxWaitTimeSeconds
    retain_at timestamptz   -- retentionSeconds, completedRetentionSeconds
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500, vacuum_truncate = off);
create index lane_due_evict on queen.lane_due (evict_at, lane) where evict_at is not null;
create index lane_due_retain on queen.lane_due (retain_at, lane) where retain_at is not null;
insert into queen.lane_due (lane, evict_at, retain_at)
select l.num, now(), now() from queen.lanes l join queen.queues q on q.id = l.queue_id where q.ages;

-- One row: how far the change feed was read for queen.lane_due.
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
    executed_at      timestamptz not null default now()
) with (vacuum_truncate = off);
create index retention_history_executed_at on queen.retention_history (executed_at);
create index retention_history_partition on queen.retention_history (partition_id);

-- When a lane was last known to be in use: looked at, and brought up to date, only when that is
-- PARTITION_CLEANUP_DAYS ago (queen.tidy).
alter table queen.lanes add column active_at timestamptz not null default now();
create index lanes_by_activity on queen.lanes (active_at);

-- What retention has freed must be found again by the next pushes, also on servers with lazy defaults.
alter table queen.segments set (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_threshold = 5000,
    toast.autovacuum_vacuum_cost_delay = 0);
alter table queen.message_keys set (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
