-- returns: name text
select name from queen.select_queues($1::text, $2::text)
