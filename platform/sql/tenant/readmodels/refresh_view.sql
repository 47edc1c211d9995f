-- crm.refresh_view(model, who, work_mem_mb, force): refreshes a model's materialized view if its data changed.
--
-- It runs in one transaction that holds the model's lock, so there is nothing to clean up when the caller or the server
-- dies.  A changed definition, or one that was never built, is built next to the old view as <model>_mv_next for
-- crm.swap_view.  None of this blocks readers.
-- called by: platform/src/readmodel/visit.c
-- in:  model
--      who          shown as the refresher in crm.mv_refresh_status while this runs
--      work_mem_mb  for this transaction only
--      force        refresh although nothing changed
-- out: one row.  action: busy (another session refreshes), clean (nothing changed), refreshed, or built (swap it next);
--      rows and ms of the work
-- locks: advisory 7642/model until commit (tried, not waited for); EXCLUSIVE on the view, which admits readers; the row of
--        crm.read_model, at the end
-- raises: errors of the computation
create or replace function crm.refresh_view(p_model text, p_who text, p_work_mem_mb int, p_force boolean,
                                            out action text, out rows bigint, out ms int)
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    model crm.read_model;
    version text := crm.read_model_version(p_model);
    began timestamptz := clock_timestamp();
    mark bigint;
begin
    rows := 0;
    ms := 0;
    perform set_config('application_name', left('refresh by ' || p_who, 63), true); -- set before the lock is taken
    if not pg_try_advisory_xact_lock(7642, crm.model_lock(p_model)) then
        action := 'busy';
        return;
    end if;

    -- Read the mark, then check for uncommitted changes, then read the data.  The data misses a change only if it commits
    -- after this line: then it holds the lock now, or it is not counted yet.
    mark := crm.model_mark(p_model);
    if crm.changes_under_way() then
        mark := mark - 1;
    end if;

    select * into model from crm.read_model where read_model.model = p_model;
    if model.view_version = version and not p_force and crm.model_mark(p_model) <= model.view_mark then
        action := 'clean';
        return;
    end if;

    perform set_config('work_mem', p_work_mem_mb || 'MB', true),
            set_config('maintenance_work_mem', p_work_mem_mb || 'MB', true),
            -- JIT compilation of these hundreds of expressions takes longer than running them.
            set_config('jit', 'off', true);

    if model.view_version = version then
        execute format('refresh materialized view concurrently crm.%I', p_model || '_mv');
        execute format('select count(*) from crm.%I', p_model || '_mv') into rows;
        ms := extract(epoch from clock_timestamp() - began) * 1000;
        update crm.read_model r
        set view_as_of = began, view_mark = mark, refreshed_at = clock_timestamp(), refresh_ms = ms, refresh_rows = rows,
            refreshes = r.refreshes + 1, last_error = null
        where r.model = p_model;
        action := 'refreshed';
        return;
    end if;

    rows := crm.build_view(p_model, version);
    ms := extract(epoch from clock_timestamp() - began) * 1000;
    update crm.read_model r
    set next_view_version = version, next_view_as_of = began, next_view_mark = mark, refresh_ms = ms, refresh_rows = rows
    where r.model = p_model;
    action := 'built';
end
$$;
