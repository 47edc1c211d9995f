select 200, queen.list_schedules($1::text::jsonb)::text, null::bytea, false
