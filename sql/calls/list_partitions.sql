select 200, queen.list_partitions($1::text::jsonb), null::bytea, false
