select idx, why, expires_at from queen.renew_leases($1::uuid[], $2::int[])
