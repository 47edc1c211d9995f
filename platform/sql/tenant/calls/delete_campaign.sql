-- returns: status int4, body text?
select status, body from crm.delete_campaign($1::json)
