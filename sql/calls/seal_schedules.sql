select status, piece, payload, sealed from queen.seal_schedules($1::text::jsonb)
