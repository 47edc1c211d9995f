select crm.refresh_failed($1::text, $2::text)::text
