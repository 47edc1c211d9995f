-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select status, piece, payload, sealed from queen.create_schedule($1::text::jsonb)
