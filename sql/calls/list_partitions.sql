select * from queen.list_partitions($1::text::jsonb)
