select 200, queen.list_queues($1::text::jsonb, true), null::bytea, false
