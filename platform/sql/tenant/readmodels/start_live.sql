-- crm.start_live(model): starts to maintain a new live table next to the one in use.  From its commit on, crm.changed()
-- computes the customers of every transaction into it, and crm.fill_live() computes the others.
-- called by: crm.fill_live
-- in: model          out: -
-- locks: advisory 7642/changes exclusively for a moment: a transaction that called crm.changed() before the new table
--        existed ends first, and crm.fill_live() sees its data
-- raises: 55P03 when uncommitted changes block it for longer than 200 ms; try again
create or replace function crm.start_live(p_model text) returns void
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    relation text := p_model || '_live_next';
    version text := crm.read_model_version(p_model);
begin
    execute format('drop table if exists crm.%I, crm.%I', relation, p_model || '_live_old');
    execute format('create table crm.%I with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05) as %s with no data',
                   relation, crm.read_model_query(p_model, false));
    perform crm.index_read_model(p_model, relation, version, true);
    perform crm.recompute_function('recompute_' || p_model || '_next', relation, p_model, relation);

    perform set_config('lock_timeout', '200ms', true);
    perform pg_advisory_xact_lock(7642, crm.model_lock('changes'));
    update crm.read_model r set next_live_version = version, next_live_through = 0 where r.model = p_model;
end
$$;
