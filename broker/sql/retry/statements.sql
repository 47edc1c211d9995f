-- statement: find_messages
-- returns: @answer
select 200, queen.find_messages($1::text::jsonb)::text, null::bytea, false;

-- statement: redrive
-- returns: @answer
select status, answer, null::bytea, false from queen.redrive($1::text::jsonb);

-- statement: retry_message
-- returns: @answer
select status, answer::text, null::bytea, false from queen.retry_message($1::text::jsonb);

-- statement: timeline
-- returns: @answer
select status, answer, null::bytea, false from queen.timeline($1::text::jsonb);
