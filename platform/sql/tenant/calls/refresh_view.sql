select action, rows, ms from crm.refresh_view($1::text, $2::text, $3::int4, $4::bool)
