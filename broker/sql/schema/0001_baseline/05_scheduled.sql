-- Scheduled delivery: messages with a due time, and recurring messages.

-- One row per waiting message: a push with a due time, or a retry.  It is not in its lane yet.
--
-- Partitions ("slices") hold one hour of due times each.  queen.maintain_slices creates them ahead of time and drops them
-- when they are empty, so deleted rows cost nothing for longer than their slice exists.  A message whose slice does not exist yet goes to
-- queen.scheduled_far; storing a message therefore never creates a table (ADR 39).
create table queen.scheduled (
    num            bigint not null,         -- order of arrival; the id contains it (queen.schedule_num), so one index serves both
    due_at         timestamptz not null,
    created_at     timestamptz not null,
    lane           bigint not null,         -- where the message goes when it is due
    id             uuid not null,
    key            uuid not null,           -- queen.transaction_key
    attempt        int,
    kind           "char" not null,         -- p: a push, r: a retry for the group grp
    grp            text,
    correlation_id text collate "C",
    transaction_id text collate "C",        -- null: the producer gave none
    message        bytea not null,          -- packed as in the body of a segment: docs/internals/segment-format.md
    slice          int not null default 0   -- hours from 1970 UTC to due_at if that slice existed when the message was stored, else 0
) partition by list (slice);
create index scheduled_due on queen.scheduled (due_at, num);
create index scheduled_lane on queen.scheduled (lane, due_at, num);
create index scheduled_num on queen.scheduled (num);
create index scheduled_retries on queen.scheduled (due_at, num) where kind = 'r';
create index scheduled_correlation on queen.scheduled (correlation_id, due_at, num) where correlation_id is not null;
create index scheduled_transaction on queen.scheduled (transaction_id) where transaction_id is not null;
create sequence queen.scheduled_nums;

do $$
begin
    alter table queen.scheduled alter column message set compression lz4;
exception when feature_not_supported then
    raise notice 'this server has no lz4: scheduled messages use its default compression';
end
$$;

create table queen.scheduled_far partition of queen.scheduled for values in (0)
    with (vacuum_truncate = off, toast.vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

-- The slices that exist, except queen.scheduled_far.
create table queen.scheduled_slices (
    slice int primary key check (slice > 0),
    name  text not null unique
);

-- Recurring messages: a cron expression in a time zone pushes the same payload again and again.
create table queen.schedules (
    id           uuid primary key default gen_random_uuid(),
    name         text not null unique,
    queue_name   text not null,
    lane_name    text not null,
    cron         text not null,
    timezone     text not null,
    payload      jsonb not null,
    missed       text not null check (missed in ('skip', 'once', 'all')),
    paused       boolean not null,
    next_at      timestamptz,                -- null: paused, or the expression never matches again
    last_run_at  timestamptz,                -- due time of the last run, not the time at which it ran
    last_message uuid,
    runs         bigint not null default 0,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    sealed       boolean not null default false, -- the payload is encrypted, because the queue has encryptionEnabled
    delayed_at   timestamptz                 -- due time of a run whose lane was locked; next_at is then the time of the next try
) with (fillfactor = 80);
create index schedules_next on queen.schedules (next_at) where next_at is not null;
