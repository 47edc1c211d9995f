-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select status, answer, null::bytea, false from queen.stream_register($1::text::jsonb)
