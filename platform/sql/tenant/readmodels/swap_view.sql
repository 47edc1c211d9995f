-- crm.swap_view(model): replaces the view in use by the one that crm.refresh_view() built.
--
-- The swap needs the old view without readers for a moment.  Waiting for that would block later readers, so it waits at
-- most 20 ms and the caller tries again.  While it has the lock it only renames.
-- called by: platform/src/readmodel/visit.c
-- in:  model
-- out: true: done, or there was nothing to swap; false: blocked by readers, try again
-- locks: advisory 7642/model, the row of crm.read_model, then ACCESS EXCLUSIVE on the old view
-- raises: nothing of its own
create or replace function crm.swap_view(p_model text) returns boolean
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    model crm.read_model;
begin
    if not pg_try_advisory_xact_lock(7642, crm.model_lock(p_model)) then
        return false;
    end if;
    select * into model from crm.read_model where read_model.model = p_model;
    if model.next_view_version is null then
        return true;
    end if;
    -- Everything that is possible before the lock.  crm.build_view drops the old view later.
    execute format('drop materialized view if exists crm.%I', p_model || '_mv_old');
    update crm.read_model r
    set view_version = r.next_view_version, view_as_of = r.next_view_as_of, view_mark = r.next_view_mark,
        refreshed_at = clock_timestamp(), refreshes = r.refreshes + 1, last_error = null,
        next_view_version = null, next_view_as_of = null, next_view_mark = null
    where r.model = p_model;
    perform set_config('lock_timeout', '20ms', true);
    execute format('alter materialized view if exists crm.%I rename to %I', p_model || '_mv', p_model || '_mv_old');
    execute format('alter materialized view crm.%I rename to %I', p_model || '_mv_next', p_model || '_mv');
    return true;
exception when lock_not_available then
    return false;
end
$$;
