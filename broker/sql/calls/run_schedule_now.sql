-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select status, answer::text, null::bytea, false from queen.run_schedule_now($1::text::jsonb)
