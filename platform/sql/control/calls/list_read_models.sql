select platform.list_read_models($1::text)
