select platform.renew_visits($1::text, $2::int4)
