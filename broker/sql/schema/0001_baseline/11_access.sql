-- Who may use the broker.

-- API keys.  A key is stored as the SHA-256 of its text: see lib/auth/api_key.h.  A revoked key is deleted.
create table queen.api_keys (
    id         text primary key check (id ~ '^[0-9a-f]{16}$'),
    name       varchar(255) not null unique,
    hash       bytea not null check (length(hash) = 32),
    role       text check (role in ('read-only', 'read-write', 'admin')),
    rules      text check (rules <> ''),          -- see lib/auth/rules.h; they replace the role
    limits     text,                              -- see lib/auth/identity_limits.h; null: the default ones of each server
    created_at timestamptz not null default now(),
    created_by text,                              -- subject of the token or key that created it; null: unknown
    expires_at timestamptz,                       -- null: never
    check ((role is null) <> (rules is null))
);

-- One row.  Every change of queen.api_keys writes a new random version, so brokers notice also a change that a restored backup brings.
-- Changes lock it first, so they happen one after the other.
create table queen.api_keys_version (
    only_row boolean primary key default true check (only_row),
    version  uuid not null default gen_random_uuid()
);
insert into queen.api_keys_version default values;

-- Administrative actions, and requests that were refused: see lib/auth/audit.h.  Rows are removed by age (queen.trim_audit).
create table queen.audit (
    id        bigint generated always as identity primary key,
    record    uuid not null unique,              -- an insertion may be repeated
    at        timestamptz not null,
    subject   text,                              -- of the token, key or certificate; null: unknown
    address   text,
    operation text,                              -- null: a path without a route
    method    text not null,
    path      text not null,                     -- with the query, unless the request was denied
    target    text,                              -- queue, or whatever the path or body names
    status    int not null,                      -- of the HTTP answer
    count     bigint not null,                   -- equal requests that were refused, in about a minute
    detail    json,                              -- some members of the body
    server    text
);
create index audit_at on queen.audit (at);

-- Bytes of stored messages by sender, for limits of stored bytes (lib/auth/identity_limits.h).  Only senders with such a limit are counted.
-- Rows are removed when their messages are (queen.read_stored).
create table queen.stored_bytes (
    lane    bigint not null,
    subject text not null,                       -- of the token or key that pushed the messages
    span    bigint not null,                     -- number of the ten minutes in which they were stored, or are due
    last_at timestamptz not null,                -- of the last of them
    bytes   bigint not null,
    primary key (lane, subject, span)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.1);
create index stored_bytes_subject on queen.stored_bytes (subject);
