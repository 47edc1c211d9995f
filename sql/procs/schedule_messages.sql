-- queen.schedule_messages: messages that are delivered later, deduplicated exactly.
--
-- needs: schedule_rows, schedule_num, slices_missing, stored_id, segment_key_id, waiting_id
-- called by  src/broker/schedule.c (call "schedule"); queen.transact_2; queen.push_items
-- in         p_origin  the process; 0: a SQL session, which makes missing slices on the way
--            p_bare    the caller cannot encrypt: what comes in clear may be stored in clear
--            one element per message, in order: p_lane, p_key, p_due_us (Unix time, microseconds) or p_delay_us (from now, by
--            PostgreSQL's clock), p_id_at and p_message as in queen.schedule_rows; p_transaction_id null: the producer gave none
-- out        one row per element, in order; a time that has passed becomes now
--            status 0 it waits: id, due_at
--                   1 duplicate of a message that waits or was delivered: its id, and due_at if it waits
--                   3 the lane is gone: resolve the name again
--                   6 the lane is sealed and the message is not: encrypt it
--                   7 a slice is missing (then all have it, and nothing was stored): call queen.make_slices
-- locks      lanes in num order, as a push does
--
-- A queue's maxSize is about what it holds: waiting messages do not count, and are let in when they are due.
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
    v_new    bigint[];      -- those that have their first scheduled message
    v_due    timestamptz[];
    v_now    timestamptz;
    v_status int2[];
    v_dup    uuid[];        -- per element: id of the message that was there first
    v_keep   int[];         -- elements to store (1-based)
    v_num    bigint[];      -- their numbers
    v_id     uuid[];        -- their ids, by element
begin
    select array_agg(l.num), array_agg(l.num) filter (where l.sealed), array_agg(l.num) filter (where not l.scheduling)
      into v_here, v_sealed, v_new
      from (select num, sealed, scheduling from queen.lanes
             where num = any (p_lane) order by num for no key update) l;
    v_now := clock_timestamp();
    select array_agg(greatest(v_now, case when u.due is null then v_now + u.delay * interval '1 microsecond'
                                          else 'epoch'::timestamptz + u.due * interval '1 microsecond' end)
                     order by u.ord)
      into v_due
      from unnest(p_due_us, p_delay_us) with ordinality u(due, delay, ord);
    if p_origin <> 0 and queen.slices_missing(v_due) then
        return query select i - 1, 7::int2, null::uuid, null::timestamptz from generate_series(1, cardinality(p_lane)) i;
        return;
    end if;

    -- The first of two equal ones in one call counts; what is stored or waits came before both.
    select array_agg(d.id order by u.ord),
           array_agg(case when u.lane = any (v_here) is not true then 3
                          when not p_bare and u.lane = any (v_sealed) and get_byte(u.message, 0) & 8 = 0 then 6
                          when d.id is not null or u.nth > 1 then 1
                          else 0 end::int2 order by u.ord)
      into v_dup, v_status
      from (select w.*, row_number() over (partition by w.lane, w.key order by w.ord) as nth
              from unnest(p_lane, p_key, p_message) with ordinality w(lane, key, message, ord)) u
      left join lateral (select k.seq from queen.message_keys k where k.lane = u.lane and k.key = u.key offset 0) k on true
      cross join lateral (
           select case when k.seq <= 0 then queen.waiting_id(u.lane, u.key)
                       when k.seq > 0 then queen.stored_id(u.lane, k.seq)
                       when get_byte(uuid_send(u.key), 6) >> 4 = 7 then queen.segment_key_id(u.lane, u.key) end as id) d;
    select array_agg(s.ord::int order by s.ord) into v_keep
      from unnest(v_status) with ordinality s(status, ord) where s.status = 0;

    if v_keep is not null then
        select array_agg(r.num order by r.idx), array_agg(r.id order by r.idx)
          into v_num, v_id
          from queen.schedule_rows('p', array(select p_lane[k] from unnest(v_keep) k),
                                   array(select p_key[k] from unnest(v_keep) k),
                                   array(select v_due[k] from unnest(v_keep) k), null, null,
                                   array(select p_correlation_id[k] from unnest(v_keep) k),
                                   array(select p_transaction_id[k] from unnest(v_keep) k),
                                   array(select p_id_at[k] from unnest(v_keep) k),
                                   array(select p_message[k] from unnest(v_keep) k)) r;
        insert into queen.message_keys (lane, key, seq)
        select p_lane[u.k], p_key[u.k], -u.num from unnest(v_keep, v_num) u(k, num);
        if v_new is not null then
            update queen.lanes l set scheduling = true where l.num = any (v_new);
        end if;
    end if;

    return query
    with stored as materialized (select u.k, u.id from unnest(v_keep, v_id) u(k, id)),
    firsts as materialized (select p_lane[s.k] as lane, p_key[s.k] as key, s.id from stored s)
    select u.ord::int - 1, u.status,
           case u.status when 0 then s.id
                         when 1 then coalesce(u.dup, (select f.id from firsts f where f.lane = u.lane and f.key = u.key)) end,
           case when u.status = 0 then u.due
                when u.dup is not null then (select w.due_at from queen.scheduled w
                                              where w.num = queen.schedule_num(u.dup) and w.id = u.dup) end
      from unnest(p_lane, p_key, v_status, v_dup, v_due) with ordinality u(lane, key, status, dup, due, ord)
      left join stored s on s.k = u.ord
     order by u.ord;
end
$$;
