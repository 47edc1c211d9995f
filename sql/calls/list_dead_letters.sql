select status, piece, payload, sealed from queen.list_dead_letters($1::text::jsonb)
