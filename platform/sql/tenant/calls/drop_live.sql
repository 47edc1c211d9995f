select crm.drop_live($1::text)
