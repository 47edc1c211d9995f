select 200, queen.renew_owners($1::text::jsonb)::text, null::bytea, false
