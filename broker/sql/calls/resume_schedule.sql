-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select status, piece, payload, sealed from queen.change_schedule($1::text::jsonb, 'resume')
