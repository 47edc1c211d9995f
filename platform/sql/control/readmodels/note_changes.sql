-- platform.note_changes(tenants): records that the data of these tenants changed.  A visit determines the models.
-- called by: platform/src/readmodel/readmodel.c, every second for the tenants that had events
-- in:  tenants
-- out: number of rows        locks: rows of read_model, by tenant and model        raises: nothing; unknown tenants are
--      ignored
create or replace function platform.note_changes(p_tenants text[]) returns int
language plpgsql
set search_path = platform, pg_temp
as $$
declare
    n int;
begin
    with told as (
        select r.tenant, r.model
        from platform.read_model r
        where r.tenant = any (p_tenants)
          -- Do not update the row of a tenant with continuous changes every time, unless a visit depends on it.
          and (r.first_change_at is null or r.changes <= r.claimed_changes
               or r.last_change_at not between clock_timestamp() - interval '2 seconds' and clock_timestamp())
        order by r.tenant, r.model
        for no key update of r
    )
    update platform.read_model r
    set last_change_at = clock_timestamp(), first_change_at = coalesce(r.first_change_at, clock_timestamp()), changes = r.changes + 1
    from told
    where r.tenant = told.tenant and r.model = told.model;
    get diagnostics n = row_count;
    return n;
end
$$;
