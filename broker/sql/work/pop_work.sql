-- queen.pop_work: one pop of one partition of a work queue, for SQL.
--
-- needs: claim_work, unpack_segment, set_aside
-- called by  queen.pop_one
-- in         p_consumer, p_group; p_batch; p_auto: acknowledge on delivery; p_lease: the lease id, p_key: its key; p_seconds: as queen.claim_work
-- out        one row: the partition, the number of messages claimed, and the messages as queen.pop_one returns them
-- locks      as queen.claim_work
create or replace function queen.pop_work(
    p_consumer bigint, p_group text, p_batch int, p_auto boolean, p_lease text, p_key uuid, p_seconds int,
    out queue_name text, out lane_name text, out lane_id uuid, out taken int, out messages jsonb)
language plpgsql
as $$
#variable_conflict use_column
declare
    r         record;
    v_start   bigint[] := '{}';
    v_take    int[] := '{}';
    v_retries int[] := '{}';
    v_some    jsonb;
    v_damaged bigint[];
begin
    taken := 0;
    messages := '[]';
    for r in select * from queen.claim_work(array[p_consumer], array[p_batch], array[p_auto], array[p_key], array[p_seconds],
                                              array[false]) loop
        queue_name := r.queue_name;
        lane_name := r.lane_name;
        lane_id := r.lane_id;
        if r.status = 0 then
            v_start := v_start || r.start_seq;
            v_take := v_take || r.take;
            v_retries := v_retries || r.retries;
            taken := taken + r.take;
        elsif r.status is null then
            select jsonb_agg(jsonb_build_object(
                       'id', m.message_id, 'transactionId', m.transaction_id, 'traceId', m.trace_id,
                       'data', m.payload::jsonb, 'producerSub', m.producer_sub,
                       'createdAt', to_char(r.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                       'partitionId', r.lane_id, 'partition', r.lane_name,
                       'leaseId', case when p_auto then '' else p_lease end, 'consumerGroup', p_group,
                       'queue', r.queue_name, 'retryCount', g.retries)
                       || coalesce(m.meta::jsonb, '{}') order by m.pos) filter (where m.payload is not null),
                   array_agg(r.first_seq + m.pos) filter (where m.payload is null)
              into v_some, v_damaged
              from queen.unpack_segment(r.lane, r.created_at, r.count, r.keys, r.body) m
              join unnest(v_start, v_take, v_retries) g(start_seq, take, retries)
                on r.first_seq + m.pos between g.start_seq and g.start_seq + g.take - 1;
            messages := messages || coalesce(v_some, '[]');
            if v_damaged is not null then
                perform queen.set_aside(p_group, array_fill(r.lane, array[cardinality(v_damaged)]), v_damaged,
                                        array_fill(1, array[cardinality(v_damaged)]), case when not p_auto then p_key end,
                                        'damaged: the stored message cannot be read');
            end if;
        end if;
    end loop;
end
$$;
