-- All tenants, as the interface shows them.  By src/platform/tenants.c.
select coalesce(jsonb_agg(platform.tenant_json(t) order by t.name), '[]')::text
  from platform.tenant t
 where t.state <> 'gone'
