-- queen.add_trace: POST /api/v1/traces.
--
-- needs: find_message, transaction_key, stored_id
-- called by  broker/src/api/admin/traces.c
-- in         p_args.body: transactionId, partitionId, data; consumerGroup, eventType, traceNames
-- out        201 with the trace's id; 404 if there is no such message
-- locks      the lane, against deletion
-- raises     QN001 for a field that is missing or of the wrong type
create or replace function queen.add_trace(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean)
language plpgsql
as $$
declare
    b       jsonb := p_args -> 'body';
    v_field text;
    v_names text[];
    v_lane  bigint;
    v_seq   bigint;
    v_id    uuid;
begin
    foreach v_field in array array['transactionId', 'partitionId'] loop
        if jsonb_typeof(b -> v_field) is distinct from 'string' or b ->> v_field = '' then
            raise exception using errcode = 'QN001', message = v_field || ' must be a string';
        end if;
    end loop;
    if jsonb_typeof(b -> 'data') is distinct from 'object' then
        raise exception using errcode = 'QN001', message = 'data must be an object';
    end if;
    foreach v_field in array array['consumerGroup', 'eventType'] loop
        if coalesce(jsonb_typeof(b -> v_field), 'null') not in ('string', 'null') then
            raise exception using errcode = 'QN001', message = v_field || ' must be a string';
        end if;
    end loop;
    if length(b ->> 'eventType') > 100 or length(b ->> 'consumerGroup') > 255 then
        raise exception using errcode = 'QN001',
            message = 'eventType must be at most 100 characters and consumerGroup at most 255';
    end if;
    case coalesce(jsonb_typeof(b -> 'traceNames'), 'null')
    when 'null' then
        v_names := '{}';
    when 'string' then
        v_names := array[b ->> 'traceNames'];
    when 'array' then
        if exists (select from jsonb_array_elements(b -> 'traceNames') e where jsonb_typeof(e) <> 'string') then
            raise exception using errcode = 'QN001', message = 'traceNames must be strings';
        end if;
        v_names := array(select jsonb_array_elements_text(b -> 'traceNames'));
    else
        raise exception using errcode = 'QN001', message = 'traceNames must be a string or an array of strings';
    end case;

    if b ->> 'partitionId' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        -- The id of a retry lane stands for its partition.
        select l.num into v_lane from queen.lanes l
         where l.num = (select coalesce(k.origin, k.num) from queen.lanes k where k.id = (b ->> 'partitionId')::uuid) for key share;
        v_seq := queen.find_message(v_lane, queen.transaction_key(b ->> 'transactionId'));
    end if;
    if v_seq is null then
        return query select 404, '{"success":false,"error":"Message not found"}', null::bytea, false;
        return;
    end if;
    insert into queen.message_traces
           (message_id, partition_id, transaction_id, consumer_group, event_type, data, worker_id, lane, seq)
    values (queen.stored_id(v_lane, v_seq), (b ->> 'partitionId')::uuid, b ->> 'transactionId',
            coalesce(b ->> 'consumerGroup', '__QUEUE_MODE__'), coalesce(b ->> 'eventType', 'info'), b -> 'data',
            pg_backend_pid()::text, v_lane, v_seq)
    returning id into v_id;
    insert into queen.message_trace_names (trace_id, trace_name)
    select v_id, n from (select distinct n from unnest(v_names) n where n <> '') k;
    return query select 201, json_build_object('success', true, 'traceId', v_id)::text, null::bytea, false;
end
$$;
