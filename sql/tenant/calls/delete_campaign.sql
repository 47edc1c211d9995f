select status, body from crm.delete_campaign($1::json)
