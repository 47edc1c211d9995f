select 200, queen.get_group($1::text::jsonb)::text, null::bytea, false
