-- queen.traces_by_name: GET /api/v1/traces/by-name/:traceName.
--
-- needs: param_int, iso_ms, unpack_segment
-- called by  broker/src/api/admin/traces.c
-- in         p_args: traceName (a plus in it may stand for a space), limit (100), offset
-- out        the page, oldest first, payloads as they were sent; "total" and "pagination"
create or replace function queen.traces_by_name(p_args jsonb)
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
    v_names  text[] := array[p_args ->> 'traceName', replace(p_args ->> 'traceName', '+', ' ')];
    v_total  bigint;
begin
    select count(distinct k.trace_id) into v_total from queen.message_trace_names k where k.trace_name = any (v_names);
    return query select 200, '{"traces":[', null::bytea, false;
    return query
    with page as materialized (
        select t.*, q.name as queue_name, l.name as lane_name, s.first_seq
          from queen.message_traces t
          join queen.lanes l on l.num = t.lane
          join queen.queues q on q.id = l.queue_id
          left join lateral (select g.first_seq from queen.segments g where g.lane = t.lane and g.first_seq <= t.seq
                              order by g.first_seq desc limit 1) s on true
         where t.id in (select k.trace_id from queen.message_trace_names k where k.trace_name = any (v_names))
         order by t.created_at, t.id limit v_limit offset v_offset
    ), opened as materialized ( -- each segment once
        select g.lane, g.first_seq + u.pos as seq, u.*
          from (select distinct p.lane, p.first_seq from page p) k
          -- Not a join: its plan might unpack all segments first.
          cross join lateral (select * from queen.segments g where g.lane = k.lane and g.first_seq = k.first_seq offset 0) g
          cross join lateral queen.unpack_segment(g.lane, g.created_at, g.count, g.keys, g.body) u
    )
    select 200, case when p.nth > 1 then '},' else '' end || left(json_build_object(
               'id', p.id, 'transaction_id', p.transaction_id, 'partition_id', p.partition_id,
               'event_type', p.event_type, 'data', p.data, 'consumer_group', p.consumer_group,
               'worker_id', p.worker_id, 'created_at', queen.iso_ms(p.created_at), 'queue_name', p.queue_name,
               'partition_name', p.lane_name, 'trace_names', n.names,
               'createdAt', queen.iso_ms(p.created_at), 'eventType', p.event_type, 'traceName', n.names ->> 0,
               'transactionId', p.transaction_id, 'partition', p.lane_name)::text, -1) || ',"message_payload":',
           convert_to(coalesce(o.payload, 'null'), 'UTF8'), coalesce(o.is_encrypted, false)
      from (select p.*, row_number() over (order by p.created_at, p.id) as nth from page p) p
      left join opened o on o.lane = p.lane and o.seq = p.seq
      cross join lateral (select coalesce(json_agg(k.trace_name order by k.trace_name), '[]')
                            from queen.message_trace_names k where k.trace_id = p.id) n(names)
     order by p.nth;
    return query
    select 200, case when found then '}' else '' end
                || format('],"total":%s,"pagination":{"limit":%s,"offset":%s}}', v_total, v_limit, v_offset),
           null::bytea, false;
end
$$;
