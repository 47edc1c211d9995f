-- crm.index_read_model(model, relation, version, live): creates the indexes of a new relation of a model. Their names
-- contain the version, because the old relation still has its own.
-- called by: crm.build_view, crm.start_live
-- in:  model; relation: a name in schema crm; version: of the definition; live: only those for live tables
-- out: -          locks: those of create index, on a relation without readers          raises: nothing of its own
create or replace function crm.index_read_model(p_model text, p_relation text, p_version text, p_live boolean) returns void
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    i record;
begin
    for i in select * from crm.read_model_indexes(p_model) where live or not p_live loop
        execute format('create %s index %I on crm.%I %s', case when i.is_unique then 'unique' else '' end,
                       format('%s_%s_%s_%s', p_model, case when p_live then 'live' else 'mv' end,
                              left(p_version, 8), i.suffix),
                       p_relation, i.definition);
    end loop;
end
$$;
