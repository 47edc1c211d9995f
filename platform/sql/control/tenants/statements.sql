-- statement: tenant_add
-- By platform/src/platform/tenants.c.
select platform.tenant_add($1::text, $2::text, $3::text, $4::text, $5::text);

-- statement: tenant_changes
-- Tenants that changed in the last so many seconds, including removed ones; null: all.  The window is longer than the
-- interval between two
-- reads, because rows become visible after their time of change.  By platform/src/tenant/directory.c.
select name, kind, url, database, credential, made, revision, state = 'gone'
  from platform.tenant
 where changed_at > coalesce(statement_timestamp() - $1::int4 * interval '1 s', '-infinity');

-- statement: tenant_find
-- One tenant, for its connections.  By platform/src/tenant/directory.c.
select name, kind, url, database, credential, made, revision
  from platform.tenant
 where name = $1::text and state <> 'gone';

-- statement: tenant_list
-- All tenants, as the interface shows them.  By platform/src/platform/tenants.c.
select coalesce(jsonb_agg(platform.tenant_json(t) order by t.name), '[]')::text
  from platform.tenant t
 where t.state <> 'gone';

-- statement: tenant_migrated
-- Records the result of a migration: the version reached, or null and the error.  The connection does not change, so the
-- revision stays.
-- By platform/src/platform/migrate.c.
update platform.tenant t
   set schema_version = coalesce($2::int4, t.schema_version),
       state = case when $2::int4 is null then 'failed' else 'ready' end,
       error = $3::text,
       migrated_at = case when $2::int4 is null then t.migrated_at else now() end
 where t.name = $1::text and t.state <> 'gone'
returning platform.tenant_json(t)::text;

-- statement: tenant_remove
-- By platform/src/platform/tenants.c.
select outcome, database from platform.tenant_remove($1::text, $2::boolean);

-- statement: tenant_rotate
-- By platform/src/platform/tenants.c.
select outcome, body from platform.tenant_rotate($1::text, $2::text, $3::boolean, $4::text, $5::text, $6::text);

-- statement: tenant_rows
-- All tenants with their connection data, for migrations.  By platform/src/platform/migrate.c.
select name, kind, url, database, credential, made, revision
  from platform.tenant
 where state <> 'gone'
 order by name;

-- statement: tenant_show
-- One tenant, as the interface shows it.  By platform/src/platform/tenants.c.
select platform.tenant_json(t)::text
  from platform.tenant t
 where t.name = $1::text and t.state <> 'gone';
