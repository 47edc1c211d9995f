select platform.end_visit($1::text, $2::text, $3::text, $4::text, $5::int4, $6::bool)
