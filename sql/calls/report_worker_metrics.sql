select 200, queen.report_worker_metrics($1::text::jsonb)::text, null::bytea, false
