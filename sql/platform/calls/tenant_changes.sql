-- What has changed lately, tenants that are gone among it.  The window is longer than the pause between two looks, since rows
-- become visible after their time of change.  By src/tenant/directory.c.
select name, kind, url, database, credential, made, revision, state = 'gone'
  from platform.tenant
 where changed_at > clock_timestamp() - interval '60 s'
