select 200, queen.report_postgres($1::text::jsonb)::text, null::bytea, false
