-- returns: status int4, body text?
select status, body from crm.get_campaign($1::json)
