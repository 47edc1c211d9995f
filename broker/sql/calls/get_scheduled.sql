-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select status, piece, payload, sealed from queen.get_scheduled($1::text::jsonb)
