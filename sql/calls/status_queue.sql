select status, piece, payload, sealed from queen.status_queue($1::text::jsonb)
