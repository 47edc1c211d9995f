-- Large queues are deleted in steps (ADR 38).
--
-- A queue that has partitions left after its row was deleted.  queen.forget_deleted removes them and then this row.
create table queen.deleted_queues (
    id         uuid primary key,
    name       text not null,
    deleted_at timestamptz not null default now()
);

-- A lane whose row is gone and whose contents are not yet removed.
create table queen.deleted_lanes (
    lane bigint primary key,
    id   uuid not null
) with (autovacuum_vacuum_scale_factor = 0.1, vacuum_truncate = off);

-- These return a status beside their answer now, because a call may be one of several steps.
drop function if exists queen.delete_queue(jsonb);
drop function if exists queen.delete_group(jsonb);
drop function if exists queen.delete_group_on_queue(jsonb);
drop function if exists queen.seek_group(jsonb);
drop function if exists queen.forget_group(text, text, boolean);
