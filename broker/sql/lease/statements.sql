-- statement: release
-- returns: consumer int8, lane int8?, queue_name text
select consumer, lane, queue_name from queen.release_leases($1::uuid[]);

-- Result of extending a lease (queen.renew_leases):
-- enum renew_why: RENEW_OK 0, RENEW_NOT_FOUND 1, RENEW_EXPIRED 2, RENEW_NOT_WORK 3

-- statement: renew
-- returns: idx int4, why int2, expires_at timestamptz?
select idx, why, expires_at from queen.renew_briefly($1::uuid[], $2::int[], $3::uuid[]);
