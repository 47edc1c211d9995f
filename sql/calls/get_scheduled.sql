select status, piece, payload, sealed from queen.get_scheduled($1::text::jsonb)
