-- Changing the options of a queue with many partitions takes several steps.

-- Queues whose options have changed and whose partitions do not all have the new ones yet (queen.spread_step).
create table queen.configuring (
    queue_id uuid primary key,
    after    text,                           -- name of the last partition that was looked at; null: none yet
    looked   boolean not null default false, -- all partitions were looked at; those in held are left
    held     bigint[] not null default '{}', -- partitions that another transaction had locked
    ages     boolean not null                -- the age limits have changed, too
) with (autovacuum_vacuum_scale_factor = 0.1, vacuum_truncate = off);

-- Its result has another column now.
drop function if exists queen.configure_queue(text, text, text, jsonb);
-- queen.spread_options does this, too.
drop trigger if exists spread_ages on queen.queues;
drop function if exists queen.spread_ages();
