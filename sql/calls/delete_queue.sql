select 200, queen.delete_queue($1::text::jsonb)::text, null::bytea, false
