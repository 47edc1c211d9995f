select status, piece, payload, sealed from queen.add_trace($1::text::jsonb)
