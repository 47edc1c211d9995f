-- queen.push_items_now: push items given as JSON for immediate delivery.
--
-- numbers:   status seg_status
-- needs: lock_limited, note_correlations, read_items, pack_segments, ensure_lanes, push_segments, stored_id, find_message, waiting_id, require_read_committed
-- called by  queen.push_items
-- in         p_items: see queen.read_items
-- out        one row per item, in order; created_at null: a duplicate, message_id is that of the stored message
-- locks      as queen.lock_limited, queen.ensure_lanes and queen.push_segments
-- raises     QN001 for a malformed item, QN003, QN004 if a queue is full; nothing is stored then
create or replace function queen.push_items_now(p_items jsonb)
returns table (idx int, queue text, part text, transaction_id text, trace_id uuid, lane bigint,
               lane_id uuid, message_id uuid, created_at timestamptz)
language plpgsql
as $$
#variable_conflict use_column
declare
    r       record;  -- the items, column by column
    l       record;  -- their lanes
    a       record;  -- arguments for the push
    s       record;  -- a row of its result
    v_keep  int[];   -- items to store (1-based)
    v_dup   int[];   -- items that are duplicates
    v_first timestamptz[]; -- created_at by segment
    v_tries int := 0;
begin
    perform queen.require_read_committed();
    select array_agg(i.queue order by i.idx) as queue, array_agg(i.part order by i.idx) as part,
           array_agg(i.transaction_id order by i.idx) as transaction_id, array_agg(i.key order by i.idx) as key,
           array_agg(i.trace_id order by i.idx) as trace_id,
           array_agg(i.message_id order by i.idx) as message_id, array_agg(i.message order by i.idx) as message
      into r
      from queen.read_items(p_items, 'null') i;
    if r.key is null then
        return;
    end if;

    -- Labels apply only to a queue that this push creates.
    insert into queen.queues (name, namespace, task)
    select distinct on (i ->> 'queue') i ->> 'queue', coalesce(i ->> 'namespace', ''), coalesce(i ->> 'task', '')
      from jsonb_array_elements(p_items) i
     where coalesce(i ->> 'namespace', '') <> '' or coalesce(i ->> 'task', '') <> ''
     order by i ->> 'queue'
        on conflict (name) do nothing;

    perform queen.lock_limited(r.queue);
    loop
        select array_agg(e.lane order by e.idx) as num, array_agg(e.lane_id order by e.idx) as id into l
          from queen.ensure_lanes(r.queue, r.part) e;
        exit when cardinality(l.num) = cardinality(r.key);
        v_tries := v_tries + 1;
        if v_tries > 100 then
            raise exception 'the queue is being deleted' using errcode = '40001';
        end if;
    end loop;
    if -1 = any (l.num) then
        raise exception 'item %: the queue has a fixed set of partitions and this is not one of them',
            array_position(l.num, -1::bigint) - 1 using errcode = 'QN001';
    end if;

    -- If a key occurs twice in one push, the first item counts.
    select array_agg(u.ord::int order by u.ord) into v_keep
      from (select u.ord, row_number() over (partition by u.lane, u.key order by u.ord) as nth
              from unnest(l.num, r.key) with ordinality u(lane, key, ord)) u
     where u.nth = 1;

    loop
        v_first := '{}';
        v_dup := '{}';
        exit when v_keep is null;
        select * into a
          from queen.pack_segments(array(select l.num[k] from unnest(v_keep) k),
                                   array(select r.key[k] from unnest(v_keep) k),
                                   array(select r.message[k] from unnest(v_keep) k));
        for s in
            select * from queen.push_segments(0, true, a.lanes, a.lane, array_fill(0::bigint, array[cardinality(a.lane)]), a.nth, a.before, a.count, a.key_min, a.key_max,
                                              a.keys, a.body, a.plain_seg, a.plain_pos, a.plain_key)
        loop
            case s.status
                when 0 then
                    v_first := v_first || s.created_at; -- as long as all are stored, rows are in the order of a.lane
                    perform queen.note_correlations(s.lane, s.first_seq, a.count[cardinality(v_first)],
                                                    a.keys[cardinality(v_first)], a.body[cardinality(v_first)]);
                when 1 then
                    select v_dup || v_keep[u.ord] into v_dup
                      from unnest(a.item_seg, a.item_pos) with ordinality u(seg, pos, ord)
                     where u.seg = s.seg and u.pos = s.pos;
                when 3 then
                    raise exception 'a partition was deleted meanwhile' using errcode = '40001';
                when 4 then
                    raise exception 'queue "%" is full',
                        (select q.name from queen.lanes n join queen.queues q on q.id = n.queue_id
                          where n.num = a.lane[s.seg]) using errcode = 'QN004';
                else
                    null; -- not stored because of another row
            end case;
        end loop;
        exit when v_dup = '{}';
        -- Nothing was stored. The locks stay, so the second attempt finds no more duplicates.
        select array_agg(k order by k) into v_keep from unnest(v_keep) k where k <> all (v_dup);
    end loop;

    return query
    select u.ord::int - 1, u.queue, u.part, u.transaction_id, u.trace_id, u.lane, u.lane_id,
           case when p.created_at is null then coalesce(queen.stored_id(u.lane, queen.find_message(u.lane, u.key)),
                                                        queen.waiting_id(u.lane, u.key))
                else coalesce(u.message_id, queen.message_id(p.created_at, p.pos, u.lane)) end,
           p.created_at
      from unnest(r.queue, r.part, r.transaction_id, r.key, r.trace_id, r.message_id, l.num, l.id)
           with ordinality u(queue, part, transaction_id, key, trace_id, message_id, lane, lane_id, ord)
      left join (select k.item, v_first[k.seg] as created_at, k.pos
                   from unnest(v_keep, a.item_seg, a.item_pos) k(item, seg, pos)) p on p.item = u.ord
     order by u.ord;
end
$$;
