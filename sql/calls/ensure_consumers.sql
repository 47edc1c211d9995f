select idx, lane, consumer from queen.ensure_consumers($1::bigint[], $2::text[])
