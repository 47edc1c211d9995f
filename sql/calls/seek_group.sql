select 200, queen.seek_group($1::text::jsonb)::text, null::bytea, false
