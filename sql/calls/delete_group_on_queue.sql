select 200, queen.delete_group_on_queue($1::text::jsonb)::text, null::bytea, false
