select 200, queen.list_queues($1::text::jsonb, true)::text, null::bytea, false
