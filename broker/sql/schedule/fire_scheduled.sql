-- queen.fire_scheduled: append due messages, including recurring ones, to their lanes, one bounded step.
--
-- needs: run_schedules, take_due, next_due, slice_at, notify_lanes, transaction_key
-- called by  broker/src/broker/schedule/timer.c (call "fire_scheduled"); brokers may call it at the same time
-- in         p_origin: the process; p_limit: approximate number of messages; p_from_us: the caller expects no scheduled message before
--            this time (a hint that avoids reading the dead rows of delivered messages; 0: read all)
-- out        per lane that got messages, those of a queue together: lane, its names and the number; and a row with lane null:
--            late: 4 bytes for each message, milliseconds between its time and now; more: call again at once;
--            busy: other sessions have locked due messages; wait_us: when to call again, because the next message is due then or
--            to try locked messages again (null: nothing is due within ten minutes); through_us: everything due by then
--            was delivered (null: not everything)
-- locks      as queen.run_schedules; then lanes and messages, skipping those of others. It never waits for another session: a session
--            that has locked a lane delays only that lane
--
-- Reads due messages in the order (due_at, num) until p_limit or 8 MB of them are on lanes that this step could lock.
-- Messages of locked lanes do not count, so they cannot delay others. A locked message is tried again after a quarter of the time
-- that it has waited, between 10 ms and 1 s.
--
-- The session that has locked a lane takes its messages in that order, up to the last one that was found before the
-- lock. So two brokers cannot change the order of a lane, and a session that dies has taken nothing.
-- UUIDv7 keys are not included in key_min and key_max, because messages that were scheduled at different times
-- would need a segment each: all keys go to queen.message_keys.
create or replace function queen.fire_scheduled(p_origin int, p_limit int, p_from_us bigint)
returns table (lane bigint, lane_id uuid, lane_name text, queue_name text, count int,
               late bytea, more boolean, busy boolean, wait_us bigint, through_us bigint)
language plpgsql
-- A plan made when a slice was empty must not become a scan of the whole slice.
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    c_bytes  constant bigint := 8388608;
    v_from   timestamptz := 'epoch'::timestamptz + p_from_us * interval '1 microsecond';
    v_due    timestamptz;      -- messages up to this time are due
    v_slices int[];
    v_runs   int;              -- number of recurring messages among them
    v_now    timestamptz;
    v_next   record;           -- the next due messages, by lane
    v_at     timestamptz;      -- the last message that was read
    v_num    bigint := -1;
    v_first  timestamptz;      -- the time of the first
    v_seen   bigint[];         -- lanes found for the first time
    v_got    bigint[];         -- those of them that this step has locked
    v_left   bigint[];         -- those of them that others have locked
    v_mine   bigint[] := '{}'; -- all lanes that this step has locked
    v_busy   bigint[] := '{}'; -- all lanes that others have locked
    v_gone   bigint[] := '{}'; -- lanes that were deleted
    v_new    bigint[];         -- lanes without the mark "scheduling"
    v_looked bigint := 0;      -- numbers of messages read: all, ...
    v_ours   bigint := 0;      -- ... those of the locked lanes, ...
    v_bytes  bigint := 0;
    v_taken  bigint := 0;      -- ... and those delivered
    v_full   boolean := false; -- there may be more than this step takes
    v_locked timestamptz;      -- the latest of the first due times of lanes that others have locked
    v_late   bytea;
    v_lanes  bigint[];
    v_count  int[];
begin
    v_runs := queen.run_schedules(p_limit);
    v_due := clock_timestamp();
    v_slices := 0 || array(select k.slice from queen.scheduled_slices k
                            where k.slice between queen.slice_at(v_from) and queen.slice_at(v_due));
    v_at := v_from;
    loop
        -- Values, not parameters of a cached plan, so that only the needed slices are opened and locked.
        execute '
            with found as materialized (
                select s.lane, s.due_at, s.num, octet_length(s.message) as bytes
                  from queen.scheduled s
                 where s.slice = any ($1) and s.due_at >= $2 and s.due_at <= $3 and (s.due_at, s.num) > ($2, $4)
                 order by s.due_at, s.num limit $5
            ), kept as materialized (
                select f.* from (select f.*, sum(f.bytes) over (order by f.due_at, f.num) - f.bytes as before from found f) f
                 where f.before < $6
            )
            select array_agg(l.lane) as lane, array_agg(l.n) as n, array_agg(l.bytes) as bytes, array_agg(l.first_at) as first_at,
                   last.due_at, last.num, (select count(*) from found) as found, (select count(*) from kept) as kept
              from (select k.lane, count(*) as n, sum(k.bytes) as bytes, min(k.due_at) as first_at from kept k group by k.lane) l
              cross join (select k.due_at, k.num from kept k order by k.due_at desc, k.num desc limit 1) last
             group by last.due_at, last.num'
           into v_next using v_slices, v_at, v_due, v_num, p_limit, c_bytes;
        v_full := false;
        exit when v_next.lane is null;
        v_at := v_next.due_at;
        v_num := v_next.num;
        v_first := coalesce(v_first, (select min(f) from unnest(v_next.first_at) f));
        v_looked := v_looked + v_next.kept;
        v_full := v_next.found >= p_limit or v_next.kept < v_next.found;
        v_seen := array(select unnest(v_next.lane) except select unnest(v_mine || v_busy || v_gone));
        select array_agg(l.num), v_new || array_agg(l.num) filter (where not l.scheduling) into v_got, v_new
          from (select num, scheduling from queen.lanes
                 where num = any (v_seen) order by num for no key update skip locked) l;
        v_mine := v_mine || v_got;
        v_left := array(select unnest(v_seen) except select unnest(v_got));
        if v_left <> '{}' then
            v_got := array(select l.num from queen.lanes l where l.num = any (v_left));
            v_busy := v_busy || v_got;
            v_gone := v_gone || array(select unnest(v_left) except select unnest(v_got));
        end if;
        select v_ours + coalesce(sum(u.n) filter (where u.lane = any (v_mine)), 0),
               v_bytes + coalesce(sum(u.bytes) filter (where u.lane = any (v_mine)), 0),
               greatest(v_locked, max(u.first_at) filter (where u.lane = any (v_busy)))
          into v_ours, v_bytes, v_locked
          from unnest(v_next.lane, v_next.n, v_next.bytes, v_next.first_at) u(lane, n, bytes, first_at);
        exit when not v_full or v_ours >= p_limit or v_bytes >= c_bytes or v_looked >= 50 * p_limit;
    end loop;
    if v_gone <> '{}' then
        perform from queen.take_due(v_slices, v_from, v_at, v_num, v_gone);
    end if;

    if v_mine <> '{}' then
        v_now := clock_timestamp();
        if v_new is not null then
            update queen.lanes l set scheduling = true where l.num = any (v_new);
        end if;
        with placed as materialized (
            select g.lane, g.due_at, g.id, g.key, g.message, g.kind, g.correlation_id,
                   row_number() over w as nth, sum(length(g.message)) over w as bytes
              from queen.take_due(v_slices, v_from, v_at, v_num, v_mine) g
            window w as (partition by g.lane order by g.due_at, g.num)
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
            -- A key may occur twice in a step, because retries of a message may become due together.
            select p.lane, p.key, max(e.next_seq + p.nth - 1)
              from placed p join ends e on e.lane = p.lane
             group by p.lane, p.key
             order by p.lane, p.key
                on conflict (lane, key) do update set seq = excluded.seq
        ), correlated as (
            -- Also by its id, which was assigned before the message had a position and so does not contain it.
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
            v_taken := (select sum(n) from unnest(v_count) n);
            perform queen.notify_lanes(p_origin, v_lanes);
            return query
            select l.num, l.id, case when l.origin is null then l.name::text else 'retry:' || l.id end, q.name::text, u.n, null::bytea, null::boolean, null::boolean,
                   null::bigint, null::bigint
              from unnest(v_lanes, v_count) u(lane, n)
              cross join lateral (select * from queen.lanes l where l.num = u.lane offset 0) l
              cross join lateral (select q.id, q.name from queen.queues q where q.id = coalesce(l.origin_queue, l.queue_id) offset 0) q
             order by q.id;
        end if;
    end if;

    if v_taken < v_ours then
        v_locked := coalesce(v_locked, v_first); -- some are being cancelled
    end if;
    v_locked := greatest(v_locked, (select max(n.next_at) from queen.schedules n where n.next_at <= v_due)); -- locked, too

    lane := null;
    late := v_late;
    busy := v_locked is not null;
    more := (v_full and v_taken > 0) or v_runs >= p_limit;
    if more then
        wait_us := 0;
    elsif busy then
        wait_us := least(queen.next_due((extract(epoch from v_due) * 1000000)::bigint + 1),
                         least(greatest((extract(epoch from clock_timestamp() - v_locked) * 250000)::bigint, 10000), 1000000));
    else
        wait_us := queen.next_due(p_from_us);
        through_us := (extract(epoch from v_due) * 1000000)::bigint;
    end if;
    return next;
end
$$;
