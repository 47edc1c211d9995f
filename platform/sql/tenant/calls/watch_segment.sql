-- returns: status int4, body text?
select status, body from crm.watch_segment($1::json)
