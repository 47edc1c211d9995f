select platform.want_visit($1::text, $2::text, $3::text), clock_timestamp()
