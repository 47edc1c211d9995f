-- returns: status int4, body text?
select status, body from crm.delete_segment($1::json)
