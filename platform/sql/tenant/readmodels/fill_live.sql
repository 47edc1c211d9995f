-- crm.fill_live(model, chunk): one step towards a complete live table; call it until it returns ready. Ingestion continues
-- meanwhile.
-- called by: platform/src/readmodel/visit.c
-- in:  model; chunk: number of customers per step
-- out: ready: the table is complete and of the current definition; started; filling: a chunk was computed; busy: another
--      session is filling, or readers or writers blocked it; try again
-- locks: advisory 7642/model_live (tried); then those of crm.changed for a chunk, of crm.start_live or crm.finish_live
-- raises: errors of the computation
create or replace function crm.fill_live(p_model text, p_chunk int) returns text
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    model crm.read_model;
    version text := crm.read_model_version(p_model);
    customers uuid[];
    through bigint;
begin
    if not pg_try_advisory_xact_lock(7642, crm.model_lock(p_model || '_live')) then
        return 'busy';
    end if;
    select * into model from crm.read_model where read_model.model = p_model;
    if model.live_version = version and model.next_live_version is null then
        return 'ready';
    end if;
    begin
        if model.next_live_version is distinct from version then
            perform crm.start_live(p_model);
            return 'started';
        end if;

        select array_agg(c.customer_uuid), max(c.id) into customers, through
        from (select id, customer_uuid from crm.customer where id > model.next_live_through order by id limit p_chunk) c;
        if through is null then
            execute format('analyze crm.%I', p_model || '_live_next');
            perform crm.finish_live(p_model);
            return 'ready';
        end if;
    exception when lock_not_available then
        return 'busy';
    end;
    execute format('select crm.%I($1)', 'recompute_' || p_model || '_next') using customers;
    update crm.read_model r set next_live_through = through where r.model = p_model;
    return 'filling';
end
$$;
