-- crm.read_models_json(): the tenant's read models for GET /api/v1/tenants/:tenant/read-models.
-- needs: read_model_sources, mv_refresh_status, unknown_columns, iso_ms
-- called by: platform/src/platform/refresh.c
-- in: -          out: JSON text          locks: none          raises: nothing
create or replace function crm.read_models_json() returns text
language sql volatile
set search_path = crm, pg_temp
as $$
    select json_build_object(
        'models', json_agg(json_build_object(
            'model', r.model,
            'mode', r.mode,
            'source', s.source,
            'staleMs', s.stale_ms,
            'changedAt', crm.iso_ms(v.last_data_change_at),
            'view', json_build_object(
                'built', r.view_version is not null,
                'version', r.view_version,
                'needsBuild', v.needs_build,
                'refreshedAt', crm.iso_ms(v.last_refresh_at),
                'asOf', crm.iso_ms(v.data_as_of),
                'stale', v.is_stale,
                'refreshing', v.is_refreshing,
                'refreshingBy', v.refreshing_by,
                'refreshingSince', crm.iso_ms(v.refreshing_since),
                'durationMs', v.duration_ms,
                'rows', v.rows,
                'refreshes', v.refreshes,
                'failures', v.failures,
                'error', v.last_error),
            'live', json_build_object(
                'ready', r.live_version is not null,
                'version', r.live_version,
                'since', crm.iso_ms(r.live_at),
                'filling', r.next_live_version is not null,
                'filledThrough', r.next_live_through,
                'checkedRows', r.checked_rows,
                'differingRows', r.differing_rows,
                'checkedAt', crm.iso_ms(r.checked_at),
                'differedAt', crm.iso_ms(r.differed_at))) order by r.model),
        'unknownColumns', coalesce(to_json(crm.unknown_columns()), '[]'))::text
    from crm.read_model r
    join crm.read_model_sources() s on s.model = r.model
    join crm.mv_refresh_status v on v.mv_name = r.model || '_mv'
$$;
