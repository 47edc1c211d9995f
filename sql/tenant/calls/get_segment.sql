select status, body from crm.get_segment($1::json)
