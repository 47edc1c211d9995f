-- queen.set_maintenance: switch a maintenance mode. Brokers read it with their next poll of the change feed.
--
-- called by  broker/src/api/admin/system.c (call "set_maintenance")
-- in         p_key     maintenance_mode or pop_maintenance_mode
--            p_enabled the new value
-- out        all modes, as queen.maintenance_flags
-- locks      the row of queen.system_state
create or replace function queen.set_maintenance(p_key text, p_enabled boolean)
returns int
language plpgsql
set search_path = queen, pg_temp
as $$
begin
    insert into queen.system_state as s (key, value)
    values (p_key, jsonb_build_object('enabled', p_enabled))
        on conflict (key) do update set value = excluded.value, updated_at = clock_timestamp();
    return queen.maintenance_flags();
end
$$;
