-- queen.retention_analytics: GET /api/v1/analytics/retention.
--
-- needs: param_time, iso_ms
-- called by  broker/src/api/monitoring/retention.c
-- in         p_args.from, to: default the last hour
-- out        {"timeRange","bucketMinutes","series","totals"}; buckets with deletions, oldest first. Removal by ttl
--            counts as eviction.
create or replace function queen.retention_analytics(p_args jsonb)
returns json
language plpgsql stable
as $$
declare
    v_to      timestamptz := queen.param_time(p_args, 'to', now());
    v_from    timestamptz := queen.param_time(p_args, 'from', now() - interval '1 hour');
    v_minutes int := case when v_to - v_from <= interval '60 minutes' then 1
                          when v_to - v_from <= interval '6 hours' then 5
                          when v_to - v_from <= interval '24 hours' then 15
                          when v_to - v_from <= interval '7 days' then 60
                          else 360 end;
begin
    return (
        with found as (
            select date_bin(v_minutes * interval '1 minute', h.executed_at, timestamptz 'epoch') as bucket,
                   coalesce(sum(h.messages_deleted) filter (where h.retention_type = 'retention'), 0) as retained,
                   coalesce(sum(h.messages_deleted) filter (where h.retention_type = 'completed_retention'), 0) as completed,
                   coalesce(sum(h.messages_deleted)
                            filter (where h.retention_type in ('max_wait_time_eviction', 'ttl')), 0) as evicted,
                   sum(h.messages_deleted) as total, count(*) as events
              from queen.retention_history h
             where h.executed_at >= v_from and h.executed_at <= v_to
             group by 1)
        select json_build_object(
            'timeRange', json_build_object('from', queen.iso_ms(v_from), 'to', queen.iso_ms(v_to)),
            'bucketMinutes', v_minutes,
            'series', coalesce(json_agg(json_build_object(
                'bucket', to_char(f.bucket at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                'retentionMsgs', f.retained, 'completedRetentionMsgs', f.completed, 'evictionMsgs', f.evicted,
                'totalMsgs', f.total, 'eventCount', f.events) order by f.bucket), '[]'),
            'totals', json_build_object(
                'retentionMsgs', coalesce(sum(f.retained), 0), 'completedRetentionMsgs', coalesce(sum(f.completed), 0),
                'evictionMsgs', coalesce(sum(f.evicted), 0), 'totalMsgs', coalesce(sum(f.total), 0),
                'eventCount', coalesce(sum(f.events), 0)))
          from found f);
end
$$;
