-- Scheduled delivery: messages that wait for their time outside of the log of their lane.
--
-- One row per waiting message, in slices of time (queen.make_slices) that are dropped when the last of their messages has left
-- (queen.drop_slices): rows that are gone cost nothing for longer than their slice lives.
-- message: exactly what goes into a segment's body (docs/segment-format.md), so that firing only puts bytes together.
-- num: the order of arrival; the id (queen.schedule_id) holds it, so one index serves both.
-- transaction_id: null when the producer gave none.
create table queen.scheduled (
    num            bigint not null,
    due_at         timestamptz not null,
    created_at     timestamptz not null,
    lane           bigint not null,         -- where it goes when it is due
    id             uuid not null,
    key            uuid not null,           -- queen.transaction_key
    attempt        int,
    kind           "char" not null,         -- 'p': a push, 'r': a retry for group grp
    grp            text,
    correlation_id text collate "C",
    transaction_id text collate "C",
    message        bytea not null
) partition by range (due_at);
create index scheduled_due on queen.scheduled (due_at, num);
create index scheduled_lane on queen.scheduled (lane, due_at, num);
create index scheduled_num on queen.scheduled (num);
create index scheduled_correlation on queen.scheduled (correlation_id, due_at, num) where correlation_id is not null;
create index scheduled_transaction on queen.scheduled (transaction_id) where transaction_id is not null;
create sequence queen.scheduled_nums;

do $$
begin
    alter table queen.scheduled alter column message set compression lz4;
exception when feature_not_supported then
    raise notice 'this server has no lz4: waiting messages use its default compression';
end
$$;

-- The slices that exist: [from_at, to_at), on full hours UTC, never overlapping.
create table queen.scheduled_slices (
    from_at timestamptz primary key,
    to_at   timestamptz not null check (to_at > from_at),
    name    text not null unique
);

-- A lane that has, or has had, messages that came by queen.scheduled.  Their keys, also UUIDv7, are in
-- queen.message_keys (seq = -num while they wait): pushes to such a lane look there for duplicates, others never do.
alter table queen.lanes add column scheduling boolean not null default false;
create index lanes_scheduling on queen.lanes (queue_id) where scheduling;
