-- returns: status int4, body text?
select status, body from crm.create_campaign($1::json)
