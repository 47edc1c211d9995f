select 200, queen.list_queues($1::text::jsonb, false), null::bytea, false
