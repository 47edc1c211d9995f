select * from queen.status_queue($1::text::jsonb)
