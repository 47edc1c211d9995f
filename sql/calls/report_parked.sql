select 200, queen.report_parked($1::text::jsonb)::text, null::bytea, false
