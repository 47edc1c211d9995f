-- queen.schedule_messages: store scheduled messages, with exact deduplication.
--
-- numbers:   status scheduled_status
-- needs: allows_clear, schedule_rows, schedule_num, stored_id, segment_key_id, waiting_id
-- called by  broker/src/broker/schedule/schedule.c (call "schedule"); queen.transact_scheduled, queen.push_mixed, queen.push_items,
--            queen.redrive_elsewhere
-- in         p_origin  the process; 0: a SQL session
--            p_bare    true: messages in clear may be stored in clear; null: the same, if the queue allows it, because the caller cannot
--                      encrypt
--            one element per message, in order: p_lane, p_key, p_due_us (Unix time, microseconds) or p_delay_us (from now, by
--            PostgreSQL's clock), p_id_at and p_message as in queen.schedule_rows; p_transaction_id null: the producer gave none
-- out        one row per element, in order; a time that has passed becomes now
--            status 0 stored: id, due_at
--                   1 duplicate of a scheduled or delivered message: its id, and due_at if it is scheduled
--                   3 the lane is gone: resolve the name again
--                   6 the lane is sealed and the message is not: encrypt it
--                   7 the same, but p_bare is null and the queue does not allow it
-- locks      lanes in num order, as a push does; a broker waits at most 100 ms for each (queen.push_segments)
--
-- maxSize limits the messages in the queue: scheduled messages do not count, and are accepted when they are due.
create or replace function queen.schedule_messages(
    p_origin int, p_bare boolean, p_lane bigint[], p_key uuid[], p_due_us bigint[], p_delay_us bigint[],
    p_transaction_id text[], p_correlation_id text[], p_message bytea[], p_id_at int[])
returns table (idx int, status int2, id uuid, due_at timestamptz)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_here   bigint[];      -- lanes that exist
    v_sealed bigint[];      -- those of queues with encryptionEnabled
    v_new    bigint[];      -- those that get their first scheduled message
    v_due    timestamptz[];
    v_now    timestamptz;
    v_status int2[];
    v_near   bigint[];      -- lanes that were pushed to around the times of these UUIDv7 keys
    v_dup    uuid[];        -- per element: id of the earlier message
    v_keep   int[];         -- elements to store (1-based); null: all or none
    k_lane   bigint[];      -- the messages to store, column by column
    k_key    uuid[];
    k_due    timestamptz[];
    k_correlation_id text[];
    k_transaction_id text[];
    k_id_at  int[];
    k_message bytea[];
    v_num    bigint[];      -- their numbers
    v_id     uuid[];        -- their ids
    v_ids    uuid[];        -- the same, by element
    v_timeout text;         -- lock_timeout of the session
begin
    if cardinality(p_lane) = 0 then
        return;
    end if;
    if p_origin <> 0 then
        v_timeout := current_setting('lock_timeout');
        perform set_config('lock_timeout', '100ms', true);
    end if;
    select array_agg(l.num), array_agg(l.num) filter (where l.sealed), array_agg(l.num) filter (where not l.scheduling)
      into v_here, v_sealed, v_new
      from (select num, sealed, scheduling from queen.lanes
             where num = any (p_lane) order by num for no key update) l;
    if p_origin <> 0 then
        perform set_config('lock_timeout', v_timeout, true);
    end if;
    v_now := clock_timestamp();
    select array_agg(greatest(v_now, case when u.due is null then v_now + u.delay * interval '1 microsecond'
                                          else 'epoch'::timestamptz + u.due * interval '1 microsecond' end)
                     order by u.ord)
      into v_due
      from unnest(p_due_us, p_delay_us) with ordinality u(due, delay, ord);

    select array_agg(k.lane) into v_near
      from (select u.lane, min(t.ms) as low, max(t.ms) as high
              from unnest(p_lane, p_key) u(lane, key)
              cross join lateral (select ('x' || substr(u.key::text, 1, 8) || substr(u.key::text, 10, 4))::bit(48)::bigint) t(ms)
             where substr(u.key::text, 15, 1) = '7'
             group by u.lane) k
     where exists (select from queen.segments s
                    where s.lane = k.lane and s.key_max >= k.low and s.key_max <= k.high + 1000 and s.key_min <= k.high);

    -- Of two equal messages in one call the first counts. Stored and scheduled messages count before both.
    select array_agg(d.id order by u.ord),
           array_agg(case when u.lane = any (v_here) is not true then 3
                          when p_bare is not true and u.lane = any (v_sealed) and get_byte(u.message, 0) & 8 = 0
                               and (not p_bare or not queen.allows_clear(u.lane)) then case when p_bare is null then 7 else 6 end
                          when d.id is not null or u.nth > 1 then 1
                          else 0 end::int2 order by u.ord)
      into v_dup, v_status
      from (select w.*, row_number() over (partition by w.lane, w.key order by w.ord) as nth
              from unnest(p_lane, p_key, p_message) with ordinality w(lane, key, message, ord)) u
      left join lateral (select k.seq from queen.message_keys k where k.lane = u.lane and k.key = u.key offset 0) k on true
      cross join lateral (
           select case when k.seq <= 0 then queen.waiting_id(u.lane, u.key)
                       when k.seq > 0 then queen.stored_id(u.lane, k.seq)
                       when u.lane = any (v_near) and substr(u.key::text, 15, 1) = '7' then queen.segment_key_id(u.lane, u.key)
                  end as id) d;
    -- In most calls all of them are new. Remove those that are not.
    if v_status <> array_fill(0::int2, array[cardinality(v_status)]) then
        select array_agg(u.ord::int order by u.ord), array_agg(u.lane order by u.ord), array_agg(u.key order by u.ord),
               array_agg(u.due order by u.ord), array_agg(u.correlation_id order by u.ord),
               array_agg(u.transaction_id order by u.ord), array_agg(u.id_at order by u.ord), array_agg(u.message order by u.ord)
          into v_keep, k_lane, k_key, k_due, k_correlation_id, k_transaction_id, k_id_at, k_message
          from unnest(v_status, p_lane, p_key, v_due, p_correlation_id, p_transaction_id, p_id_at, p_message)
               with ordinality u(status, lane, key, due, correlation_id, transaction_id, id_at, message, ord)
         where u.status = 0;
    else
        k_lane := p_lane; k_key := p_key; k_due := v_due; k_correlation_id := p_correlation_id;
        k_transaction_id := p_transaction_id; k_id_at := p_id_at; k_message := p_message;
    end if;

    if cardinality(k_lane) > 0 then
        select array_agg(r.num order by r.idx), array_agg(r.id order by r.idx) into v_num, v_id
          from queen.schedule_rows('p', k_lane, k_key, k_due, null, null, k_correlation_id, k_transaction_id, k_id_at, k_message) r;
        insert into queen.message_keys (lane, key, seq)
        select u.lane, u.key, -u.num from unnest(k_lane, k_key, v_num) u(lane, key, num);
        if v_new is not null then
            update queen.lanes l set scheduling = true where l.num = any (v_new);
        end if;
    end if;
    if cardinality(k_lane) = cardinality(p_lane) then
        return query select (u.ord - 1)::int, 0::int2, u.id, u.due from unnest(v_id, v_due) with ordinality u(id, due, ord) order by u.ord;
        return;
    end if;

    v_ids := array_fill(null::uuid, array[cardinality(p_lane)]);
    for i in 1 .. coalesce(cardinality(v_keep), 0) loop
        v_ids[v_keep[i]] := v_id[i];
    end loop;
    return query
    select u.ord::int - 1, u.status,
           case u.status when 0 then u.id
                         when 1 then coalesce(u.dup, (select f.id from unnest(k_lane, k_key, v_id) f(lane, key, id)
                                                       where f.lane = u.lane and f.key = u.key)) end,
           case when u.status = 0 then u.due
                when u.dup is not null then (select w.due_at from queen.scheduled w
                                              where w.num = queen.schedule_num(u.dup) and w.id = u.dup) end
      from unnest(p_lane, p_key, v_status, v_dup, v_due, v_ids) with ordinality u(lane, key, status, dup, due, id, ord)
     order by u.ord;
end
$$;
