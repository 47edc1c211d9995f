-- queen.read_items: check and pack the items of a push given as JSON.
--
-- needs: check_names, pack_message, trace_context, check_retry_policy, transaction_key, uuid_v7, partition_named
-- called by  queen.push_items_now; queen.execute_transaction_v2
-- in         p_items: array as in POST /api/v1/push, with the additional fields messageId, producerSub and is_encrypted;
--            p_payload: default for a missing payload
-- out        one row per item, in order; message: packed for a segment
-- raises     QN001, naming the item, where the HTTP interface answers 400
create or replace function queen.read_items(p_items jsonb, p_payload jsonb)
returns table (idx int, queue text, part text, transaction_id text, key uuid, trace_id uuid,
               message_id uuid, message bytea)
language plpgsql
as $$
declare
    c_known constant text[] := '{queue,partition,payload,transactionId,traceId,messageId,producerSub,is_encrypted,traceparent,tracestate,
        correlationId,eventType,retryPolicy,concurrencyKey,priority,scheduledAt,delaySeconds,namespace,task,type,items,data}'; -- the last three of operations
    i      jsonb;
    v_name text;
    v_meta text;
    v_more jsonb; -- further fields of the item
    v_sent boolean; -- the item names its transaction id
begin
    if jsonb_typeof(p_items) is distinct from 'array' then
        raise exception 'items must be an array' using errcode = 'QN001';
    end if;
    idx := 0;
    for i in select e.value from jsonb_array_elements(p_items) with ordinality e(value, ord) order by e.ord loop
        if jsonb_typeof(i) <> 'object' or jsonb_typeof(i -> 'queue') is distinct from 'string' then
            raise exception 'item %: queue must be a string', idx using errcode = 'QN001';
        elsif i ->> 'queue' = '' then
            raise exception 'item %: queue must not be empty', idx using errcode = 'QN001';
        elsif exists (select from jsonb_object_keys(i) k where k <> all (c_known)) then
            if coalesce(i ->> 'partitionKey', '') <> '' then
                raise exception 'item %: partitionKey is read only by POST /api/v1/push: name the partition', idx using errcode = 'QN001';
            end if;
            perform queen.check_names(i, c_known, format('item %s: ', idx));
        end if;
        foreach v_name in array array['partition', 'concurrencyKey', 'transactionId', 'traceId', 'messageId', 'producerSub',
                                     'traceparent', 'tracestate', 'correlationId', 'eventType'] loop
            if jsonb_typeof(i -> v_name) not in ('string', 'null') then
                raise exception 'item %: % must be a string', idx, v_name using errcode = 'QN001';
            end if;
        end loop;
        if length(i ->> 'correlationId') > 255 or length(i ->> 'eventType') > 255 then
            raise exception 'item %: correlationId and eventType must be at most 255 characters', idx using errcode = 'QN001';
        end if;
        queue := i ->> 'queue';
        if jsonb_typeof(i -> 'priority') <> 'null' and (i -> 'priority')::text !~ '^[0-9]$' then
            raise exception 'item %: priority must be a whole number from 0 to 9', idx using errcode = 'QN001';
        end if;
        begin
            part := queen.partition_named(i ->> 'partition', i ->> 'concurrencyKey', (i ->> 'priority')::int);
            trace_id := nullif(i ->> 'traceId', '')::uuid;
            message_id := nullif(i ->> 'messageId', '')::uuid;
            v_meta := queen.trace_context(i ->> 'traceparent', i ->> 'tracestate');
            v_more := jsonb_strip_nulls(jsonb_build_object('correlationId', nullif(i ->> 'correlationId', ''),
                                                           'eventType', nullif(i ->> 'eventType', '')));
            if jsonb_typeof(i -> 'retryPolicy') <> 'null' then
                perform queen.check_retry_policy(i -> 'retryPolicy', 'retryPolicy', true);
                v_more := v_more || jsonb_build_object('retryPolicy', i -> 'retryPolicy');
            end if;
            if v_more <> '{}' then
                v_meta := (coalesce(v_meta::jsonb, '{}') || v_more)::text;
            end if;
        exception when invalid_text_representation then
            raise exception 'item %: traceId and messageId must be UUIDs', idx using errcode = 'QN001';
            when sqlstate 'QN001' then
                raise exception 'item %: %', idx, sqlerrm using errcode = 'QN001';
        end;
        v_sent := coalesce(i ->> 'transactionId', '') <> '';
        transaction_id := case when v_sent then i ->> 'transactionId' else queen.uuid_v7()::text end;
        key := queen.transaction_key(transaction_id);
        message := queen.pack_message(nullif(transaction_id, key::text), trace_id,
                                        nullif(i ->> 'producerSub', ''), i -> 'is_encrypted' = 'true', message_id,
                                        v_meta, coalesce(i -> 'payload', p_payload)::text);
        return next;
        idx := idx + 1;
    end loop;
end
$$;
