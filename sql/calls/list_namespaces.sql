select * from queen.list_labels($1::text::jsonb, 'namespace')
