-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select 200, queen.traces_of_message($1::text::jsonb)::text, null::bytea, false
