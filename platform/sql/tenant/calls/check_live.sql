select checked, differing from crm.check_live($1::text, $2::int4)
