-- platform.want_visit(tenant, model, mode): requests a visit as soon as a process has time, and sets the mode.
-- called by: platform/src/platform/refresh.c
-- in:  model: null for both; mode: live, views; default: the setting of the process; null: unchanged
-- out: number of models; 0: unknown tenant, or it has no read models        locks: its rows        raises: nothing
--
-- A new tenant may not be enrolled yet (platform.enrol_read_models): then its rows are added here.
create or replace function platform.want_visit(p_tenant text, p_model text, p_mode text) returns int
language plpgsql
set search_path = platform, pg_temp
as $$
declare
    n int;
begin
    insert into platform.read_model (tenant, model)
    select t.name, m
    from platform.tenant t, unnest(array['customer_attributes', 'customer_transactions']) m
    where t.name = p_tenant and t.kind = 'postgresql' and t.state = 'ready'
    order by m
    on conflict (tenant, model) do nothing;
    update platform.read_model r
    set wanted_at = clock_timestamp(), wishes = r.wishes + 1, retry_at = null,
        mode = case when p_mode is null then r.mode else nullif(p_mode, 'default') end
    where r.tenant = p_tenant and (p_model is null or r.model = p_model);
    get diagnostics n = row_count;
    return n;
end
$$;
