select status, body from crm.create_campaign($1::json)
