-- queen.refresh_stats_now: POST /api/v1/stats/refresh.
--
-- needs: refresh_stats
-- called by  broker/src/api/monitoring/status_queues.c
-- out        the result of a pass over all changes; "skipped" if another pass did not end within 2 s
create or replace function queen.refresh_stats_now(p_args jsonb)
returns json
language plpgsql
as $$
declare
    r         record;
    v_skipped json := json_build_object('skipped', true, 'reason', 'another pass is running');
begin
    select * into r from queen.refresh_stats(null, true, 2000);
    if r.lanes is null then
        return json_build_object('partition', v_skipped, 'queue', v_skipped, 'namespace', v_skipped,
                                 'task', v_skipped, 'system', v_skipped, 'cleanup', v_skipped);
    end if;
    -- Namespaces and tasks are summed up on request.
    return json_build_object(
        'partition', json_build_object('partitionsUpdated', r.lanes, 'dirtyPartitionsScanned', r.lanes,
                                       'partitionsSkippedByWatermark', 0, 'newPartitions', r.new_lanes),
        'queue', json_build_object('queuesUpdated', r.queues),
        'namespace', json_build_object('namespacesUpdated', 0),
        'task', json_build_object('tasksUpdated', 0),
        'system', json_build_object('systemUpdated', (r.lanes > 0)::int),
        'cleanup', json_build_object('orphanedDeleted', r.gone));
end
$$;
