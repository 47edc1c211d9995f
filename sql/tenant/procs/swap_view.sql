-- crm.swap_view(model): puts the view that crm.refresh_view() built in the place of the one in use.
--
-- The swap needs the old view for a moment without readers.  Waiting for that would hold up readers who come after,
-- so it waits 20 ms at most; the caller tries again.
-- called by: src/readmodel/visit.c
-- in:  model
-- out: true: done, or nothing was waiting to be swapped; false: readers were there, try again
-- locks: advisory 7642/model, then ACCESS EXCLUSIVE on the old view for at most 20 ms + the rename
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
    perform set_config('lock_timeout', '20ms', true);
    begin
        execute format('drop materialized view if exists crm.%I', p_model || '_mv');
        execute format('alter materialized view crm.%I rename to %I', p_model || '_mv_next', p_model || '_mv');
    exception when lock_not_available then
        return false;
    end;
    update crm.read_model r
    set view_version = r.next_view_version, view_as_of = r.next_view_as_of, view_mark = r.next_view_mark,
        refreshed_at = clock_timestamp(), refreshes = r.refreshes + 1, last_error = null,
        next_view_version = null, next_view_as_of = null, next_view_mark = null
    where r.model = p_model;
    return true;
end
$$;
