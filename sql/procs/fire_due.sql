-- queen.fire_due: append messages whose time has come, recurring ones too, to their lanes: one bounded step.
--
-- needs: run_schedules, next_due, tell, transaction_key
-- called by  src/broker/fire.c (call "fire_due"); brokers may do so at the same time
-- in         p_origin: the process; p_limit: messages at most; p_from_us: nothing before this time waits any more as far as the
--            caller knows (a hint that spares it the places of messages that have gone; 0: look at all)
-- out        per lane that got something, those of a queue together: lane, its names and how many; and a row with lane null:
--            late: 4 bytes for each message, milliseconds between its time and now; more: call again at once;
--            busy: lanes that somebody holds have something due, call again in a moment; wait_us: until the next one
--            is due (null: none within ten minutes); through_us: all that was due by then is gone (null: not all)
-- locks      as queen.run_schedules; then lanes in num order, skipping those of others: a session that holds a lane stops that lane only
--
-- Who has a lane has all of it: rows are taken by deleting them under the lane's lock, in the order (due_at, num), up to
-- the last that was seen before; so two brokers cannot change the order of a lane, and what dies on the way has taken nothing.
-- UUIDv7 keys are left out of key_min and key_max, because messages that were scheduled at different times
-- would need a segment each: all keys go to queen.message_keys.
create or replace function queen.fire_due(p_origin int, p_limit int, p_from_us bigint)
returns table (lane bigint, lane_id uuid, lane_name text, queue_name text, count int,
               late bytea, more boolean, busy boolean, wait_us bigint, through_us bigint)
language plpgsql
-- Plans that were made while a slice was empty must not become scans of all of it.
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    v_from  timestamptz := 'epoch'::timestamptz + p_from_us * interval '1 microsecond';
    v_due   timestamptz;    -- what is due by now
    v_runs  int;            -- recurring ones that have joined it
    v_now   timestamptz;
    v_seen  bigint[];       -- lanes with something due ...
    v_busy  bigint[] := '{}';
    v_mine  bigint[];       -- ... those of them that we have
    v_new   bigint[];
    v_at    timestamptz;    -- the last message of this step
    v_num   bigint;
    v_full  boolean;        -- there may be more than this step takes
    v_late  bytea;
    v_lanes bigint[];
    v_count int[];
begin
    v_runs := queen.run_schedules(p_limit);
    v_due := clock_timestamp();
    for tries in 1 .. 5 loop
        -- A step ends with the first message that is more than 8 MB behind its start.
        select array_agg(distinct d.lane), count(*) = p_limit or sum(d.bytes) >= 8388608,
               (array_agg(d.due_at order by d.due_at desc, d.num desc))[1],
               (array_agg(d.num order by d.due_at desc, d.num desc))[1]
          into v_seen, v_full, v_at, v_num
          from (select c.*, sum(c.bytes) over (order by c.due_at, c.num) - c.bytes as before
                  from (select s.lane, s.due_at, s.num, octet_length(s.message) as bytes
                          from queen.scheduled s
                         where s.due_at >= v_from and s.due_at <= v_due and s.lane <> all (v_busy)
                         order by s.due_at, s.num limit p_limit) c) d
         where d.before < 8388608;
        exit when v_seen is null;
        select array_agg(l.num), array_agg(l.num) filter (where not l.scheduling) into v_mine, v_new
          from (select num, scheduling from queen.lanes
                 where num = any (v_seen) order by num for no key update skip locked) l;
        v_busy := v_busy || array(select s from unnest(v_seen) s where s = any (v_mine) is not true);
        exit when v_mine is not null;
    end loop;

    if v_mine is not null then
        v_now := clock_timestamp();
        if v_new is not null then
            update queen.lanes l set scheduling = true where l.num = any (v_new);
        end if;
        with gone as (
            delete from queen.scheduled s
             where s.due_at >= v_from and s.due_at <= v_at and (s.due_at, s.num) <= (v_at, v_num) and s.lane = any (v_mine)
            returning s.lane, s.due_at, s.num, s.id, s.key, s.message, s.kind, s.correlation_id
        ), placed as materialized (
            select g.lane, g.due_at, g.id, g.key, g.message, g.kind, g.correlation_id,
                   row_number() over w as nth, sum(length(g.message)) over w as bytes
              from gone g window w as (partition by g.lane order by g.due_at, g.num)
        ), cut as (
            select p.lane, min(p.nth) as first_nth, count(*)::int as count,
                   row_number() over (partition by p.lane order by min(p.nth)) - 1 as seg,
                   string_agg(uuid_send(p.key), ''::bytea order by p.nth) as keys,
                   '\x01'::bytea || string_agg(p.message, ''::bytea order by p.nth) as body
              from placed p
             group by p.lane, (p.nth - 1) / 256, (p.bytes - 1) / 65536
        ), ends as materialized (
            select m.lane, coalesce(last.next_seq, 1) as next_seq, last.after
              from unnest(v_mine) m(lane)
              left join lateral (
                   select s.first_seq + greatest(s.count, 1) as next_seq, s.created_at + interval '1 microsecond' as after
                     from queen.segments s where s.lane = m.lane order by s.first_seq desc limit 1) last on true
        ), stored as (
            insert into queen.segments (lane, first_seq, created_at, count, keys, body)
            select c.lane, e.next_seq + c.first_nth - 1,
                   greatest(v_now, e.after) + c.seg * interval '1 microsecond', c.count, c.keys, c.body
              from cut c join ends e on e.lane = c.lane
             order by c.lane, c.seg
        ), noted as (
            insert into queen.message_keys (lane, key, seq)
            -- The same key twice in a step: retries of a message may fall due together.
            select p.lane, p.key, max(e.next_seq + p.nth - 1)
              from placed p join ends e on e.lane = p.lane
             group by p.lane, p.key
             order by p.lane, p.key
                on conflict (lane, key) do update set seq = excluded.seq
        ), correlated as (
            -- By its id too: that was made before the message had a place, and so does not tell it.
            insert into queen.correlations (correlation, lane, seq)
            select c.id, p.lane, e.next_seq + p.nth - 1
              from placed p join ends e on e.lane = p.lane
              cross join lateral (select p.id union select queen.transaction_key(p.correlation_id)) c(id)
             where p.kind = 'p' and c.id is not null
        )
        select array_agg(l.lane), array_agg(l.n), string_agg(l.late, ''::bytea)
          into v_lanes, v_count, v_late
          from (select p.lane, count(*)::int as n,
                       string_agg(int4send(least(extract(epoch from v_now - p.due_at) * 1000, 2147483647)::int), ''::bytea) as late
                  from placed p group by p.lane) l;
        if v_lanes is not null then
            perform queen.tell(p_origin, v_lanes);
            return query
            select l.num, l.id, case when l.origin is null then l.name::text else 'retry:' || l.id end, q.name::text, u.n, null::bytea, null::boolean, null::boolean,
                   null::bigint, null::bigint
              from unnest(v_lanes, v_count) u(lane, n)
              cross join lateral (select * from queen.lanes l where l.num = u.lane offset 0) l
              cross join lateral (select q.id, q.name from queen.queues q where q.id = coalesce(l.origin_queue, l.queue_id) offset 0) q
             order by q.id;
        end if;
    end if;

    lane := null;
    late := v_late;
    -- A lane that is missing was deleted: queen.forget_deleted removes its messages.
    busy := exists (select from queen.lanes l where l.num = any (v_busy));
    more := coalesce(v_full and v_mine is not null, false) or v_runs >= p_limit;
    if more or busy then
        wait_us := 0;
    else
        wait_us := queen.next_due(p_from_us);
        through_us := (extract(epoch from v_due) * 1000000)::bigint;
    end if;
    return next;
end
$$;
