-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select 200, queen.report_system_metrics($1::text::jsonb)::text, null::bytea, false
