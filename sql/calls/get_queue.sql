select status, piece, payload, sealed from queen.get_queue($1::text::jsonb)
