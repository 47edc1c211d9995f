-- Consumer groups: one consumer per (lane, group).
--
-- queen.consumers is only locked, never updated.  The state (cursor, lease) is a sequence of
-- insert-only versions in queen.consumer_states, read by a backward index probe under the row
-- lock; so nobody ever walks dead tuples, whatever snapshot is held open elsewhere.  Versions go to
-- the slot that queen.rotation names; the other slot is emptied by TRUNCATE (queen.rotate).
create table queen.consumers (
    num        bigint generated always as identity primary key,
    lane       bigint not null,
    grp        text not null,
    created_at timestamptz not null default now(),
    unique (lane, grp)
);
create index consumers_by_group on queen.consumers (grp);

create table queen.consumer_states (
    consumer       bigint not null,
    ver            bigint not null,
    cursor_seq     bigint not null,            -- last sequence consumed
    lease_first    bigint,                     -- first and last sequence delivered under the lease
    lease_last     bigint,
    total_messages bigint not null default 0,
    total_batches  bigint not null default 0,
    last_at        timestamptz,                -- last consumed
    lease_at       timestamptz,
    lease_until    timestamptz,                -- the lease is active while this is in the future
    retry_at       timestamptz,                -- not offered before (retryDelay)
    batch_size     int not null default 0,     -- messages delivered under the lease
    acked          int not null default 0,     -- how many of them were acknowledged
    retries        int not null default 0,     -- consecutive failed deliveries
    slot           "char" not null,
    lease          uuid,                       -- queen.transaction_key of the lease id
    lease_text     text,                       -- the lease id, when it is not a UUID
    acked_mask     bytea                       -- bit i: message lease_first + i was acknowledged
) partition by list (slot);
create table queen.consumer_states_a partition of queen.consumer_states
    (primary key (consumer, ver)) for values in ('a') with (autovacuum_enabled = off);
create table queen.consumer_states_b partition of queen.consumer_states
    (primary key (consumer, ver)) for values in ('b') with (autovacuum_enabled = off);
create index consumer_states_a_lease on queen.consumer_states_a (lease) where lease is not null;
create index consumer_states_b_lease on queen.consumer_states_b (lease) where lease is not null;

-- What has become available, for brokers that did not do it themselves: one row per push batch.
-- A reader remembers its snapshot and asks for what that snapshot did not see (queen.changes_since).
create table queen.changes (
    xid    xid8 not null default pg_current_xact_id(),
    origin int not null,                       -- process that wrote it; 0: a SQL session
    slot   "char" not null,
    lanes  bigint[] not null
) partition by list (slot);
create table queen.changes_a partition of queen.changes for values in ('a') with (autovacuum_enabled = off);
create table queen.changes_b partition of queen.changes for values in ('b') with (autovacuum_enabled = off);
create index changes_a_xid on queen.changes_a (xid);
create index changes_b_xid on queen.changes_b (xid);

-- One row: the slot that is written now.
create table queen.rotation (
    one         boolean primary key default true check (one),
    active      "char" not null default 'a',
    switched_at timestamptz not null default now(),
    -- How often a slot was emptied: who sees it grow may have missed changes, and must look for himself.
    emptied     bigint not null default 0
);
insert into queen.rotation default values;

-- Where a named group starts on lanes it has not seen yet.
create table queen.consumer_groups_metadata (
    id                     uuid primary key default gen_random_uuid(),
    consumer_group         text not null,
    queue_name             text not null default '',
    partition_name         text not null default '',
    namespace              text not null default '',
    task                   text not null default '',
    subscription_mode      text not null,
    subscription_timestamp timestamptz not null,
    created_at             timestamptz not null default now(),
    unique (consumer_group, queue_name, partition_name, namespace, task)
);

-- When a wildcard pop of the group last found nothing at all on the queue.
create table queen.consumer_watermarks (
    queue_name         varchar(255) not null,
    consumer_group     varchar(255) not null default '__QUEUE_MODE__',
    last_empty_scan_at timestamptz not null default now(),
    updated_at         timestamptz not null default now(),
    primary key (queue_name, consumer_group)
);
