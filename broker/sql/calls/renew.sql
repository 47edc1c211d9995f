-- returns: idx int4, why int2, expires_at timestamptz?
select idx, why, expires_at from queen.renew_briefly($1::uuid[], $2::int[])
