-- returns: status int4?, piece text?, payload bytea?, sealed bool?
select status, answer::text, null::bytea, false from queen.list_owners($1::text::jsonb)
