-- platform.claim_visit(tenant, model, who, lease_ms, at_once): claims a read model for a visit.
--
-- The claim only distributes the work.  A lock in the tenant's database ensures that a view is never refreshed twice at
-- once, even if a claim expires too early.
-- called by: platform/src/readmodel/visit.c
-- in:  who: the process; lease_ms: duration without renewal; at_once: how many tenants all processes together may visit at
--      once
-- out: taken; abandoned_by: the process whose claim expired
-- locks: the advisory lock 7642/1 for the transaction, so that two processes do not both take the last place; the row
-- raises: nothing
create or replace function platform.claim_visit(p_tenant text, p_model text, p_who text, p_lease_ms int, p_at_once int,
                                                out taken boolean, out abandoned_by text)
language plpgsql
set search_path = platform, pg_temp
as $$
declare
    r platform.read_model;
begin
    taken := false;
    perform pg_advisory_xact_lock(7642, 1);
    if (select count(distinct c.tenant) from platform.read_model c
        where c.claimed_until > clock_timestamp() and c.claimed_until <= clock_timestamp() + p_lease_ms * interval '1 ms'
          and c.tenant <> p_tenant
          and (c.first_change_at is not null or c.wanted_at is not null)) >= p_at_once then
        return;
    end if;
    select * into r from platform.read_model m where m.tenant = p_tenant and m.model = p_model for no key update;
    -- A claim that ends later than one lease from now was made before the clock was set back.  A live process has renewed
    -- it since.
    if not found or (r.claimed_until > clock_timestamp() and r.claimed_until <= clock_timestamp() + p_lease_ms * interval '1 ms')
       or (r.first_change_at is null and r.wanted_at is null) then
        return;
    end if;
    abandoned_by := r.claimed_by;
    update platform.read_model m
    set claimed_by = p_who, claimed_at = clock_timestamp(), claimed_until = clock_timestamp() + p_lease_ms * interval '1 ms',
        claimed_changes = m.changes, claimed_wishes = m.wishes
    where m.tenant = p_tenant and m.model = p_model;
    taken := true;
end
$$;
