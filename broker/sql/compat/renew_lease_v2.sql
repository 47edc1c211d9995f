-- queen.renew_lease_v2: extend leases, from SQL.
--
-- numbers:   why renew_why
-- needs: check_names, renew_leases, transaction_key, require_read_committed
-- called by  SQL sessions
-- in         p_items: array of {index?, leaseId, extendSeconds?}; default 60 seconds
-- out        array of results in order, as POST /api/v1/lease/:leaseId/extend answers
-- locks      consumers in num order
-- raises     QN001 malformed request, QN003 wrong isolation level
create or replace function queen.renew_lease_v2(p_items jsonb)
returns jsonb
language plpgsql
as $$
declare
    v_lease   uuid[];
    v_seconds int[];
begin
    perform queen.require_read_committed();
    if jsonb_typeof(p_items) is distinct from 'array' then
        raise exception 'items must be an array' using errcode = 'QN001';
    end if;
    perform queen.check_names(i.value, '{index,leaseId,extendSeconds}', format('item %s: ', i.ord - 1))
       from jsonb_array_elements(p_items) with ordinality i(value, ord);
    select array_agg(queen.transaction_key(coalesce(i.value ->> 'leaseId', '')) order by i.ord),
           array_agg(queen.option_int(i.value, 'extendSeconds', 60, 0) order by i.ord)
      into v_lease, v_seconds
      from jsonb_array_elements(p_items) with ordinality i(value, ord);
    return (
        select coalesce(jsonb_agg(jsonb_build_object(
                   'index', coalesce(p_items -> r.idx -> 'index', to_jsonb(r.idx)),
                   'leaseId', p_items -> r.idx -> 'leaseId', 'success', r.why = 0,
                   'error', case r.why when 1 then 'Lease not found' when 2 then 'Lease already expired' end,
                   'expiresAt', t.at, 'newExpiresAt', t.at, 'lease_expires_at', t.at) order by r.idx), '[]')
          from queen.renew_leases(v_lease, v_seconds) r
          cross join lateral (select to_char(r.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) t(at));
end
$$;
