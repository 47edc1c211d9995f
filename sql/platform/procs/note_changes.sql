-- platform.note_changes(tenants, attributes, transactions): the data of these tenants changed; one element each.
-- called by: src/readmodel/readmodel.c, every few seconds for the tenants that had events
-- in:  tenants; attributes, transactions: which models the changes are about
-- out: how many rows        locks: rows of read_model, by tenant and model        raises: nothing; unknown tenants are left out
create or replace function platform.note_changes(p_tenants text[], p_attributes boolean[], p_transactions boolean[])
returns int
language plpgsql
set search_path = platform, pg_temp
as $$
declare
    n int;
begin
    with told as (
        select r.tenant, r.model
        from unnest(p_tenants, p_attributes, p_transactions) c (tenant, attributes, transactions)
        join platform.read_model r on r.tenant = c.tenant
            and (case r.model when 'customer_attributes' then c.attributes else c.transactions end)
        order by r.tenant, r.model
        for no key update of r
    )
    update platform.read_model r
    set last_change_at = clock_timestamp(), first_change_at = coalesce(r.first_change_at, clock_timestamp())
    from told
    where r.tenant = told.tenant and r.model = told.model;
    get diagnostics n = row_count;
    return n;
end
$$;
