select 200, queen.list_labels($1::text::jsonb, 'namespace')::text, null::bytea, false
