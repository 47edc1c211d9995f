select status, body from crm.list_segments($1::json)
