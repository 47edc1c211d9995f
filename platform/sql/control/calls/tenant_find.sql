-- One tenant, for its connections.  By src/tenant/directory.c.
select name, kind, url, database, credential, made, revision
  from platform.tenant
 where name = $1::text and state <> 'gone'
