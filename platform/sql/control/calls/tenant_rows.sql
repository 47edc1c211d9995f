-- All tenants with what it takes to connect, for migrations.  By src/platform/migrate.c.
select name, kind, url, database, credential, made, revision
  from platform.tenant
 where state <> 'gone'
 order by name
