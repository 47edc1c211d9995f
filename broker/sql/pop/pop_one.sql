-- queen.pop_one: execute one pop given as JSON.
--
-- numbers:   status claim_status
-- needs: check_names, pop_candidates, claim_careful, pop_work, unpack_segment, transaction_key, set_aside
-- called by  queen.pop_unified_batch
-- in         p: {queue_name?, partition_name?, namespace?, task?, consumer_group?, batch_size?, lease_seconds?,
--            worker_id?, sub_mode?, sub_from?, auto_ack?, partitions?}
--            p_lanes: as queen.pop_candidates
-- out        the object that GET /api/v1/pop answers; without messages if there is nothing to deliver, with the reason
--            in "error" if there is one
-- locks      consumers, skipping those that others have locked
-- raises     QN001 if it names neither queue nor namespace nor task; QN002 for an invalid sub_from
create or replace function queen.pop_one(p jsonb, p_lanes bigint[])
returns jsonb
language plpgsql
as $$
declare
    v_queue     text := p ->> 'queue_name';
    v_partition text := nullif(p ->> 'partition_name', '');
    v_group     text := coalesce(nullif(p ->> 'consumer_group', ''), '__QUEUE_MODE__');
    v_left      int := greatest(queen.option_int(p, 'batch_size', 1, -2147483648), 1);
    v_parts     int := greatest(queen.option_int(p, 'partitions', 1, -2147483648), 1);
    v_seconds   int := greatest(queen.option_int(p, 'lease_seconds', 0, -2147483648), 0);
    v_auto      boolean := queen.option_bool(p, 'auto_ack', false);
    v_lease     text := coalesce(nullif(p ->> 'worker_id', ''), gen_random_uuid()::text);
    v_key       uuid := queen.transaction_key(v_lease);
    v_candidate bigint[];
    v_known     int;     -- number of candidates, including those that cannot be claimed
    v_leased    int;
    v_from      int := 1;
    v_some      bigint[];
    r           record;
    w           record;
    v_claimed   int := 0;
    v_result    jsonb;
    v_messages  jsonb := '[]';
begin
    perform queen.check_names(p, '{queue_name,partition_name,namespace,task,consumer_group,batch_size,lease_seconds,worker_id,sub_mode,sub_from,
        auto_ack,partitions,idx}', '');
    if v_partition is not null or v_queue is not null then
        if v_queue is null then
            raise exception 'queue_name must be given' using errcode = 'QN001';
        end if;
    elsif coalesce(p ->> 'namespace', '') = '' and coalesce(p ->> 'task', '') = '' then
        raise exception 'queue_name, namespace or task must be given' using errcode = 'QN001';
    end if;
    if v_partition is not null then
        v_parts := 1;
    end if;

    select array_agg(c.consumer order by c.ord) filter (where c.pending and c.lease_us is null),
           count(*), count(*) filter (where c.lease_us is not null)
      into v_candidate, v_known, v_leased
      from queen.pop_candidates(v_queue, v_partition, v_group, nullif(p ->> 'namespace', ''),
                                nullif(p ->> 'task', ''), p ->> 'sub_mode', p ->> 'sub_from', p_lanes) c;

    -- A few at a time, because each tried consumer stays locked until the transaction ends.
    while v_from <= cardinality(v_candidate) and v_parts > 0 and v_left > 0 loop
        v_some := v_candidate[v_from : v_from + least(v_parts, 100) - 1];
        v_from := v_from + cardinality(v_some);
        for r in
            select c.*, u.messages, u.damaged
              from queen.claim_careful(array_fill(1, array[cardinality(v_some)]), v_some,
                               array_fill(v_left, array[cardinality(v_some)]),
                               array_fill(v_parts, array[cardinality(v_some)]),
                               array_fill(v_auto, array[cardinality(v_some)]),
                               array_fill(v_key, array[cardinality(v_some)]),
                               array_fill(nullif(v_lease, v_key::text), array[cardinality(v_some)]),
                               array_fill(v_seconds, array[cardinality(v_some)])) c
              left join lateral (
                   select jsonb_agg(jsonb_build_object(
                              'id', m.message_id, 'transactionId', m.transaction_id, 'traceId', m.trace_id,
                              'data', m.payload::jsonb, 'producerSub', m.producer_sub,
                              'createdAt', to_char(c.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                              'partitionId', c.lane_id, 'partition', c.lane_name,
                              'leaseId', case when v_auto then '' else v_lease end, 'consumerGroup', v_group,
                              'queue', c.queue_name, 'retryCount', c.retries)
                              || coalesce(m.meta::jsonb, '{}') order by m.pos) filter (where m.payload is not null) as messages,
                          array_agg(c.first_seq + m.pos) filter (where m.payload is null) as damaged
                     from queen.unpack_segment(c.lane, c.created_at, c.count, c.keys, c.body) m
                    where c.first_seq + m.pos between c.start_seq and c.start_seq + c.take - 1) u
                on c.status = 0
             order by c.target, c.first_seq
        loop
            if r.status = 8 and v_parts > 0 and v_left > 0 then
                select * into w from queen.pop_work(v_some[r.target], v_group, v_left, v_auto, v_lease, v_key, v_seconds);
                continue when w.taken = 0;
                v_claimed := v_claimed + 1;
                v_parts := v_parts - 1;
                v_left := v_left - w.taken;
                if v_result is null then
                    v_result := jsonb_build_object('queue', w.queue_name, 'partition', w.lane_name, 'partitionId', w.lane_id);
                end if;
                v_messages := v_messages || w.messages;
            end if;
            continue when r.status <> 0;
            if r.first_seq <= r.start_seq then
                v_claimed := v_claimed + 1;
                v_parts := v_parts - 1;
                v_left := v_left - r.take;
                if v_result is null then
                    v_result := jsonb_build_object('queue', r.queue_name, 'partition', r.lane_name,
                                                   'partitionId', r.lane_id);
                end if;
            end if;
            v_messages := v_messages || coalesce(r.messages, '[]');
            if r.damaged is not null then
                perform queen.set_aside(v_group, array_fill(r.lane, array[cardinality(r.damaged)]), r.damaged,
                                        array_fill(1, array[cardinality(r.damaged)]), case when not v_auto then v_key end,
                                        'damaged: the stored message cannot be read');
            end if;
        end loop;
    end loop;

    if v_result is null then
        return case
            when v_partition is null then '{"success":false,"error":"no_available_partition","messages":[]}'
            when v_known = 0 then '{"success":false,"error":"partition_not_found","messages":[]}'
            when v_leased > 0 then '{"success":false,"error":"lease_held","messages":[]}'
            else jsonb_build_object('success', true, 'queue', v_queue, 'partition', v_partition, 'leaseId', '',
                                    'consumerGroup', v_group, 'partitionsClaimed', 0, 'messages', '[]'::jsonb)
            end;
    end if;
    return v_result || jsonb_build_object(
        'success', true, 'leaseId', case when v_auto then '' else v_lease end, 'consumerGroup', v_group,
        'partitionsClaimed', v_claimed, 'messages', v_messages);
end
$$;
