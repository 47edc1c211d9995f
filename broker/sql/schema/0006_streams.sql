-- Streams: registered queries, their keyed state, and what protects repeated cycles.
--
-- queries and state are ordinary tables on purpose: people read them with SQL and delete queries there.
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

-- Byte order: the primary key then serves ranges of a prefix and gives rows out sorted.  Room on each page, and no
-- other index: an update of a value stays on its page and is cleaned up there.
create table queen_streams.state (
    query_id     uuid not null references queen_streams.queries (id) on delete cascade,
    partition_id uuid not null,
    key          text collate "C" not null,
    value        jsonb not null,
    updated_at   timestamptz not null default clock_timestamp(),
    primary key (query_id, partition_id, key)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- Committed cycles that no lease protects from being applied twice, for a minute.  Rows are only inserted: slot
-- (minute mod 3) is written now and the one before is read too; the third is truncated (queen.forget_receipts).
-- hash null: another cycle has been committed since, so the one before it may come again.
create table queen_streams.receipts (
    slot         int2 not null,
    query_id     uuid not null,
    partition_id uuid not null,
    at           timestamptz not null,
    hash         bytea,
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
