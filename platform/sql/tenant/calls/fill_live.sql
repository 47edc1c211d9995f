select crm.fill_live($1::text, $2::int4)
