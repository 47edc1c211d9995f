-- queen.renew_briefly: queen.renew_leases for the broker, with a short wait for consumers that others have locked.
--
-- needs: renew_leases
-- called by  broker/src/broker/settle/lease.c (call "renew")
-- in, out    as queen.renew_leases; fails with 55P03 if a consumer is locked for more than 100 ms
-- locks      consumers in num order
create or replace function queen.renew_briefly(p_lease uuid[], p_seconds int[], p_key uuid[])
returns table (idx int, why int2, expires_at timestamptz)
language plpgsql
as $$
#variable_conflict use_column
begin
    perform set_config('lock_timeout', '100ms', true);
    return query select r.idx, r.why, r.expires_at from queen.renew_leases(p_lease, p_seconds, p_key) r order by r.idx;
end
$$;
