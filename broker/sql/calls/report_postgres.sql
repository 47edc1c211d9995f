-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select 200, queen.report_postgres($1::text::jsonb)::text, null::bytea, false
