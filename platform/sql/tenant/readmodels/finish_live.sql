-- crm.finish_live(model): puts the filled live table in the place of the one in use.
-- called by: crm.fill_live
-- in: model          out: -
-- locks: the row of crm.read_model, advisory 7642/changes alone, then ACCESS EXCLUSIVE on the old table; the last two
--        are waited for 20 ms at most, so that neither writers nor readers wait longer behind it
-- raises: 55P03 when that is not enough; try again
create or replace function crm.finish_live(p_model text) returns void
language plpgsql
set search_path = crm, pg_temp
as $$
begin
    -- All that can be done before the locks; the old table is dropped later, by crm.start_live.
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
