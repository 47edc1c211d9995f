select crm.swap_view($1::text)
