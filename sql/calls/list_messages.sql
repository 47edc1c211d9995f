select 200, queen.list_messages($1::text::jsonb)::text, null::bytea, false
