select 200, queen.delete_group($1::text::jsonb)::text, null::bytea, false
