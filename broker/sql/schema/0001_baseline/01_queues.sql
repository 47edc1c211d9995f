-- Queues, and the lanes in which their messages are stored.

-- One row per queue.  Tools and clients read these columns.
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

    -- partition: a group leases a partition as a whole.  none: a work queue, any number of leases in one partition (queen.holds).
    ordering                    text not null default 'partition' check (ordering in ('partition', 'none')),
    -- Of an ordered queue. batch: "completed" acknowledges all messages of a lease up to the one it names. message: only that one.
    settlement                  text not null default 'batch' check (settlement in ('batch', 'message')),

    -- ttl and retry_delay have defaults that are reported but have no effect.  They take effect when a configure request sets them.
    ttl_acts         boolean not null default false,
    retry_delay_acts boolean not null default false,

    -- Derived from the options above.  The trigger queen.spread_options copies the first three to queen.lanes.
    limited       boolean not null generated always as (max_queue_size > 0) stored,
    careful       boolean not null generated always as
                      (delayed_processing > 0 or window_buffer > 0 or ttl_acts or max_wait_time_seconds > 0
                       or (retention_enabled and retention_seconds > 0) or ordering = 'none' or settlement = 'message') stored,
    by_message    boolean not null generated always as (ordering = 'none' or settlement = 'message') stored, -- its consumers have holds
    lease_seconds int not null generated always as (coalesce(nullif(lease_time, 0), 60)) stored,
    ages          boolean not null generated always as (    -- its messages can become too old
                      ttl_acts or max_wait_time_seconds > 0
                      or (retention_enabled and (retention_seconds > 0 or completed_retention_seconds > 0))) stored,

    -- With encryption_enabled: a broker without a key stores messages in clear instead of refusing them.
    allow_unencrypted boolean not null default false,

    max_deliveries int not null default 0 check (max_deliveries >= 0), -- without an acknowledgement, then a dead letter; 0: no limit
    -- Of a work queue, for each group; 0: no limit.
    max_in_flight int not null default 0 check (max_in_flight >= 0),     -- messages that are leased and not settled
    rate_limit    double precision not null default 0 check (rate_limit >= 0), -- deliveries per second
    rate_burst    int not null default 0 check (rate_burst >= 0),        -- deliveries at once after a pause; 0 without rate_limit
    -- The same for each concurrencyKey, which is a partition without its priority (queen.partition_key).
    key_max_in_flight int not null default 0 check (key_max_in_flight >= 0),
    key_rate_limit    double precision not null default 0 check (key_rate_limit >= 0),
    key_rate_burst    int not null default 0 check (key_rate_burst >= 0),
    retry_policy  jsonb,                                          -- as configured; null: none (see queen.fill_retry_policy)
    partitions    int not null default 0 check (partitions >= 0)  -- fixed number of partitions, called 0, 1, 2, ...; 0: any number
);
create index queues_namespace_task on queen.queues (namespace, task);
create index queues_that_age on queen.queues (id) where ages;
-- For lists of queues, newest first.  Names are compared as bytes, which is several times faster than by a locale.
create index queues_newest on queen.queues (created_at desc, name collate "C");

-- One row per lane: a partition of a queue, or a retry lane.  The view queen.partitions shows the partitions.
--
-- A push locks the rows of its lanes and never updates them, so pushing leaves no dead rows here.
--
-- A retry lane holds the messages of one partition that are to be delivered again to one group, and to no other group.
-- Its queue_id is the id of that partition and its name is the name of the group, so a search for the partitions of a queue does
-- not find it.  It is always claimed by queen.claim_careful.
create table queen.lanes (
    num        bigint generated always as identity primary key,
    id         uuid not null unique default gen_random_uuid(),
    queue_id   uuid not null,
    name       varchar(255) not null default 'Default',
    created_at timestamptz not null default now(),

    -- Copies of the columns of the queue, so that frequent calls need not read queen.queues.
    lease_seconds int not null,
    limited       boolean not null,               -- the queue has a maxSize: pushes are checked one request at a time
    careful       boolean not null,               -- the queue has an option that delays or prevents delivery of some messages

    active_at    timestamptz not null default now(),      -- last known use; updated only by queen.tidy when it seems long ago
    sealed       boolean not null default false,          -- the queue has encryptionEnabled: a push in clear text is rejected
    skipping     boolean not null default false,          -- queen.skips has rows of this lane
    scheduling   boolean not null default false,          -- messages of queen.scheduled go or went here: see queen.message_keys
    origin       bigint,                                  -- retry lanes: num of the partition; null: this is a partition
    origin_queue uuid,                                    -- retry lanes: the queue of the partition
    unique (queue_id, name)
) with (
    -- Queries read single rows by index, so a vacuum after inserts gains nothing.  Analyze when the table has doubled: cached
    -- plans are then rarely invalidated.
    autovacuum_vacuum_insert_threshold = 200000, autovacuum_analyze_threshold = 250, autovacuum_analyze_scale_factor = 1
);
create index lanes_by_activity on queen.lanes (active_at);
create index lanes_scheduling on queen.lanes (queue_id) where scheduling;
create index lanes_retries on queen.lanes (origin_queue, name) where origin is not null;
create index lanes_by_origin on queen.lanes (origin) where origin is not null;

-- Queues whose options have changed and whose lanes do not all have the new ones yet: copying takes several steps (queen.spread_step).
create table queen.configuring (
    queue_id uuid primary key,
    after    text,                           -- name of the last lane that was compared; null: none yet
    looked   boolean not null default false, -- all lanes were compared; those in locked are left
    locked   bigint[] not null default '{}', -- lanes that another transaction had locked
    ages     boolean not null                -- the age limits have changed too
) with (autovacuum_vacuum_scale_factor = 0.1, vacuum_truncate = off);

-- Queues that were deleted and still have lanes.  queen.forget_deleted removes the lanes and then the row.
create table queen.deleted_queues (
    id         uuid primary key,
    name       text not null,
    deleted_at timestamptz not null default now()
);

-- Lanes that were deleted and still have contents.  queen.forget_deleted removes the contents and then the row.
create table queen.deleted_lanes (
    lane bigint primary key,
    id   uuid not null
) with (autovacuum_vacuum_scale_factor = 0.1, vacuum_truncate = off);

-- Switches that an operator sets for all brokers of this database, for example maintenance mode.
create table queen.system_state (
    key        text primary key,
    value      jsonb not null,
    updated_at timestamptz not null default clock_timestamp()
);
