select 200, queen.list_groups($1::text::jsonb), null::bytea, false
