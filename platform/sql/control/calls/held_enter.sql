-- The lanes of a partition: what its new owner begins with.
select tenant, attempts, wait_ms from platform.held_enter($1::text, $2::text, $3::text, $4::int8, $5::int8)
