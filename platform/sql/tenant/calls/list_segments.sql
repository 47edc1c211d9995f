-- returns: status int4, body text?
select status, body from crm.list_segments($1::json)
