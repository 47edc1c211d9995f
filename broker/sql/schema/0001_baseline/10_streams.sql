-- Streams: registered queries, their state by key, and receipts of committed cycles.
--
-- Users read queries and state with SQL and delete queries there.
create schema queen_streams;

create table queen_streams.queries (
    id           uuid primary key default gen_random_uuid(),
    name         text not null unique,
    source_queue text not null,
    sink_queue   text,
    config_hash  text not null,
    created_at   timestamptz not null default clock_timestamp(),
    updated_at   timestamptz not null default clock_timestamp()
);

-- Keys are compared as bytes, so the primary key serves searches by prefix and returns rows in order.  There is no other index and
-- there is free space on each page, so an update stays on its page and is cleaned up there (HOT).
create table queen_streams.state (
    query_id     uuid not null references queen_streams.queries (id) on delete cascade,
    partition_id uuid not null,
    key          text collate "C" not null,
    value        jsonb not null,
    updated_at   timestamptz not null default clock_timestamp(),
    primary key (query_id, partition_id, key)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- Committed cycles that no lease protects from being applied twice, kept for a minute.  Rows are only inserted.  The slot is
-- the minute modulo 3: the current one is written, the one before is also read, the third is truncated (queen.forget_receipts).
create table queen_streams.receipts (
    slot         int2 not null,
    query_id     uuid not null,
    partition_id uuid not null,
    at           timestamptz not null,
    hash         bytea,                  -- null: a later cycle was committed, so the one before it may be repeated
    created      timestamptz[],
    acked        boolean,
    released     boolean,
    items        bytea
) partition by list (slot);
create table queen_streams.receipts_0 partition of queen_streams.receipts for values in (0)
    with (autovacuum_enabled = off);
create table queen_streams.receipts_1 partition of queen_streams.receipts for values in (1)
    with (autovacuum_enabled = off);
create table queen_streams.receipts_2 partition of queen_streams.receipts for values in (2)
    with (autovacuum_enabled = off);
create index receipts_0_of on queen_streams.receipts_0 (query_id, partition_id, at);
create index receipts_1_of on queen_streams.receipts_1 (query_id, partition_id, at);
create index receipts_2_of on queen_streams.receipts_2 (query_id, partition_id, at);
