-- The message log.

-- One row holds all messages that one batch brought for one lane.
--
-- first_seq has no gaps in a lane: the next segment starts at first_seq + count.  created_at rises strictly with it.
-- keys holds the deduplication keys, 16 bytes per message, in order (see queen.transaction_key).
-- key_min and key_max are the range of the times inside keys that are UUIDv7, in milliseconds; null if there is none.  A segment spans at
-- most one second of them, so a search by key_max alone finds every candidate.
-- body holds the packed messages: docs/internals/segment-format.md.
create table queen.segments (
    lane       bigint not null,
    first_seq  bigint not null,
    created_at timestamptz not null,
    key_min    bigint,
    key_max    bigint,
    count      int not null,
    keys       bytea not null,
    body       bytea not null,
    primary key (lane, first_seq)
) with (
    toast_tuple_target = 8160, vacuum_truncate = off, toast.vacuum_truncate = off,
    -- Space that retention frees must be found again by the next pushes, also on servers that vacuum rarely by default.
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_threshold = 5000,
    toast.autovacuum_vacuum_cost_delay = 0,
    -- No query uses the visibility map, so a vacuum after inserts only freezes rows early.  The default would run it
    -- again and again while the table is young, at 2 us of CPU per message.
    autovacuum_vacuum_insert_threshold = 2000000, autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_threshold = 1000, autovacuum_analyze_scale_factor = 1
);
alter table queen.segments alter column keys set storage main;
create index segments_by_key on queen.segments (lane, key_max) where key_max is not null;

-- lz4 needs half the CPU of pglz.  A server that was built without lz4 keeps its default.
do $$
begin
    alter table queen.segments alter column body set compression lz4;
exception when feature_not_supported then
    raise notice 'this server has no lz4: segments use its default compression';
end
$$;

-- Keys that cannot be found by the time inside them: transaction ids that are not UUIDv7, and all keys of messages that were scheduled.
-- seq is negative (-num of queen.scheduled) while a scheduled message waits.
create table queen.message_keys (
    lane bigint not null,
    key  uuid not null,
    seq  bigint not null,
    primary key (lane, key)
) with (
    vacuum_truncate = off,
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_insert_threshold = 2000000, autovacuum_analyze_threshold = 1000, autovacuum_analyze_scale_factor = 1
);

-- Positions in a lane that consumers pass over: deleted messages, and messages that one group must not receive.
--
-- A deleted message stays in its segment as an empty place, so that the sequence has no gap.  Ranges of one group do not touch
-- each other.  They are deleted together with the segments (queen.forget_messages).  lanes.skipping is true for a lane with rows here; only
-- queen.claim_careful reads them.
create table queen.skips (
    lane      bigint not null,
    grp       text not null default '',  -- '': for all groups, the message is deleted
    first_seq bigint not null,
    last_seq  bigint not null check (last_seq >= first_seq),
    primary key (lane, grp, first_seq)
);
create index skips_by_group on queen.skips (grp) where grp <> '';

-- Messages by correlation id: one row per message that was pushed with one.  A message that was scheduled has a second row
-- for its id, because that id does not contain its position.
create table queen.correlations (
    correlation uuid not null,  -- queen.transaction_key of the correlation id
    lane        bigint not null,
    seq         bigint not null,
    primary key (lane, seq, correlation)
) with (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
create index correlations_correlation on queen.correlations (correlation);

-- A message of a segment, unpacked.
create type queen.stored_message as (
    message_id uuid, key uuid, transaction_id text, trace_id uuid, producer_sub text, is_encrypted boolean, meta text,
    payload text, created_at timestamptz);
