-- returns: status int4, body text?
select status, body from crm.get_segment($1::json)
