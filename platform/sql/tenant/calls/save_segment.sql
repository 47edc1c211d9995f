-- returns: status int4, body text?
select status, body from crm.save_segment($1::json)
