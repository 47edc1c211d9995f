-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select 200, queen.get_overview($1::text::jsonb)::text, null::bytea, false
