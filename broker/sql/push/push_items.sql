-- queen.push_items: push items given as JSON. Items with scheduledAt or delaySeconds are stored until they are due.
--
-- numbers:   status scheduled_status
-- needs: lock_limited, push_items_now, read_times, read_items, ensure_lanes, schedule_messages, message_id_at, require_read_committed
-- called by  queen.push_messages_v2, queen.push_messages_v3, queen.run_schedules, queen.run_schedule_now
-- in         p_items: see queen.read_items and queen.read_times
-- out        one row per item, in order, as queen.push_items_now; due_at not null: the item is scheduled for then, and created_at is null
-- locks      queues with a maxSize by id, lanes by num, all of them before anything is stored
-- raises     as queen.push_items_now; QN001 for an invalid time, and for a scheduled item with a messageId
create or replace function queen.push_items(p_items jsonb)
returns table (idx int, queue text, part text, transaction_id text, trace_id uuid, lane bigint,
               lane_id uuid, message_id uuid, created_at timestamptz, due_at timestamptz)
language plpgsql
as $$
#variable_conflict use_column
declare
    t       record;  -- the scheduled items: their positions and times
    r       record;  -- the same items, checked and packed
    l       record;  -- their lanes
    w       record;  -- the result of storing them
    v_later jsonb;
    v_now   int[];   -- positions of the other items, 0-based
begin
    select array_agg(e.idx order by e.idx) as at, array_agg(e.due_us order by e.idx) as due,
           array_agg(e.delay_us order by e.idx) as delay
      into t
      from queen.read_times(case when jsonb_typeof(p_items) = 'array' then p_items else '[]' end) e;
    if t.at is null then
        return query select p.*, null::timestamptz from queen.push_items_now(p_items) p;
        return;
    end if;
    perform queen.require_read_committed();
    select jsonb_agg(e.value || '{"messageId": "00000000-0000-0000-0000-000000000000"}' order by e.ord)
             filter (where e.ord - 1 = any (t.at)),
           array_agg(e.ord - 1 order by e.ord) filter (where e.ord - 1 <> all (t.at)),
           min(e.ord - 1) filter (where e.ord - 1 = any (t.at) and coalesce(e.value ->> 'messageId', '') <> '') as named
      into v_later, v_now, idx
      from jsonb_array_elements(p_items) with ordinality e(value, ord);
    if idx is not null then
        raise exception 'item %: messageId must not be given with scheduledAt or delaySeconds', idx using errcode = 'QN001';
    end if;
    select array_agg(i.queue order by i.idx) as queue, array_agg(i.part order by i.idx) as part,
           array_agg(i.transaction_id order by i.idx) as transaction_id, array_agg(i.key order by i.idx) as key,
           array_agg(i.trace_id order by i.idx) as trace_id, array_agg(i.message order by i.idx) as message,
           array_agg(queen.message_id_at(i.message) order by i.idx) as id_at
      into r
      from queen.read_items(v_later, 'null') i;
    perform queen.lock_limited(array(select p_items -> k ->> 'queue' from unnest(v_now) k));
    select array_agg(e.lane order by e.idx) as num, array_agg(e.lane_id order by e.idx) as id into l
      from queen.ensure_lanes(r.queue, r.part) e;
    if cardinality(l.num) < cardinality(r.key) then
        raise exception 'a queue was deleted meanwhile' using errcode = '40001';
    elsif -1 = any (l.num) then
        raise exception 'item %: the queue has a fixed set of partitions and this is not one of them',
            t.at[array_position(l.num, -1::bigint)] using errcode = 'QN001';
    end if;

    if v_now is not null then
        perform queen.ensure_lanes(array_agg(p_items -> k ->> 'queue'), array_agg(coalesce(nullif(p_items -> k ->> 'partition', ''), 'Default')))
           from unnest(v_now) k where jsonb_typeof(p_items -> k -> 'queue') = 'string';
        perform n.num from queen.lanes n
          where n.num = any (l.num)
             or n.num in (select m.num from unnest(v_now) k
                            join queen.queues q on q.name = p_items -> k ->> 'queue'
                            join queen.lanes m on m.queue_id = q.id
                             and m.name = coalesce(nullif(p_items -> k ->> 'partition', ''), 'Default'))
          order by n.num for no key update;
        return query
        select v_now[p.idx + 1], p.queue, p.part, p.transaction_id, p.trace_id, p.lane, p.lane_id, p.message_id,
               p.created_at, null::timestamptz
          from queen.push_items_now(array_to_json(array(select p_items -> k from unnest(v_now) k))::jsonb) p;
    end if;
    select array_agg(s.id order by s.idx) as id, array_agg(case when s.status = 0 then s.due_at end order by s.idx) as due_at,
           bool_or(s.status not in (0, 1)) as gone
      into w
      from queen.schedule_messages(
               0, true, l.num, r.key, t.due, t.delay,
               array(select nullif(e.value ->> 'transactionId', '') from jsonb_array_elements(v_later) with ordinality e(value, ord)
                      order by e.ord),
               array(select nullif(e.value ->> 'correlationId', '') from jsonb_array_elements(v_later) with ordinality e(value, ord)
                      order by e.ord),
               r.message, r.id_at) s;
    if w.gone then
        raise exception 'a partition was deleted meanwhile' using errcode = '40001';
    end if;
    return query
    select t.at[u.ord], r.queue[u.ord], r.part[u.ord], r.transaction_id[u.ord], r.trace_id[u.ord], l.num[u.ord], l.id[u.ord],
           u.id, null::timestamptz, u.due_at
      from unnest(w.id, w.due_at) with ordinality u(id, due_at, ord);
end
$$;
