-- platform.enrol_read_models(all): adds rows for new tenants, and requests a visit for tenants whose schema was migrated
-- since, because definitions may have changed.  A process that starts requests a visit of all tenants: its last changes
-- before a crash may not have been reported.
-- called by: platform/src/readmodel/readmodel.c
-- in:  all: every tenant (when a process starts), else those that are new or were migrated since their last visit
-- out: number of rows        locks: rows of read_model, by tenant        raises: nothing
create or replace function platform.enrol_read_models(p_all boolean) returns int
language plpgsql
set search_path = platform, pg_temp
as $$
declare
    n int;
begin
    insert into platform.read_model as r (tenant, model, wanted_at)
    select t.name, m, clock_timestamp()
    from platform.tenant t, unnest(array['customer_attributes', 'customer_transactions']) m
    where t.kind = 'postgresql' and t.state = 'ready'
      and not exists (select from platform.read_model e
                      where e.tenant = t.name and e.model = m and not p_all
                        and e.enrolled_at >= coalesce(t.migrated_at, '-infinity'))
    order by t.name, m
    on conflict (tenant, model) do update
       set wanted_at = clock_timestamp(), wishes = r.wishes + 1, enrolled_at = clock_timestamp();
    get diagnostics n = row_count;
    return n;
end
$$;
