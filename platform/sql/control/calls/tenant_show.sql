-- One tenant, as the interface shows it.  By src/platform/tenants.c.
select platform.tenant_json(t)::text
  from platform.tenant t
 where t.name = $1::text and t.state <> 'gone'
