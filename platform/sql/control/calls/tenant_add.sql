-- By src/platform/tenants.c.
select platform.tenant_add($1::text, $2::text, $3::text, $4::text, $5::text)
