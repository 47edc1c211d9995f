select 200, queen.trace_names($1::text::jsonb)::text, null::bytea, false
