-- returns: status int4, body text?
select status, body from crm.segment_counts($1::json)
