select 200, queen.list_scheduled($1::text::jsonb)::text, null::bytea, false
