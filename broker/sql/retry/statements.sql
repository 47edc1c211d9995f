-- statement: redrive
-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select status, answer, null::bytea, false from queen.redrive($1::text::jsonb);

-- statement: retry_message
-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select status, answer::text, null::bytea, false from queen.retry_message($1::text::jsonb);

-- statement: timeline
-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select status, answer, null::bytea, false from queen.timeline($1::text::jsonb);
