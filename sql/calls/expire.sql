select queue_name, expired from queen.expire($1::int)
