select * from queen.report_status($1::text::jsonb)
