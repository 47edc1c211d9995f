-- platform.tenant_json: a tenant as the HTTP interface shows it, without secrets.
--
-- called by: platform/sql/control/tenants/statements.sql
-- in:        a row of platform.tenant
-- out:       jsonb
create or replace function platform.tenant_json(t platform.tenant) returns jsonb
language sql immutable set search_path = platform, pg_temp as $$
    select jsonb_build_object(
        'tenant', t.name,
        'kind', t.kind,
        'url', t.url,
        'database', t.database,
        'credential', case when t.credential like 'env:%' or t.credential like 'file:%' then t.credential
                           when t.credential is not null then 'stored' end,
        'made', t.made,
        'schemaVersion', t.schema_version,
        'state', t.state,
        'error', t.error,
        'createdAt', to_char(t.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'migratedAt', to_char(t.migrated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
$$;
