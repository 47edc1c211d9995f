-- platform.tenant_rotate: changes the address or credential of a tenant whose database the platform did not create.
--
-- called by: platform/src/platform/tenants.c
-- in:        name; url and database (null: unchanged); whether a credential is given, and its value; the kind of the url
-- out:       outcome: changed, unknown, made (created by the platform), kind (the url is of another kind); the tenant as
--            JSON
-- locks:     advisory, by address; the row of platform.tenant
create or replace function platform.tenant_rotate(p_name text, p_url text, p_has_credential boolean, p_credential text,
                                                  p_database text, p_kind text, out outcome text, out body text)
language plpgsql set search_path = platform, pg_temp as $$
declare
    v tenant;
begin
    if p_url is not null then
        perform pg_advisory_xact_lock(hashtextextended(p_url, 7642));
    end if;
    select * into v from tenant t where t.name = p_name and t.state <> 'gone' for update;
    if not found then
        outcome := 'unknown';
    elsif v.made then
        outcome := 'made';
    elsif p_url is not null and v.kind <> p_kind then
        outcome := 'kind';
    elsif exists (select from tenant t where t.name <> p_name and t.state <> 'gone' and (t.kind, t.url, t.database) = (p_kind, p_url, p_database)) then
        outcome := 'database';
    else
        outcome := 'changed';
        update tenant t
           set url = coalesce(p_url, t.url), database = coalesce(p_database, t.database),
               credential = case when p_has_credential then p_credential else t.credential end,
               revision = t.revision + 1, changed_at = clock_timestamp()
         where t.name = p_name
        returning t.* into v;
        body := tenant_json(v)::text;
    end if;
end $$;
