-- Tenants that changed in the last so many seconds, removed ones among them; null: all.  The window is longer than the pause between two
-- looks, since rows become visible after their time of change.  By src/tenant/directory.c.
select name, kind, url, database, credential, made, revision, state = 'gone'
  from platform.tenant
 where changed_at > coalesce(statement_timestamp() - $1::int4 * interval '1 s', '-infinity')
