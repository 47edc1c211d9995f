select 200, queen.report_status($1::text::jsonb)::text, null::bytea, false
