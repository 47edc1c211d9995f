-- The control database of the platform.

-- The identity of this directory of tenants.  A tenant's database records it, with the name of its tenant.
create table platform.directory (
    id uuid primary key default gen_random_uuid()
);
insert into platform.directory default values;

-- The tenants, and where their databases are.
create table platform.tenant (
    name text primary key check (name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    kind text not null check (kind in ('postgresql', 'mysql')),
    -- Without password.  Null: the database is in the platform's own PostgreSQL server.
    url text,
    database text not null,
    -- The password, or where to find it: env:NAME, file:/path.  Null: none is needed.
    credential text,
    -- The platform created the database, so it may drop it.
    made boolean not null,
    -- Version of the tenant's schema; 0: none yet.
    schema_version int not null default 0,
    state text not null default 'new' check (state in ('new', 'ready', 'failed', 'gone')),
    -- Why the last migration failed.
    error text,
    -- Grows with every change of url, database or credential.  Processes then replace their connections.
    revision bigint not null default 1,
    created_at timestamptz not null default now(),
    migrated_at timestamptz,
    -- Processes read the rows that changed recently.
    changed_at timestamptz not null default clock_timestamp()
);
create index tenant_changed on platform.tenant (changed_at);

-- Lanes of the broker that buffer events for a tenant whose database is unavailable (platform/src/ingest/lanes.h).
--
-- The events are in the broker.  A row is written before the first event goes into a lane and deleted after the lane was
-- seen to be empty.
create table platform.held_lane (
    queue           text not null,
    partition       text not null,
    tenant          text not null,
    since           timestamptz not null,
    attempts        int not null,
    next_attempt_at timestamptz not null,
    last_error      text not null,
    replay          boolean not null default false,  -- the tenant lost events, which are applied before those in the lane
    primary key (queue, partition, tenant)
);

-- The newest known owner of a partition.  Only a process with this epoch or a later one may change rows of platform.held_lane, so that a
-- late call of an earlier owner does not undo changes of the current one.
create table platform.held_partition (
    queue        text not null,
    partition    text not null,
    partition_id text not null,  -- of the broker: epochs start again when the queue is deleted and created again
    epoch        bigint not null,
    primary key (queue, partition)
);

-- Stamps that the databases of tenants have committed.
--
-- The checkpoint of a partition in a tenant's database (crm.ingest_checkpoint.at) carries this stamp or a later one.  If it is older
-- or missing, the database was restored from a backup or is a standby that lagged.  Processes save the stamps every few
-- seconds and when they stop, so this is a lower bound.
create table platform.ingest_stamp (
    tenant    text not null references platform.tenant on delete cascade,
    queue     text not null,
    partition text not null,
    stamp     bigint not null,  -- microseconds since 1970 by the clock of the process that wrote it
    primary key (tenant, queue, partition)
) with (fillfactor = 70);

-- Work on the read models of tenants, shared by the processes of the platform.
--
-- The state of a read model is in the tenant's own database (crm.read_model).  This table only says which tenants need a visit, so
-- that processes open no connections to tenants without changes.
create table platform.read_model (
    tenant          text not null references platform.tenant on delete cascade,
    model           text not null check (model in ('customer_attributes', 'customer_transactions')),
    -- Null: the setting of the process.
    mode            text check (mode in ('live', 'views')),
    enrolled_at     timestamptz not null default clock_timestamp(),
    -- First and last change since the last visit.
    first_change_at timestamptz,
    last_change_at  timestamptz,
    -- A visit was requested, with or without changes.
    wanted_at       timestamptz,
    -- Start of the last successful visit, and the last refresh of the view.
    visited_at      timestamptz,
    refreshed_at    timestamptz,
    -- The process that is visiting.  Its claim expires at claimed_until unless it renews it.
    claimed_by      text,
    claimed_at      timestamptz,
    claimed_until   timestamptz,
    -- Consecutive visits that failed; no visit before retry_at.
    failures        int not null default 0,
    error           text,
    retry_at        timestamptz,
    -- Changes (platform.note_changes) and requests (platform.want_visit, platform.enrol_read_models) so far, and both numbers when the
    -- current visit began.  Counting finds changes that arrive during a visit even if the clock is set back.
    changes         bigint not null default 0,
    wishes          bigint not null default 0,
    claimed_changes bigint not null default 0,
    claimed_wishes  bigint not null default 0,
    primary key (tenant, model)
) with (fillfactor = 70);

-- Only the models that need a visit.
create index read_model_agenda on platform.read_model (tenant)
    where first_change_at is not null or wanted_at is not null;

-- Administrative actions, and requests that were refused: see lib/auth/audit.h.  Rows are removed by age (the statement "trim_audit").
create table platform.audit (
    id        bigint generated always as identity primary key,
    record    uuid not null unique,              -- an insertion may be repeated
    at        timestamptz not null,
    subject   text,                              -- of the token, key or certificate; null: unknown
    address   text,
    operation text,                              -- null: a path without a route
    method    text not null,
    path      text not null,                     -- with the query, unless the request was denied
    target    text,                              -- tenant, or whatever the path or body names
    status    int not null,                      -- of the HTTP answer
    count     bigint not null,                   -- equal requests that were refused, in about a minute
    detail    json,                              -- some members of the body
    server    text
);
create index audit_at on platform.audit (at);
