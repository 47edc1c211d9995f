select * from queen.list_queues($1::text::jsonb, false)
