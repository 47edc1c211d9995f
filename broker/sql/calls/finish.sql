-- returns: consumer int8
select consumer from queen.finish($1::int, $2::bigint[], $3::bigint[], $4::bigint[], $5::uuid[], $6::boolean[])
