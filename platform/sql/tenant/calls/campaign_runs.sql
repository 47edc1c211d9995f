select key, body from crm.campaign_runs($1::json)
