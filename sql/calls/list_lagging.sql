select 200, queen.list_lagging($1::text::jsonb)::text, null::bytea, false
