-- queen.list_dead_letters: GET /api/v1/dlq.
--
-- needs: unpack_segment, attempts_of, param_int, param_time, iso_ms, freshen_stats
-- called by  broker/src/api/admin/messages.c
-- in         p_args: queue, partition, consumerGroup, exactError (the first 255 characters of the error), from and to (of the failure),
--            limit (100), offset
-- out        the page, newest failure first, payloads as they were sent, each with the history of its attempts; "pagination" and "total",
--            which comes from the statistics if it is above 10,000 and there is no filter by group, error or time
-- raises     QN001 for invalid times
create or replace function queen.list_dead_letters(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean)
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    v_limit  bigint := greatest(queen.param_int(p_args, 'limit', 100), 0);
    v_offset bigint := greatest(queen.param_int(p_args, 'offset', 0), 0);
    v_from   timestamptz := queen.param_time(p_args, 'from', null);
    v_to     timestamptz := queen.param_time(p_args, 'to', null);
    v_lanes  bigint[]; -- null: all
    v_kept   boolean := v_from is null and v_to is null and not p_args ?| array['consumerGroup', 'exactError']; -- the statistics contain their number
    v_total  bigint;
begin
    if p_args ? 'queue' or p_args ? 'partition' then
        select coalesce(array_agg(l.num), '{}') into v_lanes
          from queen.lanes l
          left join queen.lanes o on o.num = l.origin -- it is on a retry lane if its message was removed from the partition
          join queen.queues q on q.id = coalesce(l.origin_queue, l.queue_id)
         where (p_args ->> 'queue' is null or q.name = p_args ->> 'queue')
           and (p_args ->> 'partition' is null or coalesce(o.name, l.name) = p_args ->> 'partition');
    end if;
    select count(*) into v_total
      from (select from queen.dead_letter_queue d
             where (v_lanes is null or d.lane = any (v_lanes))
               and (p_args ->> 'consumerGroup' is null or d.consumer_group = p_args ->> 'consumerGroup')
               and (p_args ->> 'exactError' is null or left(d.error_message, 255) = p_args ->> 'exactError')
               and (v_from is null or d.failed_at >= v_from) and (v_to is null or d.failed_at <= v_to)
             limit case when v_kept then 10001 end) k;
    if v_total > 10000 and v_kept then -- too many to count for each page
        perform queen.freshen_stats();
        select greatest(v_total, coalesce(sum(s.dead), 0)) into v_total
          from queen.lane_stats s
         where s.dead > 0 and (v_lanes is null or s.lane = any (v_lanes));
    end if;
    return query select 200, '{"messages":[', null::bytea, false;
    return query
    with page as materialized (
        select d.*, q.name as queue_name, l.name as lane_name, s.first_seq
          from (select d.* from queen.dead_letter_queue d
                 where (v_lanes is null or d.lane = any (v_lanes))
                   and (p_args ->> 'consumerGroup' is null or d.consumer_group = p_args ->> 'consumerGroup')
                   and (p_args ->> 'exactError' is null or left(d.error_message, 255) = p_args ->> 'exactError')
                   and (v_from is null or d.failed_at >= v_from) and (v_to is null or d.failed_at <= v_to)
                 order by d.failed_at desc, d.id desc limit v_limit offset v_offset) d
          join queen.lanes l on l.id = d.partition_id
          join queen.queues q on q.id = l.queue_id
          left join lateral (select g.first_seq from queen.segments g where g.lane = d.lane and g.first_seq <= d.seq
                              order by g.first_seq desc limit 1) s on true
    ), opened as materialized ( -- each segment once, only as far as needed
        select g.lane, g.first_seq + u.pos as seq, u.*
          from (select p.lane, p.first_seq, max(p.seq) as last from page p group by p.lane, p.first_seq) k
          cross join lateral (select * from queen.segments g where g.lane = k.lane and g.first_seq = k.first_seq offset 0) g
          cross join lateral queen.unpack_segment(
                     g.lane, g.created_at, least(g.count, k.last - g.first_seq + 1)::int, g.keys, g.body) u
    )
    select 200, case when p.nth > 1 then '},' else '' end || left(json_build_object(
               'id', p.message_id, 'transactionId', o.transaction_id, 'partitionId', p.partition_id,
               'queue', p.queue_name, 'queueName', p.queue_name, 'partition', p.lane_name,
               'consumerGroup', p.consumer_group, 'errorMessage', p.error_message, 'retryCount', p.retry_count,
               'producerSub', o.producer_sub, 'createdAt', queen.iso_ms(p.original_created_at),
               'failedAt', queen.iso_ms(p.failed_at), 'dlqId', p.id, 'status', 'FAILED',
               'attempts', queen.attempts_of(p.message_id, p.consumer_group))::text, -1) || ',"data":',
           convert_to(coalesce(o.payload, 'null'), 'UTF8'), coalesce(o.is_encrypted, false)
      from (select p.*, row_number() over (order by p.failed_at desc, p.id desc) as nth from page p) p
      left join opened o on o.lane = p.lane and o.seq = p.seq
     order by p.nth;
    return query
    select 200, case when found then '}' else '' end || format('],"pagination":{"limit":%s,"offset":%s},"total":%s}', v_limit, v_offset, v_total),
           null::bytea, false;
end
$$;
