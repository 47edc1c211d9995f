select queue_name, removed, more from queen.tidy($1::int, $2::int, $3::int)
