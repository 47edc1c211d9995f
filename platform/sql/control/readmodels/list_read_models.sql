-- platform.list_read_models(tenant, default): the read models in the control database.
-- needs: iso_ms
-- called by: platform/src/platform/refresh.c
-- in:  tenant; null: all; default: the mode of tenants without one of their own
-- out: a JSON array, ordered by tenant and model; [] when there are none        locks: none        raises: nothing
create or replace function platform.list_read_models(p_tenant text, p_default text) returns text
language sql stable
set search_path = platform, pg_temp
as $$
    select coalesce(json_agg(json_build_object(
               'tenant', r.tenant, 'model', r.model, 'mode', r.mode, 'effectiveMode', coalesce(r.mode, p_default),
               'changedAt', platform.iso_ms(r.last_change_at),
               'staleSince', platform.iso_ms(r.first_change_at),
               'wantedAt', platform.iso_ms(r.wanted_at),
               'visitedAt', platform.iso_ms(r.visited_at),
               'refreshedAt', platform.iso_ms(r.refreshed_at),
               'visitedBy', case when r.claimed_until > clock_timestamp() then r.claimed_by end,
               'failures', r.failures, 'error', r.error,
               'retryAt', platform.iso_ms(r.retry_at)) order by r.tenant, r.model), '[]')::text
    from platform.read_model r
    join platform.tenant t on t.name = r.tenant and t.state <> 'gone'
    where p_tenant is null or r.tenant = p_tenant
$$;
