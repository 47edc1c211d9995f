-- queen.claim_work: lease messages for pops, of queues that settle each message on its own.
--
-- numbers:   status claim_status, v_status claim_status
-- needs: begin_work, end_work, limit_work, leased_until, take_in_order, next_unskipped, cursor_at, fail_messages, work_floor, newest_hold, oldest_kept
-- called by  broker/src/broker/pop/claim.c (call "claim_work"); queen.pop_one
-- in         one element per pop: p_consumer, p_batch; p_auto: acknowledge on delivery; p_lease: its lease; p_seconds: lease time, 0: the
--            queue's; p_wait: wait a moment if another session has locked the consumer: usually an acknowledgement that commits soon
-- out        rows in this order, for one consumer after the other, in the order of their first pops:
--            one row per pop that got nothing, and for other pops one row per unbroken run of messages (start_seq, take), in order of pops:
--              status 0 claimed; wait_us: when the lease ends, or a message that was given back is due; null: acknowledged on delivery
--                     1, 2, 3, 4, 5, 6 as queen.claim_careful. 3, 4 with wait_us: a lease ends, or a returned message is due, then
--                     7: this is not a work queue, and the consumer has no leases of one
--              more: messages are left after the claimed ones
--            then the segments that contain these runs, with status null and the target of the consumer's last pop
-- locks      consumers in num order, skipping those that others have locked; then with p_wait the skipped ones, 50 ms for each, until
--            three have failed; for a queue with limits as queen.lock_limits, with p_wait for 50 ms unless three waits have failed; then as
--            queen.fail_messages
--
-- Messages whose lease has expired, and returned ones, are delivered first, in the order in which they became available. Then come messages
-- that were not delivered yet, in order. A message that was delivered max_deliveries times becomes a dead letter instead. After half of them a message
-- is delivered alone, so that it is not counted for a neighbour that crashes its consumer. The next claim goes on.
--
-- With ordering "partition" and settlement "message" one pop gets messages at a time, and all of them are delivered in their order: the
-- others have status 2 until the lease has ended, and 4 while the next message waits after it was given back (queen.take_in_order).
--
-- The limits of the queue, and those of each key, lower what the pops get (queen.limit_work). A pop that gets nothing because of them has
-- status 10 if no partition of the queue has room, else 4.
--
-- Only the holder of the consumer's lock reads and writes its holds, so a message is in one open hold at most.
create or replace function queen.claim_work(
    p_consumer bigint[], p_batch int[], p_auto boolean[], p_lease uuid[], p_seconds int[], p_wait boolean[])
returns table (target int, status int2, wait_us bigint, lane bigint, lane_id uuid, lane_name text, queue_name text,
               retries int, start_seq bigint, take int, more boolean,
               first_seq bigint, count int, created_at timestamptz, keys bytea, body bytea)
language plpgsql
as $$
#variable_conflict use_column
declare
    c_scan   constant int := 500; -- rows of queen.holds that one call examines for expiry
    v_locked bigint[];
    v_one    bigint;
    v_timeout text := current_setting('lock_timeout');
    v_waits_left int := 3; -- how many waits may still fail: a session that does not commit must not hold up strangers
    v_slot   "char";
    k        record;   -- a consumer
    st       queen.consumer_states%rowtype;
    v_now    timestamptz;
    v_status int2;     -- of pops that get nothing
    v_until  timestamptz;
    v_due    timestamptz; -- a message that was given back is delivered again then
    v_want   bigint;   -- messages that its pops still want
    -- Of a queue with limits (queen.limit_work):
    v_room   bigint;   -- messages that may be leased
    v_tokens bigint;   -- messages that may be delivered
    v_used   timestamptz;
    v_key_used timestamptz;
    v_queue_room bigint; -- likewise, by the limits of the queue alone
    v_queue_tokens bigint;
    v_look   interval; -- how long to wait for room that no acknowledgement reports
    v_partial boolean;
    v_limited boolean; -- the pops want more than the limits allow
    v_full   boolean;  -- those of the queue
    v_leased int;      -- messages leased by this call
    v_open   int;      -- messages delivered and not settled
    v_moved  boolean;  -- an open message was dropped
    v_dirty  boolean;  -- the state has changed
    v_cutoff timestamptz;
    v_oldest bigint;   -- messages before it were removed or are too old
    v_waits  timestamptz; -- in order: the next message is not delivered before
    v_limit  int;
    x        record;   -- an expired hold
    v_seq    bigint;
    v_done   bytea;
    v_left   boolean;  -- some of it is still open
    v_single boolean;  -- one message is delivered alone
    v_suspect boolean;
    v_dead   bigint[];
    v_head   record;   -- of the lane
    v_seg    record;
    v_start  bigint;
    v_avail  bigint;
    -- Runs of messages to deliver:
    r_first  bigint[];
    r_n      int[];
    r_tries  int[];    -- deliveries before this one
    r_failed int[];    -- how many of these have failed
    v_r      int;
    v_off    int;      -- messages of run v_r that were given to earlier pops
    -- Deliveries: parts of these runs.
    g_target int[];
    g_first  bigint[];
    g_n      int[];
    g_tries  int[];
    g_failed int[];
    v_need   int;
    v_n      int;
    v_auto   int;      -- messages acknowledged on delivery
    v_i      int;
begin
    select array_agg(c.num) into v_locked
      from (select num from queen.consumers
             where num = any (p_consumer) order by num for no key update skip locked) c;
    v_left := false;
    for v_one in select distinct u.consumer from unnest(p_consumer, p_wait) u(consumer, wait)
                  where u.wait and u.consumer = any (v_locked) is not true order by 1 loop
        exit when v_waits_left = 0;
        if not v_left then
            v_left := true;
            perform set_config('lock_timeout', '50ms', true);
        end if;
        begin
            perform c.num from queen.consumers c where c.num = v_one for no key update;
            v_locked := v_locked || v_one;
        exception when lock_not_available then
            v_waits_left := v_waits_left - 1;
        end;
    end loop;
    if v_left then
        perform set_config('lock_timeout', v_timeout, true);
    end if;
    select active into v_slot from queen.rotation;

    for k in
        select u.consumer, u.targets, u.want, c.lane, c.grp, l.id as lane_id, l.origin, l.skipping,
               coalesce(o.name, l.name)::text as lane_name, coalesce(q.name, oq.name)::text as queue_name,
               coalesce(q.by_message, oq.by_message) as by_message, coalesce(q.ordering, oq.ordering) <> 'none' as in_order, coalesce(nullif(coalesce(q.lease_time, oq.lease_time), 0), 60) as seconds,
               q.window_buffer, q.delayed_processing, coalesce(q.retry_policy, oq.retry_policy) as policy, coalesce(q.max_deliveries, oq.max_deliveries) as max_deliveries,
               coalesce(q.id, oq.id) as queue_id, coalesce(q.max_in_flight, oq.max_in_flight) as most, coalesce(q.rate_limit, oq.rate_limit) as rate,
               coalesce(q.rate_burst, oq.rate_burst) as burst,
               coalesce(q.key_max_in_flight, oq.key_max_in_flight) as key_most, coalesce(q.key_rate_limit, oq.key_rate_limit) as key_rate,
               coalesce(q.key_rate_burst, oq.key_rate_burst) as key_burst,
               least(case when q.ttl_acts then q.ttl end, case when q.retention_enabled then nullif(q.retention_seconds, 0) end,
                     nullif(q.max_wait_time_seconds, 0)) * interval '1 second' as age
          from (select t.consumer, array_agg(t.ord::int order by t.ord) as targets, sum(t.batch) as want, min(t.ord) as first
                  from unnest(p_consumer, p_batch) with ordinality t(consumer, batch, ord) group by t.consumer) u
          left join queen.consumers c on c.num = u.consumer
          left join queen.lanes l on l.num = c.lane
          left join queen.queues q on q.id = l.queue_id
          -- A retry lane has the names and the lease time of its partition, and no option that delays delivery.
          left join queen.lanes o on o.num = l.origin
          left join queen.queues oq on oq.id = l.origin_queue
         order by u.first
    loop
        lane := k.lane; lane_id := k.lane_id; lane_name := k.lane_name; queue_name := k.queue_name;
        first_seq := null; count := null; created_at := null; keys := null; body := null;
        start_seq := null; take := null; retries := null; more := false;
        v_now := clock_timestamp();
        v_until := null;
        st := null;
        v_status := case when k.by_message is null then 5 when k.consumer = any (v_locked) is not true then 1 end;
        if v_status is null and (k.most > 0 or k.rate > 0 or k.key_most > 0 or k.key_rate > 0) then
            v_left := p_wait[k.targets[1]] and v_waits_left > 0;
            if not queen.lock_limits(k.queue_id, k.grp, case when k.most = 0 and k.rate = 0 then queen.partition_key(k.lane_name) end, v_left) then
                v_status := 1;
                v_waits_left := v_waits_left - v_left::int;
            end if;
        end if;
        if v_status is null then
            -- A new statement reads the state with a new snapshot: see queen.claim.
            select * into st from (
                (select * from queen.consumer_states_a a where a.consumer = k.consumer order by ver desc limit 1)
                union all
                (select * from queen.consumer_states_b b where b.consumer = k.consumer order by ver desc limit 1)
            ) slots order by ver desc limit 1;
            if st.ver is null then
                raise exception 'consumer % has no state', k.consumer using errcode = '40001';
            end if;
            if not k.by_message then -- any more
                v_until := case when st.taken_seq is not null then queen.end_work(st) end;
                v_status := case when v_until is null then 7 else 2 end;
            -- A lease from the time when the queue was ordered.
            elsif st.taken_seq is null and st.lease_until > v_now then
                v_status := 2;
                v_until := st.lease_until;
            elsif st.taken_seq is null and st.retry_at > v_now then
                v_status := 4;
                v_until := st.retry_at;
            elsif k.in_order and st.batch_size > 0 then
                v_until := queen.leased_until(st, v_now);
                v_status := case when v_until is not null then 2 end;
            end if;
        end if;
        if v_status is not null then
            status := v_status;
            wait_us := (extract(epoch from v_until - v_now) * 1000000)::bigint;
            foreach target in array k.targets loop
                return next;
            end loop;
            continue;
        end if;

        st := queen.begin_work(st);
        -- The clock of this consumer never goes back, so nothing can expire before swept_at unseen.
        v_now := greatest(v_now, st.swept_at + interval '1 microsecond', st.leases_at + interval '1 microsecond');
        v_want := case when k.in_order then p_batch[k.targets[1]] else k.want end;
        v_limited := false;
        if k.most > 0 or k.rate > 0 or k.key_most > 0 or k.key_rate > 0 then
            select l.leased, l.leases_at, l.room, l.tokens, l.queue_room, l.queue_tokens, l.used_at, l.key_used_at, l.look, l.partial
              into st.leased, st.leases_at, v_room, v_tokens, v_queue_room, v_queue_tokens, v_used, v_key_used, v_look, v_partial
              from queen.limit_work(st, k.queue_id, k.grp, queen.partition_key(k.lane_name), k.most, k.rate, k.burst,
                                    k.key_most, k.key_rate, k.key_burst, v_now) l;
            v_want := least(v_tokens, (select coalesce(sum(p_batch[t]) filter (where p_auto[t]), 0)
                                              + least(coalesce(sum(p_batch[t]) filter (where not p_auto[t]), 0), v_room)
                                         from unnest(k.targets) t));
            v_limited := v_want < k.want;
        else
            v_room := null;
            v_partial := false;
            st.leased := null; st.leases_at := null; st.rate_at := null; st.key_rate_at := null;
        end if;
        v_open := st.batch_size;
        v_moved := false;
        v_dirty := v_partial; -- do not count these leases again
        v_dead := '{}';
        r_first := '{}'; r_n := '{}'; r_tries := '{}'; r_failed := '{}';
        v_cutoff := v_now - k.age;
        v_oldest := null;
        v_waits := null;
        v_single := false;

        -- Expired leases and returned messages.
        if v_open = 0 then
            st.swept_at := v_now;
            st.swept_seq := 0;
        elsif k.in_order then
            select t.first, t.n, t.tries, t.failed, t.dead, t.dropped, t.waits_until, t.alone
              into r_first, r_n, r_tries, r_failed, v_dead, v_i, v_waits, v_single
              from queen.take_in_order(st, k.lane, k.grp, k.skipping, queen.oldest_kept(k.lane, v_cutoff), k.max_deliveries, v_now, v_want,
                                       v_slot) t;
            v_want := v_want - coalesce((select sum(t) from unnest(r_n) t), 0);
            more := v_want <= 0 or v_single; -- perhaps more of them
            v_open := v_open - v_i - cardinality(v_dead);
            v_moved := v_i > 0 or v_dead <> '{}';
            v_dirty := v_moved;
        else
            v_i := 0;
            for x in
                select e.until as due, e.first_seq as due_seq, n.*
                  from (select * from (
                            (select a.until, a.first_seq, a.hold, a.ver from queen.holds_a a
                              where a.consumer = k.consumer and a.until is not null and a.until <= v_now
                                and (a.until, a.first_seq) >= (coalesce(st.swept_at, '-infinity'), coalesce(st.swept_seq, 0))
                              order by a.until, a.first_seq limit c_scan)
                            union -- rotation copies rows from one slot to the other
                            (select b.until, b.first_seq, b.hold, b.ver from queen.holds_b b
                              where b.consumer = k.consumer and b.until is not null and b.until <= v_now
                                and (b.until, b.first_seq) >= (coalesce(st.swept_at, '-infinity'), coalesce(st.swept_seq, 0))
                              order by b.until, b.first_seq limit c_scan)) y
                         order by y.until, y.first_seq, y.hold limit c_scan) e
                  left join lateral (select h.* from queen.newest_hold(k.consumer, e.first_seq, e.hold) h
                                      where h.ver = e.ver and h.until is not null and h.hold >= st.holds_from
                                        and h.first_seq >= st.walk_seq) n on true
                 order by e.until, e.first_seq, e.hold
            loop
                exit when v_want <= 0 or v_single;
                v_i := v_i + 1;
                st.swept_at := x.due;
                st.swept_seq := x.due_seq;
                continue when x.hold is null;
                if v_oldest is null then
                    v_oldest := queen.oldest_kept(k.lane, v_cutoff);
                end if;
                v_done := coalesce(x.done, decode(repeat('00', (x.count + 7) / 8), 'hex'));
                v_left := false;
                -- Half of the deliveries have expired: one of these messages may crash its consumer.
                v_suspect := k.max_deliveries > 1 and x.deliveries >= (k.max_deliveries + 1) / 2 and x.deliveries < k.max_deliveries;
                for i in 0 .. x.count - 1 loop
                    continue when get_bit(v_done, i) = 1;
                    v_seq := x.first_seq + i;
                    v_single := v_single or v_suspect and r_n <> '{}'; -- not together with others: it waits for the next claim
                    if v_want <= 0 or v_single then
                        v_left := true;
                        exit;
                    end if;
                    v_done := set_bit(v_done, i, 1);
                    if v_seq < coalesce(v_oldest, v_seq + 1)
                       or k.skipping and queen.next_unskipped(k.lane, k.grp, v_seq) > v_seq then
                        v_open := v_open - 1;
                        v_moved := true;
                    elsif k.max_deliveries > 0 and x.deliveries >= k.max_deliveries then
                        v_dead := v_dead || v_seq;
                        v_open := v_open - 1;
                        v_moved := true;
                    else
                        v_n := cardinality(r_n);
                        if v_n > 0 and r_first[v_n] + r_n[v_n] = v_seq and r_tries[v_n] = x.deliveries and r_failed[v_n] = x.retries then
                            r_n[v_n] := r_n[v_n] + 1;
                        else
                            r_first := r_first || v_seq;
                            r_n := r_n || 1;
                            r_tries := r_tries || x.deliveries;
                            r_failed := r_failed || x.retries;
                        end if;
                        v_want := v_want - 1;
                        v_single := v_suspect;
                    end if;
                end loop;
                insert into queen.holds (consumer, first_seq, hold, ver, count, deliveries, retries, slot, at, until, lease, done)
                values (k.consumer, x.first_seq, x.hold, x.ver + 1, x.count, x.deliveries, x.retries, v_slot, x.at,
                        case when v_left then x.until end, x.lease, v_done);
                v_dirty := true;
            end loop;
            if v_want > 0 and v_i < c_scan and not v_single then
                st.swept_at := v_now;
                st.swept_seq := 0;
            end if;
            more := v_want <= 0 or v_i >= c_scan or v_single; -- perhaps more of them
            v_dirty := v_dirty or v_i > 100; -- do not examine these again
        end if;
        if v_dead <> '{}' then
            perform queen.fail_messages(k.lane, k.origin, k.grp, k.policy, false, k.max_deliveries, null, v_now,
                                        array(select generate_series(1, cardinality(v_dead))),
                                        array(select d from unnest(v_dead) d order by d), array_fill(true, array[cardinality(v_dead)]),
                                        array_fill('delivery limit'::text, array[cardinality(v_dead)]),
                                        array_fill(null::text, array[cardinality(v_dead)]),
                                        array_fill(null::text, array[cardinality(v_dead)]));
            st.total_messages := st.total_messages + cardinality(v_dead);
        end if;

        -- Messages that were not delivered yet.
        v_status := case when v_waits is not null then 4 else 3 end;
        v_until := v_waits;
        if v_want > 0 and v_waits is null and not v_single then
            select s.first_seq + s.count as next_seq, s.created_at into v_head
              from queen.segments s where s.lane = k.lane order by s.first_seq desc limit 1;
            v_start := st.taken_seq + 1;
            if v_head.next_seq is null or v_head.next_seq <= v_start then
                null;
            elsif k.window_buffer > 0 and v_head.created_at > v_now - k.window_buffer * interval '1 second' then
                v_status := 4;
                v_until := v_head.created_at + k.window_buffer * interval '1 second';
            else
                -- The segment that contains the next message, or the first usable one after it.
                select s.first_seq, s.count, s.created_at into v_seg
                  from queen.segments s where s.lane = k.lane and s.first_seq <= v_start order by s.first_seq desc limit 1;
                if v_seg.first_seq is null or v_seg.first_seq + v_seg.count <= v_start or v_seg.created_at < v_cutoff then
                    select s.first_seq, s.count, s.created_at into v_seg
                      from queen.segments s
                     where s.lane = k.lane and s.first_seq > v_start and s.count > 0 and (v_cutoff is null or s.created_at >= v_cutoff)
                     order by s.first_seq limit 1;
                    v_start := coalesce(v_seg.first_seq, v_head.next_seq);
                end if;
                if (k.skipping or st.settled is not null) and v_start < v_head.next_seq then
                    v_start := queen.next_unskipped(k.lane, k.grp, v_start, st.settled);
                    if v_start < v_head.next_seq then
                        select s.first_seq, s.count, s.created_at into v_seg
                          from queen.segments s where s.lane = k.lane and s.first_seq <= v_start order by s.first_seq desc limit 1;
                    end if;
                end if;
                if v_start >= v_head.next_seq then -- only messages that are not delivered
                    st.taken_seq := v_head.next_seq - 1;
                    v_dirty := true;
                elsif k.delayed_processing > 0 and v_seg.created_at > v_now - k.delayed_processing * interval '1 second' then
                    v_status := 4;
                    v_until := v_seg.created_at + k.delayed_processing * interval '1 second';
                else
                    v_avail := least(v_want, v_head.next_seq - v_start);
                    if k.delayed_processing > 0 then
                        select least(v_avail, max(s.first_seq + s.count) - v_start) into v_avail
                          from queen.segments s
                         where s.lane = k.lane and s.first_seq < v_start + v_avail and s.first_seq > v_start - 256
                           and s.created_at <= v_now - k.delayed_processing * interval '1 second';
                    end if;
                    if k.skipping or st.settled is not null then
                        -- A run ends before a message that is not delivered.
                        v_avail := least(v_avail,
                                         (select min(lower(m)) from unnest(st.settled) m where lower(m) > v_start) - v_start,
                                         (select min(n.seq) from unnest(array['', k.grp]) g(name)
                                           cross join lateral (
                                                select p.first_seq as seq from queen.skips p
                                                 where p.lane = k.lane and p.grp = g.name and p.first_seq > v_start
                                                 order by p.first_seq limit 1) n) - v_start);
                    end if;
                    r_first := r_first || v_start;
                    r_n := r_n || v_avail::int;
                    r_tries := r_tries || 0;
                    r_failed := r_failed || 0;
                    v_want := v_want - v_avail;
                    more := more or v_head.next_seq > v_start + v_avail;
                    st.taken_seq := v_start + v_avail - 1;
                    if v_open = 0 then
                        st.walk_seq := v_start;
                        st.cursor_seq := v_start - 1;
                    end if;
                    v_open := v_open + v_avail::int;
                end if;
            end if;
        end if;

        -- Give the runs to the pops.
        g_target := '{}'; g_first := '{}'; g_n := '{}'; g_tries := '{}'; g_failed := '{}';
        v_r := 1;
        v_off := 0;
        v_auto := 0;
        v_leased := 0;
        foreach v_i in array k.targets loop
            exit when k.in_order and v_i <> k.targets[1];
            v_need := case when p_auto[v_i] then p_batch[v_i] else least(p_batch[v_i], v_room - v_leased) end;
            while v_need > 0 and v_r <= cardinality(r_n) loop
                v_n := least(v_need, r_n[v_r] - v_off, 256);
                g_target := g_target || v_i;
                g_first := g_first || r_first[v_r] + v_off;
                g_n := g_n || v_n;
                g_tries := g_tries || r_tries[v_r];
                g_failed := g_failed || r_failed[v_r];
                if p_auto[v_i] then
                    v_auto := v_auto + v_n;
                else
                    v_leased := v_leased + v_n;
                end if;
                v_need := v_need - v_n;
                v_off := v_off + v_n;
                if v_off = r_n[v_r] then
                    v_r := v_r + 1;
                    v_off := 0;
                end if;
            end loop;
            if p_auto[v_i] and v_need < p_batch[v_i] then
                st.total_batches := st.total_batches + 1;
            end if;
        end loop;
        if g_n <> '{}' then
            insert into queen.holds (consumer, first_seq, hold, ver, count, deliveries, retries, slot, at, until, lease)
            select k.consumer, g.first, st.ver + 1, 1, g.n, g.tries + 1, g.failed, v_slot, v_now,
                   v_now + coalesce(nullif(p_seconds[g.target], 0), k.seconds) * interval '1 second', p_lease[g.target]
              from unnest(g_target, g_first, g_n, g_tries, g_failed) g(target, first, n, tries, failed)
             where not p_auto[g.target];
            st.last_at := v_now;
            st.total_messages := st.total_messages + v_auto;
            v_open := v_open - v_auto;
            st.leased := st.leased + v_leased;
            if k.rate > 0 then
                st.rate_at := v_used + (v_auto + v_leased) / k.rate * interval '1 second';
            end if;
            if k.key_rate > 0 then
                st.key_rate_at := v_key_used + (v_auto + v_leased) / k.key_rate * interval '1 second';
            end if;
            v_dirty := true;
        end if;
        st.batch_size := v_open;
        if v_dirty then
            if v_moved or v_auto > 0 or v_open = 0 then
                select f.cursor_seq, f.walk_seq into st.cursor_seq, st.walk_seq
                  from queen.work_floor(k.consumer, st.walk_seq, st.holds_from, st.taken_seq, v_open) f;
            end if;
            if st.settled is not null then
                st.settled := nullif(st.settled - int8multirange(int8range(null, st.taken_seq, '[]')), '{}');
            end if;
            st.ver := st.ver + 1;
            st.slot := v_slot;
            insert into queen.consumer_states select (st).*;
        end if;

        v_limited := v_limited and v_want <= 0;
        v_full := v_limited and not v_partial and coalesce(v_queue_room <= v_leased or v_queue_tokens <= v_auto + v_leased, false);
        if v_limited then
            -- An acknowledgement ends the wait for room, also one in another partition that the broker knows. A removed message does not.
            more := more and v_full;
            v_status := case when v_full then 10 else 4 end;
            v_until := greatest(case when v_queue_tokens <= v_auto + v_leased
                                     then greatest(st.rate_at, v_used) + interval '1 second' / k.rate end,
                                case when k.key_rate > 0 and v_tokens <= v_auto + v_leased and not v_full
                                     then greatest(st.key_rate_at, v_key_used) + interval '1 second' / k.key_rate end,
                                case when v_room <= v_leased then v_now + v_look end);
        end if;
        more := more or v_partial;
        if k.in_order and v_leased > 0 then -- nothing more before this lease has ended
            more := false;
            v_status := 2;
            v_until := v_now + coalesce(nullif(p_seconds[k.targets[1]], 0), k.seconds) * interval '1 second';
        end if;
        v_due := null;
        if v_open > 0 then
            select min(y.until) into v_due
              from ((select a.until, a.first_seq, a.hold, a.ver from queen.holds_a a
                      where a.consumer = k.consumer and a.until > v_now and a.until is not null and a.lease is null order by a.until limit 16)
                    union all
                    (select b.until, b.first_seq, b.hold, b.ver from queen.holds_b b
                      where b.consumer = k.consumer and b.until > v_now and b.until is not null and b.lease is null order by b.until limit 16)) y
             where exists (select from queen.newest_hold(k.consumer, y.first_seq, y.hold) n where n.ver = y.ver and n.hold >= st.holds_from);
        end if;
        if (v_want > 0 or v_limited) and v_open > 0 and g_n = '{}' then
            -- When the next hold expires, or a time before that.
            select least(v_until, coalesce(min(e.until) filter (where e.is_open), case when count(*) >= 64 then max(e.until) end)) into v_until
              from (select y.until, exists (select from queen.newest_hold(k.consumer, y.first_seq, y.hold) n
                                             where n.ver = y.ver and n.until is not null and n.hold >= st.holds_from and n.first_seq >= st.walk_seq) as is_open
                      from ((select a.until, a.first_seq, a.hold, a.ver from queen.holds_a a
                              where a.consumer = k.consumer and a.until > v_now and a.until is not null order by a.until limit 64)
                            union all
                            (select b.until, b.first_seq, b.hold, b.ver from queen.holds_b b
                              where b.consumer = k.consumer and b.until > v_now and b.until is not null order by b.until limit 64)
                             order by until limit 64) y) e;
        end if;
        v_r := 1;
        foreach target in array k.targets loop
            if g_target[v_r] = target then
                status := 0;
                wait_us := least(case when not p_auto[target] then coalesce(nullif(p_seconds[target], 0), k.seconds) * 1000000::bigint end,
                                 (extract(epoch from least(v_due, case when v_limited then v_until end) - v_now) * 1000000)::bigint);
                while g_target[v_r] = target loop
                    start_seq := g_first[v_r];
                    take := g_n[v_r];
                    retries := g_failed[v_r];
                    return next;
                    v_r := v_r + 1;
                end loop;
            else
                status := case when not v_limited and not (k.in_order and v_leased > 0) and v_want <= 0 or more and not v_full then 6
                               else v_status end;
                wait_us := (extract(epoch from least(v_until, v_due) - v_now) * 1000000)::bigint;
                start_seq := null; take := null; retries := null;
                return next;
            end if;
        end loop;
        return query
        select k.targets[cardinality(k.targets)], null::int2, null::bigint, k.lane, k.lane_id, k.lane_name, k.queue_name,
               null::int, null::bigint, null::int, null::boolean, s.first_seq, s.count, s.created_at, s.keys, s.body
          from (select distinct f.first_seq
                  from unnest(r_first, r_n) r(first, n)
                  cross join lateral (
                       select s.first_seq from queen.segments s
                        where s.lane = k.lane and s.first_seq < r.first + r.n
                          and s.first_seq >= coalesce((select p.first_seq from queen.segments p
                                                        where p.lane = k.lane and p.first_seq <= r.first
                                                        order by p.first_seq desc limit 1), 0)) f) d
          cross join lateral (select * from queen.segments s where s.lane = k.lane and s.first_seq = d.first_seq offset 0) s
         order by s.first_seq;
    end loop;
end
$$;
