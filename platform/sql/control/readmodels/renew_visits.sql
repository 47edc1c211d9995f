-- platform.renew_visits(who, lease_ms): renews the claims of a process.
-- called by: platform/src/readmodel/readmodel.c
-- in: who, lease_ms          out: number of claims        locks: its rows, by tenant and model        raises: nothing
create or replace function platform.renew_visits(p_who text, p_lease_ms int) returns int
language plpgsql
set search_path = platform, pg_temp
as $$
declare
    n int;
begin
    with mine as (
        select tenant, model from platform.read_model
        where claimed_by = p_who and (first_change_at is not null or wanted_at is not null)
        order by tenant, model
        for no key update
    )
    update platform.read_model r
    set claimed_until = clock_timestamp() + p_lease_ms * interval '1 ms'
    from mine
    where r.tenant = mine.tenant and r.model = mine.model;
    get diagnostics n = row_count;
    return n;
end
$$;
