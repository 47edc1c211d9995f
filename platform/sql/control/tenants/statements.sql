-- A tenant with its connection data.
-- columns tenant_row: name text, kind text, url text?, database text?, credential text?, made bool, revision int8, added_us int8
--
-- A tenant as the interface shows it, JSON.
-- columns tenant_body: body text

-- statement: tenant_add
-- returns one row: added text, directory text
-- By platform/src/platform/tenants.c.
select platform.tenant_add($1::text, $2::text, $3::text, $4::text, $5::text), (select id::text from platform.directory);

-- statement: tenant_changes
-- returns: @tenant_row, gone bool
-- Tenants that changed in the last so many seconds, including removed ones; null: all.  The window is longer than the
-- interval between two
-- reads, because rows become visible after their time of change.  By platform/src/tenant/directory.c.
select name, kind, url, database, credential, made, revision, (extract(epoch from created_at) * 1000000)::int8 as added_us, state = 'gone'
  from platform.tenant
 where changed_at > coalesce(statement_timestamp() - $1::int4 * interval '1 s', '-infinity');

-- statement: tenant_find
-- returns: @tenant_row
-- One tenant, for its connections.  By platform/src/tenant/directory.c.
select name, kind, url, database, credential, made, revision, (extract(epoch from created_at) * 1000000)::int8 as added_us
  from platform.tenant
 where name = $1::text and state <> 'gone';

-- statement: tenant_list
-- returns one row: body text, behind text, total int8, troubled int8
-- A page of tenants, as the interface shows them, and since when views of these wait for a refresh.
--   $1 part of the name, or null; $2 name, trouble (not ready or with an error first) or behind (oldest change first);
--   $3 limit, $4 offset; $5 mode of read models without one of their own
-- By platform/src/platform/tenants.c.
with all_found as (
    select t, t.name, t.state <> 'ready' or t.error is not null as troubled,
           (select min(r.first_change_at) from platform.read_model r
             where r.tenant = t.name and coalesce(r.mode, $5::text) = 'views') as behind_since
      from platform.tenant t
     where t.state <> 'gone' and ($1::text is null or strpos(lower(t.name), lower($1::text)) > 0)
), found as (
    select f.*, row_number() over (order by case when $2::text = 'trouble' then not f.troubled end,
                                            case when $2::text = 'behind' then f.behind_since end, f.name) as place
      from all_found f)
select coalesce(jsonb_agg(platform.tenant_json(p.t) order by p.place), '[]')::text,
       coalesce(jsonb_object_agg(p.name, platform.iso_ms(p.behind_since)) filter (where p.behind_since is not null), '{}')::text,
       (select count(*) from found), (select count(*) from found f where f.troubled)
  from (select * from found f order by f.place limit $3::int4 offset $4::int4) p;

-- statement: tenant_migrated
-- returns: @tenant_body
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
-- returns one row: outcome text?, database text?
-- By platform/src/platform/tenants.c.
select outcome, database from platform.tenant_remove($1::text, $2::boolean);

-- statement: tenant_rotate
-- returns one row: outcome text?, body text?
-- By platform/src/platform/tenants.c.
select outcome, body from platform.tenant_rotate($1::text, $2::text, $3::boolean, $4::text, $5::text, $6::text);

-- statement: tenant_rows
-- returns: @tenant_row
-- All tenants with their connection data, for migrations.  By platform/src/platform/migrate.c.
select name, kind, url, database, credential, made, revision, (extract(epoch from created_at) * 1000000)::int8 as added_us
  from platform.tenant
 where state <> 'gone'
 order by name;

-- statement: tenant_show
-- returns: @tenant_body
-- One tenant, as the interface shows it.  By platform/src/platform/tenants.c.
select platform.tenant_json(t)::text
  from platform.tenant t
 where t.name = $1::text and t.state <> 'gone';
