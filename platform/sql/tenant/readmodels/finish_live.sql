-- crm.finish_live(model): replaces the live table in use by the filled one.
-- called by: crm.fill_live
-- in: model          out: -
-- locks: the row of crm.read_model, advisory 7642/changes exclusively, then ACCESS EXCLUSIVE on the old table; it waits at
--        most 20 ms for the last two, so that writers and readers do not queue behind it for longer
-- raises: 55P03 on timeout; try again
create or replace function crm.finish_live(p_model text) returns void
language plpgsql
set search_path = crm, pg_temp
as $$
begin
    -- Everything that is possible before the locks.  crm.start_live drops the old table later.
    execute format('drop table if exists crm.%I', p_model || '_live_old');
    perform crm.recompute_function('recompute_' || p_model, p_model || '_live', p_model, p_model || '_live_next');
    perform crm.recompute_parts_function(p_model, p_model || '_live_next');
    update crm.read_model r
    set live_version = r.next_live_version, live_at = clock_timestamp(), live_in_parts = true,
        next_live_version = null, next_live_through = null
    where r.model = p_model;

    perform set_config('lock_timeout', '20ms', true);
    perform pg_advisory_xact_lock(7642, crm.model_lock('changes'));
    execute format('alter table if exists crm.%I rename to %I', p_model || '_live', p_model || '_live_old');
    execute format('alter table crm.%I rename to %I', p_model || '_live_next', p_model || '_live');
end
$$;
