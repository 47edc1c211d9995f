select * from queen.list_groups($1::text::jsonb)
