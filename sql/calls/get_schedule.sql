select status, piece, payload, sealed from queen.change_schedule($1::text::jsonb, 'get')
