-- statement: add_trace
-- returns: @answer
select status, piece, payload, sealed from queen.add_trace($1::text::jsonb);

-- statement: delete_message
-- returns: @answer
select 200, queen.delete_message($1::text::jsonb)::text, null::bytea, false;

-- statement: get_message
-- returns: @answer
select status, piece, payload, sealed from queen.get_message($1::text::jsonb);

-- statement: group_dead_letters
-- returns: @answer
select 200, queen.group_dead_letters($1::text::jsonb)::text, null::bytea, false;

-- statement: list_dead_letters
-- returns: @answer
select status, piece, payload, sealed from queen.list_dead_letters($1::text::jsonb);

-- statement: list_messages
-- returns: @answer
select 200, queen.list_messages($1::text::jsonb)::text, null::bytea, false;

-- statement: move_to_dlq
-- returns: @answer
select status, answer::text, null::bytea, false from queen.move_to_dlq($1::text::jsonb);

-- statement: trace_names
-- returns: @answer
select 200, queen.trace_names($1::text::jsonb)::text, null::bytea, false;

-- statement: traces_by_name
-- returns: @answer
select status, piece, payload, sealed from queen.traces_by_name($1::text::jsonb);

-- statement: traces_of_message
-- returns: @answer
select 200, queen.traces_of_message($1::text::jsonb)::text, null::bytea, false;
