-- queen.traces_of_message: GET /api/v1/traces/:partitionId/:transactionId.
--
-- needs: iso_ms, find_message, transaction_key
-- called by  broker/src/api/admin/traces.c
-- out        {"traces":[...]}, oldest first; empty for an unknown message
create or replace function queen.traces_of_message(p_args jsonb)
returns json
language plpgsql
as $$
declare
    v_lane bigint;
    v_part text;
begin
    if p_args ->> 'partitionId' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        -- The id of a retry lane stands for its partition.
        select num, name into v_lane, v_part from queen.lanes
         where num = (select coalesce(k.origin, k.num) from queen.lanes k where k.id = (p_args ->> 'partitionId')::uuid);
    end if;
    return (
        select json_build_object('traces', coalesce(json_agg(json_build_object(
                   'id', t.id, 'event_type', t.event_type, 'data', t.data, 'consumer_group', t.consumer_group,
                   'worker_id', t.worker_id, 'created_at', queen.iso_ms(t.created_at), 'trace_names', n.names,
                   'createdAt', queen.iso_ms(t.created_at), 'eventType', t.event_type, 'traceName', n.names ->> 0,
                   'transactionId', t.transaction_id, 'partition', v_part) order by t.created_at, t.id), '[]'))
          from queen.message_traces t
          cross join lateral (select coalesce(json_agg(k.trace_name order by k.trace_name), '[]')
                                from queen.message_trace_names k where k.trace_id = t.id) n(names)
         where t.lane = v_lane
           and t.seq = queen.find_message(v_lane, queen.transaction_key(p_args ->> 'transactionId')));
end
$$;
