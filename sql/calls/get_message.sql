select status, piece, payload, sealed from queen.get_message($1::text::jsonb)
