select status, piece, payload, sealed from queen.create_schedule($1::text::jsonb)
