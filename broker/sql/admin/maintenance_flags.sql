-- queen.maintenance_flags: the maintenance modes that are on, for all brokers of this database.
--
-- called by  broker/src/broker/outage/maintenance.c, broker/src/broker/wake/feed.c (with every poll), broker/src/api/admin/system.c
-- out        1 pushes are buffered + 2 pops deliver nothing
create or replace function queen.maintenance_flags()
returns int
language sql stable
set search_path = queen, pg_temp
as $$
    select coalesce(sum(case key when 'maintenance_mode' then 1 when 'pop_maintenance_mode' then 2 else 0 end), 0)::int
      from queen.system_state
     where key in ('maintenance_mode', 'pop_maintenance_mode') and value -> 'enabled' = 'true'::jsonb
$$;
