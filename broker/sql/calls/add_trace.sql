-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select status, piece, payload, sealed from queen.add_trace($1::text::jsonb)
