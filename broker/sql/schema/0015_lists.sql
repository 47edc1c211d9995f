-- Lists: their functions return rows now, and the broker writes the JSON (src/api/shape.h).
drop function if exists queen.list_queues(jsonb, boolean), queen.list_partitions(jsonb), queen.list_groups(jsonb),
    queen.list_labels(jsonb, text), queen.list_lagging(jsonb), queen.get_queue(jsonb), queen.get_group(jsonb),
    queen.status_queue(jsonb), queen.report_status(jsonb), queen.lane_figures(uuid);
-- When the last message up to which a lane is consumed was created: "completed, newest first" needs no look into the log.
alter table queen.lane_stats add column done_at timestamptz;
update queen.stats_pass set seen = null where exists (select from queen.lanes);
-- Names are compared as bytes: several times faster than by the rules of a language, and the same everywhere.
drop index queen.queues_newest;
create index queues_newest on queen.queues (created_at desc, name collate "C");
