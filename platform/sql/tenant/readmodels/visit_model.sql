-- crm.visit_model(model, mode): the start of a visit: sets the mode and returns the state of the model.
-- called by: platform/src/readmodel/visit.c
-- in:  model; mode: live or views
-- out: live_ready: the live table is complete and of the current definition; live_there: one exists or is being filled;
--      view_ready: the view is built and of the current definition; refreshed_ms_ago: null when never; unknown_columns: see
--      crm.unknown_columns
-- locks: the row, when the mode changes          raises: nothing
create or replace function crm.visit_model(p_model text, p_mode text, out live_ready boolean, out live_there boolean,
                                           out view_ready boolean, out refreshed_ms_ago bigint, out unknown_columns text)
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    version text := crm.read_model_version(p_model);
begin
    update crm.read_model r set mode = p_mode where r.model = p_model and r.mode <> p_mode;
    select coalesce(r.live_version = version and r.next_live_version is null, false),
           r.live_version is not null or r.next_live_version is not null,
           coalesce(r.view_version = version, false),
           greatest(0, extract(epoch from clock_timestamp() - r.refreshed_at) * 1000),
           array_to_string(crm.unknown_columns(), ', ')
    into live_ready, live_there, view_ready, refreshed_ms_ago, unknown_columns
    from crm.read_model r
    where r.model = p_model;
end
$$;
