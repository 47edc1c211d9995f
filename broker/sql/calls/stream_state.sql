-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select 200, queen.stream_state($1::text::jsonb), null::bytea, false
