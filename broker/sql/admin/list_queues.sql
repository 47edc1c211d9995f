-- queen.list_queues: GET /api/v1/resources/queues and GET /api/v1/status/queues.
--
-- needs: param_int, param_bool, freshen_stats
-- called by  broker/src/api/admin/resources.c, broker/src/api/monitoring/status_queues.c
-- in         p_args: namespace, task, limit, offset; p_status: for the status page, where pending includes messages under a lease and
--            a page has 100 queues. Only there: search (part of the name, in any case), sort (name, namespace, created, partitions,
--            pending, processing, lag, completed, dlq), order (asc, desc; default asc for names, else desc)
-- out        {"queues":[...]}, newest first unless sort is given; for the status page with "pagination", which has the "total" of
--            matching queues if search or sort is given, and its rows have groups, rates of the last two full minutes, and history, the messages pushed in each
--            five minutes of the last hour, if p_args has history: true; rows as described in broker/src/api/sql_endpoint.h
-- raises     QN001 for an unknown sort or order
create or replace function queen.list_queues(p_args jsonb, p_status boolean)
returns table (status int, piece text, payload bytea, sealed boolean, shape text,
               id uuid, name varchar, namespace varchar, task varchar, created_at timestamptz, partitions bigint,
               total bigint, pending bigint, processing bigint, completed bigint, dead_letter bigint, priority int,
               lease_time int, retry_limit int, max_size int, encrypted boolean, lag_seconds bigint,
               groups bigint, pushed_rate float8, processed_rate float8, history json)
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
set work_mem = '32MB'
as $$
#variable_conflict use_column
declare
    v_limit  bigint := queen.param_int(p_args, 'limit', case when p_status then 100 end);
    v_offset bigint := greatest(queen.param_int(p_args, 'offset', 0), 0);
    v_now    timestamptz := clock_timestamp();
    v_search text := case when p_status then nullif(lower(p_args ->> 'search'), '') end;
    v_sort   text := case when p_status then nullif(p_args ->> 'sort', '') end;
    v_order  text := coalesce(nullif(p_args ->> 'order', ''), case when v_sort in ('name', 'namespace') then 'asc' else 'desc' end);
    v_up     boolean := v_order = 'asc';
    v_total  bigint;
    v_more   boolean := p_status and queen.param_bool(p_args, 'history', false);
    v_first  timestamptz := date_trunc('minute', clock_timestamp()) - interval '59 minutes';
begin
    if v_sort not in ('name', 'namespace', 'created', 'partitions', 'pending', 'processing', 'lag', 'completed', 'dlq') then
        raise exception 'sort must be name, namespace, created, partitions, pending, processing, lag, completed or dlq'
              using errcode = 'QN001';
    elsif v_order not in ('asc', 'desc') then
        raise exception 'order must be asc or desc' using errcode = 'QN001';
    end if;
    if v_limit < 0 then -- null: all
        v_limit := 0;
    end if;
    perform queen.freshen_stats();
    status := 200;
    piece := '{"queues":[';
    shape := '{"id":$1,"name":$2,"namespace":$3,"task":$4,"createdAt":$5,"partitions":$6,'
             '"messages":{"total":$7,"pending":$8,"processing":$9},"partitionCount":$6,"priority":$12,"leaseTime":$13,'
             '"retryLimit":$14,"maxSize":$15,"encryptionEnabled":$16,"pending":$8,"processing":$9,"completed":$10,'
             '"failed":0,"dlq":$11,"lagSeconds":$17' || case when v_more then ',"groups":$18,"ingestedPerSecond":$19,"processedPerSecond":$20,"history":$21' else '' end || '}';
    return next;
    return query
    select null::int, null::text, null::bytea, null::boolean, null::text,
           q.id, q.name, q.namespace, q.task, q.created_at, coalesce(s.child_count, 0), coalesce(s.total_messages, 0),
           greatest(coalesce(s.pending_messages, 0)
                    + case when p_status then coalesce(s.processing_messages, 0) else 0 end, 0),
           coalesce(s.processing_messages, 0), coalesce(s.completed_messages, 0), coalesce(s.dead_letter_messages, 0),
           q.priority, q.lease_time, q.retry_limit, q.max_queue_size, q.encryption_enabled,
           coalesce(greatest(floor(date_part('epoch', v_now - s.oldest_pending_at)), 0)::bigint, 0),
           h.groups, h.pushed_rate, h.processed_rate, h.history
      from (select q.*, row_number() over () as at
              from (select q.*
                      from queen.queues q
                      left join queen.stats o on v_sort is not null and o.queue_id = q.id and o.stat_type = 'queue'
                     cross join lateral (select case v_sort when 'name' then q.name when 'namespace' then q.namespace end collate "C" as word,
                                                case v_sort when 'created' then date_part('epoch', q.created_at)
                                                            when 'partitions' then coalesce(o.child_count, 0)
                                                            when 'pending' then coalesce(o.pending_messages, 0) + coalesce(o.processing_messages, 0)
                                                            when 'processing' then coalesce(o.processing_messages, 0)
                                                            when 'lag' then coalesce(date_part('epoch', v_now - o.oldest_pending_at), 0)
                                                            when 'completed' then coalesce(o.completed_messages, 0)
                                                            when 'dlq' then coalesce(o.dead_letter_messages, 0) end as figure) k
                     where (p_args ->> 'namespace' is null or q.namespace = p_args ->> 'namespace')
                       and (p_args ->> 'task' is null or q.task = p_args ->> 'task')
                       and queen.may_see(p_args, q.name)
                       and (v_search is null or strpos(lower(q.name), v_search) > 0)
                     order by case when v_up then k.word end, case when not v_up then k.word end desc,
                              case when v_up then k.figure end, case when not v_up then k.figure end desc,
                              q.created_at desc, q.name collate "C" limit v_limit offset v_offset) q) q
      left join queen.stats s on s.queue_id = q.id and s.stat_type = 'queue'
      left join lateral (
           select (select count(*) from queen.stats g where g.queue_id = q.id and g.stat_type = 'group' and g.child_count > 0) as groups,
                  r.pushed_rate, r.processed_rate,
                  (select json_agg(coalesce(m.messages_ingested, 0) order by b.at)
                     from generate_series(v_first, v_first + interval '55 minutes', interval '5 minutes') b(at)
                     left join lateral (select sum(k.messages_ingested) as messages_ingested from queen.stats_history k
                                         where k.stat_type = 'queue' and k.stat_key = q.id::text
                                           and k.bucket_time >= b.at and k.bucket_time < b.at + interval '5 minutes') m on true) as history
             from (select coalesce(sum(k.messages_ingested), 0) / 120.0::float8 as pushed_rate, coalesce(sum(k.messages_processed), 0) / 120.0::float8 as processed_rate
                     from queen.stats_history k
                    where k.stat_type = 'queue' and k.stat_key = q.id::text
                      and k.bucket_time >= date_trunc('minute', v_now) - interval '2 minutes' and k.bucket_time < date_trunc('minute', v_now)) r
            where v_more) h on true
     order by q.at;
    if v_search is not null or v_sort is not null then
        select count(*) into v_total from queen.queues q
         where (p_args ->> 'namespace' is null or q.namespace = p_args ->> 'namespace')
           and (p_args ->> 'task' is null or q.task = p_args ->> 'task')
           and queen.may_see(p_args, q.name)
           and (v_search is null or strpos(lower(q.name), v_search) > 0);
    end if;
    piece := case when p_status
                  then format('],"pagination":{"limit":%s,"offset":%s%s}}', v_limit, v_offset, ',"total":' || v_total) else ']}' end;
    shape := null;
    return next;
end
$$;
