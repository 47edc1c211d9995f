-- Waiting messages: slices are made ahead of time, and what has no slice lies in queen.scheduled_far (ADR 39).
--
-- slice: the full hour of due_at, counted from 1970 UTC, if there was a slice for it when the message was stored; else 0.
-- So storing a message never needs a new table: no session of a SQL user holds a lock that others wait for.
drop function if exists queen.find_scheduled(text);
drop function if exists queen.scheduled_json(queen.scheduled);
drop function if exists queen.cancel_scheduled(bigint[], timestamptz[]);
drop function if exists queen.make_slices(timestamptz[]);
drop function if exists queen.slices_missing(timestamptz[]);
drop function if exists queen.drop_slices();
drop function if exists queen.forget_retries(bigint, uuid);

alter table queen.scheduled rename to scheduled_before;
alter index queen.scheduled_due rename to scheduled_before_due;
alter index queen.scheduled_lane rename to scheduled_before_lane;
alter index queen.scheduled_num rename to scheduled_before_num;
alter index queen.scheduled_correlation rename to scheduled_before_correlation;
alter index queen.scheduled_transaction rename to scheduled_before_transaction;
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
    message        bytea not null,
    slice          int not null default 0
) partition by list (slice);
create index scheduled_due on queen.scheduled (due_at, num);
create index scheduled_lane on queen.scheduled (lane, due_at, num);
create index scheduled_num on queen.scheduled (num);
create index scheduled_correlation on queen.scheduled (correlation_id, due_at, num) where correlation_id is not null;
create index scheduled_transaction on queen.scheduled (transaction_id) where transaction_id is not null;
do $$
begin
    alter table queen.scheduled alter column message set compression lz4;
exception when feature_not_supported then
    raise notice 'this server has no lz4: waiting messages use its default compression';
end
$$;

create table queen.scheduled_far partition of queen.scheduled for values in (0)
    with (vacuum_truncate = off, toast.vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
insert into queen.scheduled (num, due_at, created_at, lane, id, key, attempt, kind, grp, correlation_id, transaction_id, message)
select num, due_at, created_at, lane, id, key, attempt, kind, grp, correlation_id, transaction_id, message
  from queen.scheduled_before;
drop table queen.scheduled_before;
drop table queen.scheduled_slices;

-- The slices that exist, besides queen.scheduled_far.
create table queen.scheduled_slices (
    slice int primary key check (slice > 0),
    name  text not null unique
);

-- A recurring message whose partition is locked when its time comes: that time.  next_at says when to try again.
alter table queen.schedules add column held_for timestamptz;
