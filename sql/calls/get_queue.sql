select * from queen.get_queue($1::text::jsonb)
