select taken, abandoned_by from platform.claim_visit($1::text, $2::text, $3::text, $4::int4, $5::int4)
