select * from queen.get_group($1::text::jsonb)
