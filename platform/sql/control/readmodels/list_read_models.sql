-- platform.list_read_models(default, search, sort, limit, offset): a page of the read models in the control database.
-- needs: iso_ms
-- called by: platform/src/platform/refresh.c
-- in:  default: the mode of tenants without one of their own; search: a part of the tenant's name, null: all; sort: name, or behind (views whose
--      oldest change waits longest first)
-- out: a JSON array, [] when there are none, and the number of models that match        locks: none        raises: nothing
create or replace function platform.list_read_models(p_default text, p_search text, p_sort text, p_limit int, p_offset int)
returns table (body text, total bigint)
language sql stable
set search_path = platform, pg_temp
as $$
    with found as (
        select r.*, row_number() over (order by case when p_sort = 'behind' and coalesce(r.mode, p_default) = 'views' then r.first_change_at end,
                                       r.tenant, r.model) as place
          from platform.read_model r
          join platform.tenant t on t.name = r.tenant and t.state <> 'gone'
         where p_search is null or strpos(lower(r.tenant), lower(p_search)) > 0)
    select coalesce(json_agg(json_build_object(
               'tenant', r.tenant, 'model', r.model, 'mode', r.mode, 'effectiveMode', coalesce(r.mode, p_default),
               'changedAt', platform.iso_ms(r.last_change_at),
               'staleSince', platform.iso_ms(r.first_change_at),
               'wantedAt', platform.iso_ms(r.wanted_at),
               'visitedAt', platform.iso_ms(r.visited_at),
               'refreshedAt', platform.iso_ms(r.refreshed_at),
               'visitedBy', case when r.claimed_until > clock_timestamp() then r.claimed_by end,
               'failures', r.failures, 'error', r.error,
               'retryAt', platform.iso_ms(r.retry_at)) order by r.place), '[]')::text,
           (select count(*) from found)
      from (select * from found f order by f.place limit p_limit offset p_offset) r
$$;
