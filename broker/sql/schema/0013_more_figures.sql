-- Figures: deleted messages (queen.skips) are in no count; what pages show of a consumer is kept, not looked up.
alter table queen.lane_stats
    add column deleted bigint not null default 0,   -- of the messages stored
    add column done bigint not null default 0,      -- consumed up to here: in queue mode, else by the slowest group
    add column leased_to bigint not null default 0; -- in queue mode
alter table queen.consumer_stats
    add column batches bigint not null default 0,
    add column last_at timestamptz;
create index consumer_stats_queue on queen.consumer_stats (queue_id);
-- What is there already is counted once more.
update queen.stats_pass set seen = null where exists (select from queen.lanes);
-- Queues are shown newest first.
create index queues_newest on queen.queues (created_at desc, name);
-- They return text from now on; callers cast the result to text anyway.
drop function if exists queen.list_queues(jsonb, boolean), queen.list_groups(jsonb), queen.list_partitions(jsonb);
