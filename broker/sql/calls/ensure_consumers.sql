-- returns: idx int4, lane int8?, consumer int8
select idx, lane, consumer from queen.ensure_consumers($1::bigint[], $2::text[])
