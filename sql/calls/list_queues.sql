select 200, queen.list_queues($1::text::jsonb, false)::text, null::bytea, false
