-- queen.execute_transaction_v2: apply pushes and acknowledgements together or not at all, from SQL.
--
-- numbers:   kind transact_kind
-- needs: check_names, notify_pushed, lock_limited, read_items, pack_segments, read_times, message_id_at, group_acks, ensure_lanes, transact_scheduled, 
--        require_read_committed
-- called by  SQL sessions
-- in         p_operations: array of operations, or {"operations": [...], "requiredLeases": [...]}, as in
--            POST /api/v1/transaction; the fields of a push item may be in the operation itself ("data" is an old name of payload)
-- out        the object that the HTTP interface answers. success false: the caller's transaction continues, but
--            nothing of this call happened in it (queues and partitions that it named may have been created)
-- locks      as queen.transact
-- raises     QN001 malformed request, QN003 wrong isolation level
create or replace function queen.execute_transaction_v2(p_operations jsonb)
returns jsonb
language plpgsql
as $$
#variable_conflict use_variable
declare
    v_given    jsonb := case when jsonb_typeof(p_operations) = 'object' then p_operations -> 'operations'
                             else p_operations end;
    v_required uuid[] := '{}';
    v_op       jsonb[];   -- one per item of a push, one per ack
    v_type     text[];
    v_push     int[];     -- operations (0-based) that push ...
    v_ack      int[];     -- ... and that acknowledge
    r          record;    -- the items
    l          record;    -- their lanes
    m          record;    -- times of scheduled items
    v_now      int[];     -- items for immediate delivery (1-based)
    v_later    int[];     -- scheduled items
    v_items    jsonb;
    a          record;    -- arguments of the pushes
    k          record;    -- arguments of the acknowledgements
    t          record;    -- a row of the result
    v_at       timestamptz[] := '{}';
    v_due      timestamptz[]; -- by item, of scheduled items: when ...
    v_id       uuid[];        -- ... and their ids
    v_seg      int[];         -- by item, of the others: segment and position
    v_pos      int[];
    v_first    int;       -- the first operation that failed
    v_error    text;
    v_found    int;
    v_dead     int[] := '{}';
    v_results  jsonb;
begin
    perform queen.require_read_committed();
    if jsonb_typeof(v_given) is distinct from 'array' or jsonb_array_length(v_given) = 0 then
        raise exception 'operations must be a non-empty array' using errcode = 'QN001';
    end if;
    if jsonb_typeof(p_operations) = 'object' then
        perform queen.check_names(p_operations, '{operations,requiredLeases}', '');
    end if;
    if jsonb_typeof(p_operations) = 'object' and jsonb_typeof(p_operations -> 'requiredLeases') <> 'null' then
        if jsonb_typeof(p_operations -> 'requiredLeases') <> 'array' or jsonb_path_exists(
               p_operations, '$.requiredLeases[*] ? (@.type() != "string" && @.type() != "null")') then
            raise exception 'requiredLeases must be an array of strings' using errcode = 'QN001';
        end if;
        select coalesce(array_agg(queen.transaction_key(e)), '{}') into v_required
          from jsonb_array_elements_text(p_operations -> 'requiredLeases') e where e <> '';
    end if;

    select array_agg(f.op order by f.ord, f.nth), array_agg(f.type order by f.ord, f.nth) into v_op, v_type
      from (select o.ord, i.nth, o.value ->> 'type' as type,
                   case when i.value is null then o.value else i.value end as op
              from jsonb_array_elements(v_given) with ordinality o(value, ord)
              left join lateral (
                   select n.value || case when n.value ? 'payload' or not n.value ? 'data' then '{}'::jsonb
                                          else jsonb_build_object('payload', n.value -> 'data') end as value, n.nth
                     from jsonb_array_elements(case when jsonb_typeof(o.value -> 'items') = 'array'
                                                    then o.value -> 'items' else jsonb_build_array(o.value) end)
                          with ordinality n(value, nth)) i on o.value ->> 'type' = 'push'
             where o.value ->> 'type' is distinct from 'push' or i.value is not null) f;

    select array_agg(u.ord::int - 1 order by u.ord) filter (where u.type = 'push'),
           array_agg(u.ord::int - 1 order by u.ord) filter (where u.type = 'ack'),
           min(u.ord::int - 1) filter (where u.type in ('push', 'ack') is not true)
      into v_push, v_ack, v_first
      from unnest(v_type) with ordinality u(type, ord);
    v_push := coalesce(v_push, '{}');
    v_ack := coalesce(v_ack, '{}');
    if v_first is not null then
        v_error := format('Unknown operation type "%s"', coalesce(v_type[v_first + 1], ''));
    end if;

    v_items := array_to_json(array(select v_op[p + 1] from unnest(v_push) p))::jsonb;
    select coalesce(array_agg(e.idx + 1 order by e.idx), '{}') as at, array_agg(e.due_us order by e.idx) as due,
           array_agg(e.delay_us order by e.idx) as delay
      into m
      from queen.read_times(v_items) e;
    v_later := m.at;
    v_due := array_fill(null::timestamptz, array[cardinality(v_push)]);
    v_id := array_fill(null::uuid, array[cardinality(v_push)]);
    v_now := array(select i from generate_series(1, cardinality(v_push)) i where i <> all (v_later));
    -- Reserve space for the id that a message gets when it is scheduled.
    select coalesce(jsonb_agg(case when e.ord = any (v_later)
                                   then e.value || '{"messageId": "00000000-0000-0000-0000-000000000000"}' else e.value end
                              order by e.ord), '[]')
      into v_items
      from jsonb_array_elements(v_items) with ordinality e(value, ord);

    select coalesce(array_agg(i.queue order by i.idx), '{}') as queue,
           coalesce(array_agg(i.part order by i.idx), '{}') as part,
           coalesce(array_agg(i.transaction_id order by i.idx), '{}') as id,
           coalesce(array_agg(i.key order by i.idx), '{}') as key,
           coalesce(array_agg(i.message_id order by i.idx), '{}') as message_id,
           coalesce(array_agg(i.message order by i.idx), '{}') as message
      into r
      from queen.read_items(v_items, '{}') i;
    perform queen.lock_limited(r.queue);
    select coalesce(array_agg(e.lane order by e.idx), '{}') as num,
           coalesce(array_agg(e.lane_id order by e.idx), '{}') as id
      into l
      from queen.ensure_lanes(r.queue, r.part) e;
    if cardinality(l.num) < cardinality(r.key) then
        raise exception 'a queue was deleted meanwhile' using errcode = '40001';
    elsif -1 = any (l.num) then
        raise exception 'a queue has a fixed set of partitions and a push names another partition' using errcode = 'QN001';
    end if;
    select * into k from queen.group_acks(array_to_json(array(select v_op[p + 1] from unnest(v_ack) p))::jsonb);

    select min(v_push[u.ord]) into v_found
      from (select u.ord, row_number() over (partition by u.lane, u.key order by u.ord) as nth
              from unnest(l.num, r.key) with ordinality u(lane, key, ord)) u
     where u.nth > 1;
    if v_found < coalesce(v_first, v_found + 1) then
        v_first := v_found;
        v_error := 'duplicate transaction id';
    end if;

    select * into a
      from queen.pack_segments(array(select l.num[i] from unnest(v_now) i), array(select r.key[i] from unnest(v_now) i),
                               array(select r.message[i] from unnest(v_now) i));
    if v_first is null then
        for t in
            select * from queen.transact_scheduled(
                0, a.lanes, a.lane, array_fill(0::bigint, array[cardinality(a.lane)]), a.nth, a.before, a.count, a.key_min, a.key_max, a.keys, a.body,
                a.plain_seg, a.plain_pos, a.plain_key, k.lane_id, k.grp, k.keys, k.uniform, k.lease,
                k.entry_group, k.entry_status, k.entry_lease, k.entry_error, k.entry_code, k.entry_worker, null, v_required,
                true, array(select l.num[i] from unnest(v_later) i), array(select r.key[i] from unnest(v_later) i), m.due, m.delay,
                array(select nullif(v_items -> (i - 1) ->> 'transactionId', '') from unnest(v_later) i),
                array(select nullif(v_items -> (i - 1) ->> 'correlationId', '') from unnest(v_later) i),
                array(select r.message[i] from unnest(v_later) i),
                array(select queen.message_id_at(r.message[i]) from unnest(v_later) i))
        loop
            -- Find the operation of this row.
            if t.grp is not null then
                select v_ack[min(e.item) + 1] into v_found
                  from (select u.item, u.grp, row_number() over (partition by u.grp order by u.item) - 1 as entry
                          from unnest(k.entry_group, k.item) u(grp, item)) e
                 where e.grp = t.grp and e.entry = coalesce(t.entry, 0);
            elsif t.kind in (3, 4) then
                v_found := v_push[v_later[t.seg]];
            elsif t.kind = 2 then
                select min(v_push[v_now[u.ord]]) into v_found
                  from unnest(a.item_seg, a.item_pos) with ordinality u(seg, pos, ord)
                 where u.seg = t.seg and u.pos = coalesce(t.pos, u.pos);
            end if;
            if t.kind = 0 then
                v_at := v_at || t.created_at;
            elsif t.kind = 3 then
                v_due[v_later[t.seg]] := t.created_at;
                v_id[v_later[t.seg]] := t.dup_id;
            elsif t.kind = 1 then
                v_dead := case when t.dead then v_dead || v_found else v_dead end;
            elsif v_first is null or v_found < v_first then
                v_first := v_found;
                v_error := t.error;
            end if;
        end loop;
    end if;

    v_seg := array(select a.item_seg[array_position(v_now, i)] from generate_series(1, cardinality(v_push)) i);
    v_pos := array(select a.item_pos[array_position(v_now, i)] from generate_series(1, cardinality(v_push)) i);
    select jsonb_agg(
               case o.type
               when 'push' then jsonb_build_object(
                    'index', o.idx, 'type', 'push', 'success', o.ok, 'transactionId', p.id,
                    'messageId', case when p.seg is null then p.wait_id
                                      else coalesce(p.message_id, queen.message_id(v_at[p.seg], p.pos, p.lane)) end,
                    'partitionId', p.lane_id, 'queueName', p.queue)
                    || case when o.ok and p.due is not null
                            then jsonb_build_object('status', 'scheduled', 'scheduleId', p.wait_id, 'scheduledAt', queen.iso_ms(p.due))
                            else '{}' end
                    || case when o.ok then '{}'::jsonb else jsonb_build_object('error', v_error) end
               when 'ack' then jsonb_build_object(
                    'index', o.idx, 'type', 'ack', 'success', o.ok, 'transactionId', o.op -> 'transactionId',
                    'error', case when not o.ok then v_error end, 'dlq', o.idx = any (v_dead))
               else jsonb_build_object('index', o.idx, 'type', o.type, 'success', false, 'error', v_error)
               end order by o.idx)
      into v_results
      from (select u.ord::int - 1 as idx, u.op, u.type, u.ord::int - 1 is distinct from v_first as ok
              from unnest(v_op, v_type) with ordinality u(op, type, ord)) o
      left join unnest(v_push, r.queue, r.id, r.message_id, l.num, l.id, v_seg, v_pos, v_due, v_id)
                p(idx, queue, id, message_id, lane, lane_id, seg, pos, due, wait_id) on p.idx = o.idx
     where o.idx <= coalesce(v_first, o.idx);
    if v_first is null then
        perform queen.notify_pushed(array(select r.queue[i] from unnest(v_now) i));
    end if;
    return jsonb_build_object('transactionId', gen_random_uuid(), 'success', v_first is null,
                              'results', coalesce(v_results, '[]'))
        || case when v_first is null then '{}'::jsonb else jsonb_build_object('error', v_error) end;
end
$$;
