-- statement: clear_queue
-- returns: @answer
select status, answer::text, null::bytea, false from queen.clear_queue($1::text::jsonb);

-- statement: configure
-- The options are sent as text, because jsonb has no binary format that a client could write.
-- returns: queue_id uuid, default_lane_id uuid, options text, sealed bool?, unfinished bool
select queue_id, default_lane_id, options::text, (options ->> 'encryptionEnabled')::boolean as sealed, unfinished
  from queen.configure_queue($1::text, $2::text, $3::text, $4::text::jsonb, $5::boolean);

-- statement: delete_queue
-- returns: @answer
select status, answer::text, null::bytea, false from queen.delete_queue($1::text::jsonb);

-- statement: drop_schemas
-- Runs in the target database of a migration, before the copy and in its transaction.
-- returns: nothing
drop schema if exists queen, queen_streams cascade;

-- statement: forget_deleted
-- returns: more bool?
select queen.forget_deleted() or queen.spread_more() or queen.fill_scans() as more;

-- statement: get_overview
-- returns: @answer
select 200, queen.get_overview($1::text::jsonb)::text, null::bytea, false;

-- statement: get_queue
-- returns: @rows
select * from queen.get_queue($1::text::jsonb);

-- statement: list_namespaces
-- returns: @rows
select * from queen.list_labels($1::text::jsonb, 'namespace');

-- statement: list_partitions
-- returns: @rows
select * from queen.list_partitions($1::text::jsonb);

-- statement: list_queues
-- returns: @rows
select * from queen.list_queues($1::text::jsonb, false);

-- statement: list_tasks
-- returns: @rows
select * from queen.list_labels($1::text::jsonb, 'task');

-- statement: maintenance
-- returns: maintenance_flags int4
select queen.maintenance_flags();

-- statement: queue_partitions
-- returns: partitions int4
select partitions from queen.queue_partitions($1::text[]);

-- statement: select_queues
-- returns: name text
select name from queen.select_queues($1::text, $2::text);

-- statement: set_maintenance
-- returns: maintenance_flags int4
select queen.set_maintenance($1::text, $2::boolean) as maintenance_flags;

-- statement: spread_queue
-- returns: @answer
select status, answer::text, null::bytea, false from queen.spread_queue($1::text::jsonb);
