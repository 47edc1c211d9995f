-- statement: list_lagging
-- returns: @rows
select * from queen.list_lagging($1::text::jsonb);

-- statement: map_partitions
-- returns: @answer
select status, answer::text, null::bytea, false from queen.map_partitions($1::text::jsonb);

-- statement: prometheus_text
-- returns: prometheus_text text?
select queen.prometheus_text($1::text);

-- statement: record_metrics
-- returns: record_metrics timestamptz
select queen.record_metrics($1::uuid, $2::text, $3::int, $4::int, $5::int, $6::bigint[], $7::int, $8::text, $9::int,
                            $10::text, $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
                            $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[],
                            $22::bigint[], $23::bigint[], $24::text[], $25::int[]);

-- statement: refresh_stats
-- returns: @answer
select 200, queen.refresh_stats_now($1::text::jsonb)::text, null::bytea, false;

-- statement: report_parked
-- returns: @answer
select 200, queen.report_parked($1::text::jsonb)::text, null::bytea, false;

-- statement: report_postgres
-- returns: @answer
select 200, queen.report_postgres($1::text::jsonb)::text, null::bytea, false;

-- statement: report_queue_lag
-- returns: @answer
select 200, queen.report_queue_lag($1::text::jsonb)::text, null::bytea, false;

-- statement: report_queue_ops
-- returns: @answer
select 200, queen.report_queue_ops($1::text::jsonb)::text, null::bytea, false;

-- statement: report_status
-- returns: @rows
select * from queen.report_status($1::text::jsonb);

-- statement: report_system_metrics
-- returns: @answer
select 200, queen.report_system_metrics($1::text::jsonb)::text, null::bytea, false;

-- statement: report_worker_metrics
-- returns: @answer
select 200, queen.report_worker_metrics($1::text::jsonb)::text, null::bytea, false;

-- statement: retention_analytics
-- returns: @answer
select 200, queen.retention_analytics($1::text::jsonb)::text, null::bytea, false;

-- statement: stats_chore
-- returns: lanes int4, more bool
select lanes, more from queen.stats_chore($1::int, $2::int, $3::int);

-- statement: status_analytics
-- returns: @answer
select 200, queen.status_analytics($1::text::jsonb)::text, null::bytea, false;

-- statement: status_queue
-- returns: @rows
select * from queen.status_queue($1::text::jsonb);

-- statement: status_queue_messages
-- returns: @answer
select 200, queen.status_queue_messages($1::text::jsonb)::text, null::bytea, false;

-- statement: status_queues
-- returns: @rows
select * from queen.list_queues($1::text::jsonb, true);

-- statement: table_counts
-- returns: name text, n int8
select name, n from queen.table_counts();
