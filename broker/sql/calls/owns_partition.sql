-- returns: owns_partition bool?
select queen.owns_partition($1::text, $2::text, $3::text, $4::text, $5::int8)
