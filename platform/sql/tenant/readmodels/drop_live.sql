-- crm.drop_live(model): drops the live table: the tenant uses the views.
-- called by: platform/src/readmodel/visit.c
-- in: model          out: true: dropped; false: blocked by readers or writers, try again
-- locks: those of crm.finish_live          raises: nothing of its own
create or replace function crm.drop_live(p_model text) returns boolean
language plpgsql
set search_path = crm, pg_temp
as $$
begin
    perform set_config('lock_timeout', '20ms', true);
    perform pg_advisory_xact_lock(7642, crm.model_lock('changes'));
    execute format('drop table if exists crm.%I, crm.%I, crm.%I', p_model || '_live', p_model || '_live_next',
                   p_model || '_live_old');
    update crm.read_model r
    set live_version = null, live_at = null, next_live_version = null, next_live_through = null
    where r.model = p_model;
    return true;
exception when lock_not_available then
    return false;
end
$$;
