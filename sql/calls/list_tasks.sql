select 200, queen.list_labels($1::text::jsonb, 'task')::text, null::bytea, false
