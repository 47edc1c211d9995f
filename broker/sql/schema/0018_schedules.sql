-- Recurring messages: a cron expression, in a time zone, pushes the same payload again and again.
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
    last_run_at  timestamptz,                -- the time of the last run, not when it was done
    last_message uuid,
    runs         bigint not null default 0,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now()
) with (fillfactor = 80);
create index schedules_next on queen.schedules (next_at) where next_at is not null;
