-- platform.tenant_remove: removes a tenant.  Its row stays marked as gone for other processes; rows that were marked more
-- than a day ago are deleted.
--
-- called by: platform/src/platform/tenants.c
-- in:        name; whether its database is to be dropped
-- out:       outcome: removed, unknown, or adopted (not created by the platform, so it is not dropped and nothing changes);
--            the name of the database
-- locks:     the row of platform.tenant
create or replace function platform.tenant_remove(p_name text, p_drop boolean, out outcome text, out database text)
language plpgsql set search_path = platform, pg_temp as $$
declare
    v_made boolean;
begin
    select t.made, t.database into v_made, database
      from tenant t where t.name = p_name and t.state <> 'gone' for update;
    if not found then
        outcome := 'unknown';
    elsif p_drop and not v_made then
        outcome := 'adopted';
    else
        outcome := 'removed';
        update tenant t
           set state = 'gone', credential = null, revision = t.revision + 1, changed_at = clock_timestamp()
         where t.name = p_name;
        delete from tenant t where t.state = 'gone' and t.changed_at < now() - interval '1 day';
    end if;
end $$;
