-- What became of a migration: the version reached, or null and why it failed.  Not a change of connection: the revision stays.
-- By src/platform/migrate.c.
update platform.tenant t
   set schema_version = coalesce($2::int4, t.schema_version),
       state = case when $2::int4 is null then 'failed' else 'ready' end,
       error = $3::text,
       migrated_at = case when $2::int4 is null then t.migrated_at else now() end
 where t.name = $1::text and t.state <> 'gone'
returning platform.tenant_json(t)::text
