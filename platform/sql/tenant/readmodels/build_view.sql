-- crm.build_view(model, version): builds a new materialized view of a model next to the current one, as
-- crm.<model>_mv_next.
-- called by: crm.refresh_view
-- in: model; version of the definition
-- out: rows          locks: none that block readers          raises: errors of the computation
create or replace function crm.build_view(p_model text, p_version text) returns bigint
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    n bigint;
begin
    -- Drop a view that was built and never swapped, and one that was swapped out.
    execute format('drop materialized view if exists crm.%I, crm.%I', p_model || '_mv_next', p_model || '_mv_old');
    execute format('create materialized view crm.%I as %s', p_model || '_mv_next',
                   crm.read_model_query(p_model, false));
    perform crm.index_read_model(p_model, p_model || '_mv_next', p_version, false);
    execute format('analyze crm.%I', p_model || '_mv_next');
    execute format('select count(*) from crm.%I', p_model || '_mv_next') into n;
    return n;
end
$$;
