select status, body from crm.get_campaign($1::json)
