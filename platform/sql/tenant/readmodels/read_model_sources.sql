-- crm.read_model_sources(): the relation to query for each model, and its freshness.
-- called by: platform/src/audience (segments)
-- in:  -
-- out: one row per model.  relation: a name in schema crm, null: not built yet, use the write model; source: live, view or
--      null; stale_ms: 0 if it contains all committed data
-- locks: none          raises: nothing
create or replace function crm.read_model_sources()
returns table (model text, relation text, source text, as_of timestamptz, stale_ms bigint)
language sql stable
set search_path = crm, pg_temp
-- needs: model_mark
as $$
    select r.model,
           case s.source when 'live' then r.model || '_live' when 'view' then r.model || '_mv' end,
           s.source,
           case when s.source = 'live' or crm.model_mark(r.model) <= r.view_mark then clock_timestamp() else r.view_as_of end,
           case when s.source = 'live' or crm.model_mark(r.model) <= r.view_mark then 0
                else greatest(0, extract(epoch from clock_timestamp() - r.view_as_of) * 1000) end::bigint
    from crm.read_model r,
         lateral (select case when r.mode = 'live' and r.live_version is not null then 'live'
                              when r.view_version is not null then 'view' end as source) s
    order by r.model
$$;
