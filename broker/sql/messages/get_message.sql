-- queen.get_message: GET /api/v1/messages/:partitionId/:transactionId.
--
-- needs: attempts_of, find_message, transaction_key, unpack_segment, iso_ms, work_place, retried_groups
-- called by  broker/src/api/admin/messages.c
-- out        200 with the message and its payload as it was sent; 404 if there is none
create or replace function queen.get_message(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean)
language plpgsql
as $$
declare
    v_now timestamptz := clock_timestamp();
    l     record;  -- lane and queue
    m     record;  -- message
    c     record;  -- groups
    d     record;  -- dead letter
    v_seq bigint;
    v_lane_id uuid;
    v_tried boolean; -- it has failed and was to be retried
begin
    if p_args ->> 'partitionId' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        v_lane_id := (p_args ->> 'partitionId')::uuid;
    end if;
    select n.num, n.name as lane_name, q.* into l
      from queen.lanes k join queen.lanes n on n.num = coalesce(k.origin, k.num) -- a retry lane stands for its partition
      join queen.queues q on q.id = n.queue_id where k.id = v_lane_id;
    v_seq := queen.find_message(l.num, queen.transaction_key(p_args ->> 'transactionId'));
    select u.*, s.created_at into m
      from (select * from queen.segments g where g.lane = l.num and g.first_seq <= v_seq
             order by g.first_seq desc limit 1) s
      cross join lateral queen.unpack_segment(s.lane, s.created_at, s.count, s.keys, s.body) u
     where u.pos = v_seq - s.first_seq;
    if m.message_id is null then
        return query select 404, '{"error":"Message not found"}', null::bytea, false;
        return;
    end if;
    v_tried := exists (select from queen.attempts a where a.message_id = m.message_id and a.outcome in ('r', 'v'));
    select max(k.cursor_seq) filter (where k.grp = '__QUEUE_MODE__') as queue_cursor,
           max(k.lease_until) filter (where k.grp = '__QUEUE_MODE__') as lease_until,
           bool_or(k.leased) filter (where k.grp = '__QUEUE_MODE__') as leased,
           bool_or(k.consumed) filter (where k.grp = '__QUEUE_MODE__') as queue_consumed,
           count(*) filter (where k.grp <> '__QUEUE_MODE__') as named,
           count(*) filter (where k.grp <> '__QUEUE_MODE__' and k.consumed) as consumed,
           coalesce(json_agg(json_build_object('name', k.grp, 'consumed', k.consumed,
                                               'leaseExpiresAt', queen.iso_ms(k.lease_until)) order by k.grp)
                    filter (where k.grp <> '__QUEUE_MODE__'), '[]') as groups
      into c
      from (select g.grp, st.cursor_seq,
                   case when r.leased is not null then false when st.taken_seq is null then st.cursor_seq >= v_seq else w.consumed end as consumed,
                   case when r.leased then true when st.taken_seq is null then st.lease_until > v_now and st.lease_last >= v_seq
                        else w.leased_until is not null end as leased,
                   case when st.taken_seq is null then st.lease_until else w.leased_until end as lease_until
              from queen.consumers g
              cross join lateral (
                   select * from (
                       (select a.ver, a.cursor_seq, a.lease_last, a.lease_until, a.taken_seq, a.holds_from, a.walk_seq
                          from queen.consumer_states_a a where a.consumer = g.num order by a.ver desc limit 1)
                       union all
                       (select b.ver, b.cursor_seq, b.lease_last, b.lease_until, b.taken_seq, b.holds_from, b.walk_seq
                          from queen.consumer_states_b b where b.consumer = g.num order by b.ver desc limit 1)) v
                    order by ver desc limit 1) st
              left join lateral (select p.* from queen.work_place(g.num, st.cursor_seq, st.taken_seq, st.holds_from, st.walk_seq, v_seq) p
                                  where st.taken_seq is not null) w on true
              left join lateral (select r.leased from queen.retried_groups(l.num, v_seq, m.message_id, m.transaction_id) r
                                  where v_tried and r.grp = g.grp) r on true
             where g.lane = l.num) k;
    select x.error_message, x.retry_count into d from queen.dead_letter_queue x
     where x.lane = l.num and x.seq = v_seq order by x.failed_at desc limit 1;
    return query
    select 200, left(json_build_object(
               'id', m.message_id, 'transactionId', m.transaction_id, 'partitionId', v_lane_id,
               'queuePath', l.name || '/' || l.lane_name, 'queue', l.name, 'partition', l.lane_name,
               'namespace', l.namespace, 'task', l.task,
               'status', case when d.retry_count is not null then 'dead_letter'
                              when c.queue_cursor is null and c.named > 0
                              then case when c.consumed = c.named then 'completed' else 'pending' end
                              when c.queue_consumed then 'completed'
                              when c.leased then 'processing'
                              else 'pending' end,
               'isEncrypted', m.is_encrypted, 'traceId', m.trace_id, 'producerSub', m.producer_sub,
               'createdAt', queen.iso_ms(m.created_at), 'errorMessage', d.error_message, 'retryCount', d.retry_count,
               'leaseExpiresAt', queen.iso_ms(c.lease_until),
               'queueConfig', json_build_object('leaseTime', l.lease_time, 'retryLimit', l.retry_limit,
                                                'retryDelay', l.retry_delay, 'ttl', l.ttl, 'priority', l.priority),
               'mode', json_build_object(
                   'hasQueueMode', c.queue_cursor is not null, 'busGroupsCount', c.named, 'consumedByGroups', c.consumed,
                   'type', case when c.queue_cursor is not null and c.named > 0 then 'hybrid'
                                when c.queue_cursor is not null then 'queue' when c.named > 0 then 'bus' else 'none' end),
               'consumerGroups', c.groups, 'attempts', queen.attempts_of(m.message_id, null))::text, -1)
               -- further fields: the members of the stored object
               || coalesce(',' || substr(m.meta, 2, length(m.meta) - 2), '') || ',"payload":', convert_to(coalesce(m.payload, 'null'), 'UTF8'), m.is_encrypted
     union all
    select 200, '}', null, false;
end
$$;
