-- Queues and their partitions ("lanes").
--
-- queen.queues keeps the columns that tools and tests query.  queen.lanes is the storage behind
-- the view queen.partitions: its rows are locked by every push and never updated by one,
-- so that pushing leaves no dead tuple behind.
create table queen.queues (
    id                          uuid primary key default gen_random_uuid(),
    name                        varchar(255) not null unique,
    namespace                   varchar(255) not null default '',
    task                        varchar(255) not null default '',
    priority                    int not null default 0,
    lease_time                  int not null default 300,
    retry_limit                 int not null default 3,
    retry_delay                 int not null default 1000,
    ttl                         int not null default 3600,
    dead_letter_queue           boolean not null default false,
    dlq_after_max_retries       boolean not null default false,
    delayed_processing          int not null default 0,
    window_buffer               int not null default 0,
    retention_seconds           int not null default 0,
    completed_retention_seconds int not null default 0,
    retention_enabled           boolean not null default false,
    encryption_enabled          boolean not null default false,
    max_wait_time_seconds       int not null default 0,
    max_queue_size              int not null default 0,
    created_at                  timestamptz not null default now(),
    -- An option acts only when a configure request carried it: what is merely a reported
    -- default (ttl 3600, retryDelay 1000) does nothing.
    ttl_acts                    boolean not null default false,
    retry_delay_acts            boolean not null default false,
    -- What a lane must know of its queue; kept in queen.lanes by a trigger (queen.spread_options).
    limited       boolean not null generated always as (max_queue_size > 0) stored,
    careful       boolean not null generated always as
                      (delayed_processing > 0 or window_buffer > 0 or ttl_acts or max_wait_time_seconds > 0
                       or (retention_enabled and retention_seconds > 0)) stored,
    lease_seconds int not null generated always as (coalesce(nullif(lease_time, 0), 60)) stored
);
create index queues_namespace_task on queen.queues (namespace, task);

create table queen.lanes (
    num        bigint generated always as identity primary key,
    id         uuid not null unique default gen_random_uuid(),
    queue_id   uuid not null,
    name       varchar(255) not null default 'Default',
    created_at timestamptz not null default now(),
    -- Copies of the queue's columns of the same names, so that hot calls need not look at queen.queues.
    lease_seconds int not null,
    limited       boolean not null, -- it has a maxSize: pushes are checked one request at a time
    careful       boolean not null, -- it has an option that decides what may be delivered when
    unique (queue_id, name)
);
