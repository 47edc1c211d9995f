select 200, queen.report_system_metrics($1::text::jsonb)::text, null::bytea, false
