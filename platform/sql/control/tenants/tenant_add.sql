-- platform.tenant_add: reserves the name of a new tenant.
--
-- called by: platform/src/platform/tenants.c
-- in:        name; kind, url (null: created on the platform's server), database, credential
-- out:       added: the name is reserved; name: it is in use; database: another tenant has this address
-- locks:     advisory, by address; the row of platform.tenant; rows of platform.ingest_stamp and platform.read_model
--
-- A removed row is reused, and so is one whose database was never completed: the process that started it has ended or has
-- reported the failure to its client.
create or replace function platform.tenant_add(p_name text, p_kind text, p_url text, p_database text, p_credential text)
returns text language plpgsql set search_path = platform, pg_temp as $$
begin
    if p_url is not null then
        perform pg_advisory_xact_lock(hashtextextended(p_url, 7642));
        if exists (select from tenant t where t.name <> p_name and t.state <> 'gone' and (t.kind, t.url, t.database) = (p_kind, p_url, p_database)) then
            return 'database';
        end if;
    end if;
    insert into tenant as t (name, kind, url, database, credential, made)
         values (p_name, p_kind, p_url, p_database, p_credential, p_url is null)
    on conflict (name) do update
            set kind = excluded.kind, url = excluded.url, database = excluded.database, credential = excluded.credential,
                made = excluded.made, schema_version = 0, state = 'new', error = null, revision = t.revision + 1,
                created_at = now(), migrated_at = null, changed_at = clock_timestamp()
          where t.state = 'gone' or (t.state = 'new' and t.changed_at < clock_timestamp() - interval '2 min');
    if not found then
        return 'name';
    end if;
    -- Of another database of this name:
    delete from ingest_stamp s where s.tenant = p_name;
    delete from read_model r where r.tenant = p_name;
    return 'added';
end $$;
