-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select status, piece, payload, sealed from queen.list_schedules($1::text::jsonb)
