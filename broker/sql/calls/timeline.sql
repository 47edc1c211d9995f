-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select status, answer, null::bytea, false from queen.timeline($1::text::jsonb)
