select * from queen.list_lagging($1::text::jsonb)
