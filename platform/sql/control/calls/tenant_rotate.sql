-- By src/platform/tenants.c.
select outcome, body from platform.tenant_rotate($1::text, $2::text, $3::boolean, $4::text, $5::text, $6::text)
