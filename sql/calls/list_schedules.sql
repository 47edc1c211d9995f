select status, piece, payload, sealed from queen.list_schedules($1::text::jsonb)
