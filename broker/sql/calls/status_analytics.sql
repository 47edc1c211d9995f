-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select 200, queen.status_analytics($1::text::jsonb)::text, null::bytea, false
