-- The segment log: one row holds all messages that one micro-batch brought for one lane.
--
-- keys: 16 bytes per message, in order: the deduplication key (see queen.transaction_key).
-- key_min, key_max: milliseconds, range of the times inside the UUIDv7 keys; null without such
-- keys.  A segment never spans more than one second of them, so key_max alone finds every candidate.
-- body: the packed messages, format in docs/segment-format.md.
-- first_seq is gapless per lane; created_at rises strictly with it.
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
) with (autovacuum_vacuum_insert_scale_factor = 0.2, vacuum_truncate = off,
        toast.vacuum_truncate = off, toast_tuple_target = 8160);
alter table queen.segments alter column keys set storage main;
create index segments_by_key on queen.segments (lane, key_max) where key_max is not null;

-- lz4 halves the CPU of pglz; a server built without it keeps its default.
do $$
begin
    alter table queen.segments alter column body set compression lz4;
exception when feature_not_supported then
    raise notice 'this server has no lz4: segments use its default compression';
end
$$;

-- Transaction ids that are not UUIDv7 cannot be found by time: one row each.
create table queen.message_keys (
    lane bigint not null,
    key  uuid not null,
    seq  bigint not null,
    primary key (lane, key)
) with (vacuum_truncate = off);
