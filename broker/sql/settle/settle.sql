-- queen.settle: acknowledge deliveries.
--
-- numbers:   why ack_why, v_why ack_why, v_status ack_status, status ack_status
-- needs: begin_work, settle_work, find_message, key_position, leased_keys, fail_messages, settled_before, past_settled, note_completed, trim_retry_lane, notify_lanes
-- called by  broker/src/broker/settle/ack.c (call "settle"); queen.ack_messages_v2; queen.transact
-- in         p_origin: the calling process, for the change feed. One element per group (the entries of one request for one partition and
--            consumer group): p_lane_id, p_group; p_keys: packed 16-byte keys of the entries in request order;
--            p_uniform: all are "completed" under p_lease, and no p_entry_* elements describe them.
--            For other groups one element per entry: its group (1-based), status (0 completed,
--            1 failed, 2 dlq, 3 retry; others are refused), lease (null: none given), error text, error code and worker.
--            p_worker: the client, per group, for uniform groups.
--            p_final: failed means dead letter at once (transactions); p_required: its requiredLeases, which stand for a missing lease;
--            p_entry_after: seconds before a returned message of a work queue is delivered again (null: at once)
-- out        per group one row with entry null when all entries of a uniform group succeeded,
--            else one row per entry (0-based position):  why 0 ok, 1 message not found, 2 invalid or
--            expired lease, 3 unknown status, 4 completed or dead-lettered, but it waits for its retry, 5 not delivered under the lease that
--            the entry names (without one: failed or returned, but not delivered), 6 failed or returned, but it was completed or
--            skipped before, 7 p_entry_after on a queue that settles whole batches;
--            released: the lease is free after this entry (null: the group has no state here); more: something is pending
--            behind the cursor, or the message of a work queue will be delivered again; attempt, due_at: a failed delivery was that attempt, and the next one is due then
--            (null: in order, or never)
-- locks      consumers in num order; a broker waits 100 ms for each of them at most
--
-- Retry lanes (queen.retry_lane) are shown under the names of their partition.  queen.fail_messages decides about failed messages.
--
-- "completed" is cumulative: it moves the cursor, within the lease that the entry names; without a lease it may move it anywhere
-- (semantics 9.1).  The other statuses change the one message that they name: a message that is retried by schedule or
-- dead-lettered is added to the column "settled", and the cursor passes it when all messages before it are settled.  A lease ends
-- when every message under it is settled.
--
-- The rule for mixed batches (semantics 9.3): entries are applied in the order of the log.  Whether failures
-- are retried or dead-lettered is decided once, by the counter from before the request.  The first failure that is retried in order
-- ends the lease, and completions behind it have no effect: those messages are delivered again.  The cursor never moves
-- backwards, and no message is counted twice.
--
-- An entry for a message that the group has settled before changes nothing and succeeds.  It is dead when the message
-- is among the group's dead letters.  A lease ends only by entries for messages under it.
--
-- On a work queue, and with settlement "message", each message is settled on its own (queen.settle_work).
--
-- A partition with an owner (queen.owners) accepts only entries with the current lease.
create or replace function queen.settle(
    p_origin int, p_lane_id uuid[], p_group text[], p_keys bytea[], p_uniform boolean[], p_lease uuid[],
    p_entry_group int[], p_entry_status int2[], p_entry_lease uuid[], p_entry_error text[],
    p_entry_code text[], p_entry_worker text[], p_worker text[], p_final boolean, p_required uuid[] default '{}', p_entry_after int[] default null)
returns table (grp int, entry int, why int2, released boolean, dead boolean,
               queue_name text, lane_name text, lane bigint, consumer bigint, more boolean,
               attempt int, due_at timestamptz)
language plpgsql
as $$
#variable_conflict use_column
declare
    c_entries cursor for -- the entries of the groups that are not uniform, group by group
        select array_agg(u.status order by u.ord) as status, array_agg(u.lease order by u.ord) as lease,
               array_agg(u.error order by u.ord) as error, array_agg(u.code order by u.ord) as code,
               array_agg(u.worker order by u.ord) as worker, array_agg(u.after order by u.ord) as after
          from unnest(p_entry_group, p_entry_status, p_entry_lease, p_entry_error, p_entry_code, p_entry_worker, p_entry_after)
               with ordinality u(grp, status, lease, error, code, worker, after, ord)
         group by u.grp order by u.grp;
    -- A row of it: the group's entries in the order of the request.
    r_status int2[];
    r_lease  uuid[];
    r_error  text[];
    r_code   text[];
    r_worker text[];
    r_after  int[];
    v_now    timestamptz;
    g        record;   -- the current group
    st       queen.consumer_states%rowtype; -- its consumer's state, as it changes
    v_lease  uuid;     -- the lease that was active when the request came
    v_owned  boolean;  -- an entry without a lease is refused
    v_required uuid;   -- the lease that stands for a missing one
    v_n      int;
    -- The group's entries in the order of the log:
    v_pos    int[];    -- places in the request
    v_seq    bigint[]; -- places in the log
    v_status int2[];
    v_named  uuid[];   -- the lease that each of them names
    v_error  text[];
    v_code   text[];
    v_worker text[];
    v_why    int2[];
    v_acts   "char"[]; -- a: changes something, s: the message was settled before, n: neither
    v_leased boolean[]; -- the message was delivered under the lease, which may have expired
    -- Failed messages among them:
    v_failed int[];    -- places in the arrays above
    f_seq    bigint[];
    f_final  boolean[];
    f_error  text[];
    f_code   text[];
    f_worker text[];
    v_fate   "char"[]; -- see queen.fail_messages; these arrays are as long as v_pos
    v_attempt int[];
    v_due    timestamptz[];
    f        record;
    v_walked bytea;    -- keys under the lease
    v_holes  boolean;  -- some of its messages were deleted, or have expired
    v_retry  boolean;  -- failures are retried, not dead-lettered
    v_before int;      -- the retry counter from before the request
    v_frozen boolean;  -- a message that is retried in order was met,
    v_counts boolean;  -- and that was a failure
    v_freed  boolean;  -- the lease has ended
    v_dirty  boolean;
    v_moved  boolean;  -- the cursor has
    v_last   bigint;   -- the message that the last entry was about; one named twice counts once
    v_nth    int;      -- its place in the arrays
    v_at     int;      -- of the first entry under the lease
    v_noted  boolean;  -- record completions, because messages here may have failed before
    v_done   bigint[]; -- completed messages to record
    v_aside  bigint[]; -- those settled one by one
    v_end    int;      -- the entry that ends the lease, if it ends
    v_lanes  bigint[] := '{}'; -- whose lease has ended
    v_timeout text := current_setting('lock_timeout');
    -- Entries for a work queue, which may be of several groups:
    w_grp    int[];
    w_keys   bytea;
    w_done   int[] := '{}'; -- groups that were settled with an earlier one
begin
    -- Lock first, then read: see queen.claim.
    if p_origin <> 0 then
        perform set_config('lock_timeout', '100ms', true);
    end if;
    perform c.num
       from queen.consumers c
      where c.num = any (array(
            select k.num from unnest(p_lane_id, p_group) u(lane_id, grp)
             cross join lateral (select c2.num from queen.lanes l
                                   join queen.consumers c2 on c2.lane = l.num and c2.grp = u.grp
                                  where l.id = u.lane_id offset 0) k))
      order by c.num for no key update;
    if p_origin <> 0 then
        perform set_config('lock_timeout', v_timeout, true);
    end if;
    v_now := clock_timestamp();
    open c_entries;

    for g in
        select u.ord::int as grp, u.name, u.keys, u.uniform, u.lease, u.worker,
               l.num as lane, l.origin, coalesce(o.name, l.name) as lane_name, c.num as consumer,
               q.name as queue_name, q.ordering, q.by_message, q.retry_policy as policy,
               case when coalesce(q.retry_policy ->> 'mode', 'inline') = 'inline'
                    then coalesce((q.retry_policy ->> 'maxAttempts')::int - 1, q.retry_limit)
                    else q.retry_limit end as retry_limit,
               case when q.retry_delay_acts then q.retry_delay end as retry_delay
          from unnest(p_lane_id, p_group, p_keys, p_uniform, p_lease, p_worker)
               with ordinality u(lane_id, name, keys, uniform, lease, worker, ord)
          left join queen.lanes l on l.id = u.lane_id
          left join queen.lanes o on o.num = l.origin
          left join queen.queues q on q.id = coalesce(l.origin_queue, l.queue_id)
          left join queen.consumers c on c.lane = l.num and c.grp = u.name
         order by u.ord
    loop
        continue when g.grp = any (w_done);
        v_n := length(g.keys) / 16;
        if g.uniform then
            r_status := '{}'; r_lease := '{}'; r_error := '{}'; r_code := '{}'; r_worker := '{}'; r_after := '{}';
        else
            fetch c_entries into r_status, r_lease, r_error, r_code, r_worker, r_after;
        end if;
        st := null;
        if g.consumer is not null then
            select * into st from (
                (select * from queen.consumer_states_a a where a.consumer = g.consumer order by ver desc limit 1)
                union all
                (select * from queen.consumer_states_b b where b.consumer = g.consumer order by ver desc limit 1)
            ) slots order by ver desc limit 1;
            if st.ver is null then
                raise exception 'consumer % has no state', g.consumer using errcode = '40001';
            end if;
        end if;
        -- A lease from the time when the queue was ordered is settled as it began.
        if st.taken_seq is not null or g.consumer is not null and g.by_message and (st.lease_until > v_now) is not true then
            st := queen.begin_work(st);
            queue_name := g.queue_name; lane_name := g.lane_name; lane := g.lane; consumer := g.consumer;
            v_freed := false;
            w_grp := array_fill(g.grp, array[v_n]);
            w_keys := g.keys;
            if g.uniform then
                -- Those of the consumer's other uniform groups go along: a call costs far more than an entry.
                select array_agg(u.grp::int), string_agg(u.key, ''::bytea), array_agg(u.lease), array_agg(u.worker)
                  into w_grp, w_keys, r_lease, r_worker
                  from (select k.grp, substr(k.keys, i.at * 16 + 1, 16) as key, k.lease, k.worker
                          from unnest(p_lane_id, p_group, p_keys, p_uniform, p_lease, p_worker)
                               with ordinality k(lane_id, name, keys, uniform, lease, worker, grp)
                         cross join lateral generate_series(0, length(k.keys) / 16 - 1) i(at)
                         where k.uniform and k.lane_id = p_lane_id[g.grp] and k.name = g.name
                         order by k.grp, i.at) u;
                v_n := cardinality(w_grp);
                r_status := array_fill(0::int2, array[v_n]);
                r_after := array_fill(null::int, array[v_n]);
                r_error := array_fill(null::text, array[v_n]);
                r_code := r_error;
                w_done := w_done || array(select distinct k from unnest(w_grp) k); -- few: it is searched for each group
            else
                r_worker := array(select coalesce(w, g.worker) from unnest(r_worker) with ordinality u(w, ord) order by ord);
            end if;
            grp := null;
            for f in
                select * from queen.settle_work(
                    st, g.lane, g.origin, g.name, g.policy, g.retry_limit, g.retry_delay, v_now, w_keys, r_status, r_lease, r_after, r_error,
                    r_code, r_worker, p_final, p_required)
            loop
                entry := case when grp = w_grp[f.entry + 1] then entry + 1 else 0 end;
                grp := w_grp[f.entry + 1];
                why := f.why; released := f.released; dead := f.dead; attempt := f.attempt; due_at := f.due_at;
                more := f.returned or f.released and g.ordering <> 'none'; -- the partition is free for another lease
                v_freed := v_freed or more;
                return next;
            end loop;
            if v_freed then
                v_lanes := v_lanes || g.lane;
            end if;
            continue;
        end if;
        v_lease := case when st.lease_until > v_now then st.lease end;
        v_walked := case when v_lease is not null
                         then queen.leased_keys(g.lane, st.lease_first, st.lease_last) end;
        if length(v_walked) <> 16 * st.batch_size then
            v_walked := null; -- some have expired under the lease: the places of keys do not match those of messages
        end if;
        v_noted := g.origin is not null or st.retries > 0;
        grp := g.grp;
        queue_name := g.queue_name; lane_name := g.lane_name; lane := g.lane; consumer := g.consumer;
        attempt := null; due_at := null;

        -- The common case: exactly the messages of the lease, in order, completed.
        if g.uniform and g.lease = v_lease and st.acked = 0 and v_n = st.batch_size and v_walked = g.keys then
            select p.cursor_seq, p.settled into st.cursor_seq, st.settled
              from queen.past_settled(greatest(st.cursor_seq, st.lease_last), st.settled) p;
            insert into queen.consumer_states
                   (consumer, ver, cursor_seq, total_messages, total_batches, last_at, slot, settled, past_lease, suspects_to, suspect_times)
            select g.consumer, st.ver + 1, st.cursor_seq, st.total_messages + v_n,
                   st.total_batches + 1, v_now, r.active, st.settled, st.past_lease, st.suspects_to, st.suspect_times
              from queen.rotation r;
            if v_noted then
                perform queen.note_completed(g.lane, g.origin, g.name,
                                             array(select generate_series(st.lease_first, st.lease_last)),
                                             st.lease_at, v_now, g.worker);
                if g.origin is not null then
                    perform queen.trim_retry_lane(g.lane, st.cursor_seq);
                end if;
            end if;
            entry := null; why := 0; released := true; dead := false;
            -- The segment that starts right after the batch, or else the one that contains the last message.
            select s.first_seq + s.count > st.lease_last + 1 into more
              from queen.segments s
             where s.lane = g.lane and s.first_seq <= st.lease_last + 1 and s.first_seq > st.lease_last - 256
             order by s.first_seq desc limit 1;
            -- Also when nothing is left: the broker that gave out the lease may be another one, which treats the consumer as
            -- leased until it is notified.
            v_lanes := v_lanes || g.lane;
            return next;
            continue;
        end if;

        v_owned := (g.uniform and g.lease is null or array_position(r_lease, null) is not null)
                   and (v_lease = any (p_required)) is not true
                   and exists (select from queen.owners o
                                where o.lane = coalesce(g.origin, g.lane) and o.grp = g.name and o.owner is not null
                                  and o.expires_at > v_now);
        v_holes := v_walked is null or position('\xffffffffffff8fffffffffffffffffff'::bytea in v_walked) > 0;
        v_required := case when v_lease = any (p_required) then v_lease end;
        v_before := case when p_final then 0 else st.retries end;
        v_retry := not p_final and st.retries < g.retry_limit;
        -- All entries, in the order of the log.
        v_at := queen.key_position(v_walked, substr(g.keys, 1, 16));
        if substr(v_walked, v_at * 16 + 1, length(g.keys)) = g.keys then
            -- Messages of the lease in the order of the log: nothing to search or to sort.
            v_pos := array(select generate_series(0, v_n - 1));
            v_seq := array(select generate_series(st.lease_first + v_at, st.lease_first + v_at + v_n - 1));
            v_status := case when g.uniform then array_fill(0::int2, array[v_n]) else r_status end;
            v_named := case when g.uniform then array_fill(g.lease, array[v_n]) else r_lease end;
            v_error := case when g.uniform then array_fill(null::text, array[v_n]) else r_error end;
            v_code := case when g.uniform then array_fill(null::text, array[v_n]) else r_code end;
            v_worker := case when g.uniform then array_fill(g.worker, array[v_n])
                             else array(select coalesce(w, g.worker) from unnest(r_worker) with ordinality u(w, ord) order by ord) end;
        else
            -- No joins: the broker's plans have nested loops only, which would cost the square of a large batch.
            select array_agg(k.pos), array_agg(k.seq), array_agg(k.status), array_agg(k.lease), array_agg(k.error), array_agg(k.code),
                   array_agg(k.worker)
              into v_pos, v_seq, v_status, v_named, v_error, v_code, v_worker
              from (select u.*, coalesce(st.lease_first + u.at, queen.find_message(g.lane, encode(u.key, 'hex')::uuid)) as seq
                      from (select t.*, min(t.place) over (partition by t.key) as at
                              from (select i.pos, substr(g.keys, i.pos * 16 + 1, 16) as key, null::int as place, 0::int2 as status,
                                           g.lease as lease, null as error, null as code, g.worker as worker
                                      from generate_series(0, case when g.uniform then v_n - 1 else -1 end) i(pos)
                                    union all
                                    select i.ord::int - 1, substr(g.keys, (i.ord::int - 1) * 16 + 1, 16), null, i.status, i.lease,
                                           i.error, i.code, coalesce(i.worker, g.worker)
                                      from unnest(r_status, r_lease, r_error, r_code, r_worker)
                                           with ordinality i(status, lease, error, code, worker, ord)
                                    union all
                                    select null, substr(v_walked, i * 16 + 1, 16), i, null, null, null, null, null
                                      from generate_series(0, length(v_walked) / 16 - 1) i) t) u
                     where u.pos is not null
                     order by seq nulls first, pos) k;
        end if;

        -- Which entries are valid, and which of these change something.
        v_why := array_fill(0::int2, array[v_n]);
        v_acts := array_fill('n'::"char", array[v_n]);
        v_leased := array_fill(false, array[v_n]);
        v_failed := '{}';
        v_last := null;
        for i in 1 .. v_n loop
            v_leased[i] := coalesce(st.lease is not null and v_seq[i] between st.lease_first and st.lease_last, false);
            -- A message that was deleted under the lease, and pushed again behind it, is not the one that was delivered.
            if v_seq[i] is null or (v_named[i] = v_lease and v_seq[i] > st.lease_last and v_holes) then
                v_why[i] := 1;
            elsif v_named[i] is null and v_owned then
                v_why[i] := 2;
            elsif v_named[i] is not null and v_named[i] is distinct from v_lease
                  -- Completions that arrive after the one that ended the lease by being the last of it.
                  and (v_status[i] = 0 and v_named[i] = st.past_lease and v_seq[i] <= st.cursor_seq) is not true then
                v_why[i] := 2;
            elsif v_status[i] > 3 then
                v_why[i] := 3;
            elsif r_after[v_pos[i] + 1] is not null then
                v_why[i] := 7;
            elsif g.consumer is null then
                v_why[i] := case when v_status[i] > 0 then 5 else 0 end; -- the group has never been here
            elsif v_seq[i] = v_last then
                null; -- named twice
            elsif (case when v_leased[i] and st.acked_mask is not null
                        then get_bit(st.acked_mask, (v_seq[i] - st.lease_first)::int) = 1
                        when v_leased[i] then false
                        else v_seq[i] <= st.cursor_seq or coalesce(st.settled @> v_seq[i], false) end) then
                v_acts[i] := 's';
                v_last := v_seq[i];
            elsif not v_leased[i] and (v_status[i] = 3 or v_status[i] = 1 and not p_final
                                       or v_lease = coalesce(v_named[i], v_required)) then
                v_why[i] := 5;
            else
                v_acts[i] := 'a';
                v_last := v_seq[i];
                if v_status[i] in (1, 2) then
                    v_failed := v_failed || i;
                end if;
            end if;
        end loop;

        v_fate := array_fill(null::"char", array[v_n]);
        v_attempt := array_fill(null::int, array[v_n]);
        v_due := array_fill(null::timestamptz, array[v_n]);
        if v_failed <> '{}' then
            -- By walking the arrays, not by subscripts: an array of texts is searched from its beginning for each element.
            select array_agg(u.seq), array_agg(p_final or u.status = 2), array_agg(u.error), array_agg(u.code), array_agg(u.worker)
              into f_seq, f_final, f_error, f_code, f_worker
              from unnest(v_seq, v_status, v_error, v_code, v_worker, v_acts) u(seq, status, error, code, worker, acts)
             where u.acts = 'a' and u.status in (1, 2);
            for f in
                select r.* from queen.fail_messages(
                    g.lane, g.origin, g.name, g.policy, v_retry, v_before, st.lease_at, v_now, v_failed, f_seq, f_final, f_error, f_code,
                    f_worker) r
            loop
                v_fate[f.id] := f.outcome;
                v_attempt[f.id] := f.attempt;
                v_due[f.id] := f.due_at;
            end loop;
        end if;
        if 's' = any (v_acts) then
            v_nth := 1;
            for f in
                select * from queen.settled_before(g.lane, g.origin, g.name, array(select v_seq[i] from generate_series(1, v_n) i
                                                                                    where v_acts[i] = 's'))
            loop
                while v_acts[v_nth] <> 's' or v_seq[v_nth] < f.seq loop
                    v_nth := v_nth + 1;
                end loop;
                v_fate[v_nth] := f.outcome;
                v_attempt[v_nth] := f.attempt;
                v_due[v_nth] := f.due_at;
            end loop;
        end if;

        -- Apply them.
        v_frozen := false;
        v_counts := false;
        v_dirty := false;
        v_moved := false;
        v_end := null;
        v_done := '{}';
        v_aside := '{}';
        for i in 1 .. v_n loop
            if v_acts[i] = 's' and (v_status[i] in (0, 2) or p_final) and v_fate[i] = 'r' then
                v_why[i] := 4;
            elsif v_acts[i] = 's' and v_status[i] > 0 and v_fate[i] is null then
                v_why[i] := 6;
            elsif v_acts[i] <> 'a' then
                null;
            elsif v_status[i] in (1, 2) and v_fate[i] is null then
                v_why[i] := 1; -- deleted a moment ago
            elsif v_status[i] = 3 or v_fate[i] = 'i' then
                if not v_frozen then
                    v_frozen := true;
                    v_counts := v_status[i] = 1;
                    v_end := i;
                    v_dirty := true;
                end if;
            elsif v_status[i] > 0 or not v_frozen then
                if v_status[i] > 0 then
                    v_aside := v_aside || v_seq[i];
                else
                    if v_noted then
                        v_done := v_done || v_seq[i];
                    end if;
                    if v_seq[i] > st.cursor_seq then
                        st.cursor_seq := v_seq[i];
                        v_moved := true;
                    end if;
                end if;
                st.total_messages := st.total_messages + 1;
                if v_leased[i] then
                    if st.acked_mask is null then
                        st.acked_mask := decode(repeat('00', st.batch_size / 8 + 1), 'hex');
                    end if;
                    st.acked_mask := set_bit(st.acked_mask, (v_seq[i] - st.lease_first)::int, 1);
                    st.acked := st.acked + 1;
                    if not v_frozen then
                        v_end := i;
                    end if;
                end if;
                v_dirty := true;
            end if;
        end loop;
        if v_aside <> '{}' then
            st.settled := coalesce(st.settled, '{}')
                          + (select range_agg(int8range(u.seq, u.seq, '[]')) from unnest(v_aside) u(seq));
        end if;
        if v_dirty and st.settled is not null then
            select v_moved or p.cursor_seq > st.cursor_seq, p.cursor_seq, p.settled into v_moved, st.cursor_seq, st.settled
              from queen.past_settled(st.cursor_seq, st.settled) p;
        end if;
        v_freed := v_frozen;
        if v_end is not null and not v_frozen then
            -- Is everything under the lease settled?  The first message behind the cursor is usually not.
            v_freed := not exists (select from generate_series(greatest(st.cursor_seq + 1, st.lease_first), st.lease_last) q(seq)
                                    where get_bit(st.acked_mask, (q.seq - st.lease_first)::int) = 0);
        end if;

        v_nth := 0;
        for i in 1 .. v_n loop
            -- A message that is named twice: the second entry gets the result of the first.
            if v_acts[i] = 'n' and v_why[i] = 0 and v_nth > 0 and v_seq[v_nth] = v_seq[i] then
                v_why[i] := v_why[v_nth];
            elsif v_acts[i] <> 'n' then
                v_nth := i;
            end if;
            entry := v_pos[i]; why := v_why[i]; more := null;
            dead := why = 0 and coalesce(v_fate[v_nth] = 'd', false);
            attempt := case when why = 0 and v_status[i] > 0 then v_attempt[v_nth] end;
            due_at := case when why = 0 and v_status[i] > 0 then v_due[v_nth] end;
            released := case when g.consumer is not null
                             then why = 0 and (v_lease is null or v_freed and coalesce(i >= v_end, true)) end;
            return next;
        end loop;

        if v_dirty then
            if v_done <> '{}' then
                perform queen.note_completed(g.lane, g.origin, g.name, v_done, st.lease_at, v_now,
                                             coalesce(v_worker[1], g.worker));
            end if;
            if v_moved then
                st.retries := 0;
                st.retry_at := null;
            end if;
            if v_counts then
                st.retries := st.retries + 1;
                st.retry_at := v_now + case when g.policy ? 'strategy'
                    then queen.retry_delay(queen.fill_retry_policy(g.policy), st.retries, random()) * interval '1 second'
                    else g.retry_delay * interval '1 millisecond' end;
            end if;
            if v_freed then
                if not v_frozen then
                    st.total_batches := st.total_batches + 1;
                    st.retries := 0;
                    st.past_lease := st.lease;
                end if;
                st.lease := null; st.lease_text := null; st.lease_at := null; st.lease_until := null;
                st.lease_first := null; st.lease_last := null;
                st.batch_size := 0; st.acked := 0; st.acked_mask := null;
                v_lanes := v_lanes || g.lane;
            end if;
            if g.origin is not null then
                perform queen.trim_retry_lane(g.lane, case when st.lease is null then st.cursor_seq
                                                           else least(st.cursor_seq, st.lease_first - 1) end);
            end if;
            st.ver := st.ver + 1;
            st.last_at := v_now;
            select r.active into st.slot from queen.rotation r;
            insert into queen.consumer_states select (st).*;
        end if;
    end loop;
    close c_entries;
    if v_lanes <> '{}' then
        perform queen.notify_lanes(p_origin, v_lanes);
    end if;
end
$$;
