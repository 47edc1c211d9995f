-- By src/platform/tenants.c.
select outcome, database from platform.tenant_remove($1::text, $2::boolean)
