-- 0001: the tenant directory: who the tenants are and where their databases lie.
create table platform.tenant (
    name text primary key check (name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    kind text not null check (kind in ('postgresql', 'mysql')),
    -- Null: a database of this name in the platform's own PostgreSQL.  Holds no password.
    url text,
    database text not null,
    -- The password, or where it is: env:NAME, file:/path.  Null: none is needed.
    credential text,
    -- We made the database, so we may drop it.
    made boolean not null,
    -- How far the tenant's own schema is; 0: nothing there yet.
    schema_version int not null default 0,
    state text not null default 'new' check (state in ('new', 'ready', 'failed', 'gone')),
    -- Why the last migration failed.
    error text,
    -- Changes with everything a connection depends on; pools of an older one are replaced.
    revision bigint not null default 1,
    created_at timestamptz not null default now(),
    migrated_at timestamptz,
    -- Processes ask for what has changed lately.
    changed_at timestamptz not null default clock_timestamp()
);
create index tenant_changed on platform.tenant (changed_at);
