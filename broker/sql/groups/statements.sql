-- statement: delete_group
-- returns: @answer
select status, answer::text, null::bytea, false from queen.delete_group($1::text::jsonb);

-- statement: get_group
-- returns: @rows
select * from queen.get_group($1::text::jsonb);

-- statement: group_partitions
-- returns: @answer
select status, answer::text, null::bytea, false from queen.group_partitions($1::text::jsonb);

-- statement: list_groups
-- returns: @rows
select * from queen.list_groups($1::text::jsonb);

-- statement: preview_seek
-- returns: @answer
select status, answer::text, null::bytea, false from queen.preview_seek($1::text::jsonb);

-- statement: seek_group
-- returns: @answer
select status, answer::text, null::bytea, false from queen.seek_group($1::text::jsonb);

-- statement: seek_partition
-- returns: @answer
select status, answer::text, null::bytea, false from queen.seek_partition($1::text::jsonb);

-- statement: update_subscription
-- returns: @answer
select 200, queen.update_subscription($1::text::jsonb)::text, null::bytea, false;
