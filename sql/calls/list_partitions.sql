select 200, queen.list_partitions($1::text::jsonb)::text, null::bytea, false
