-- queen.settle: acknowledge deliveries.
--
-- needs: find_message, leased_keys, messages_at, fail_message, note_completed, trim_retry_lane, notify_lanes
-- called by  broker/src/broker/settle/ack.c (call "settle"); queen.ack_messages_v2; queen.transact
-- in         p_origin: the calling process, for the change feed. One element per group (the entries of one request for one partition and
--            consumer group):
--            p_lane_id, p_group; p_keys: packed 16-byte keys of the entries in request order;
--            p_uniform: all are "completed" under p_lease, and no p_entry_* elements describe them.
--            For other groups one element per entry: its group (1-based), status (0 completed,
--            1 failed, 2 dlq, 3 retry; others are rejected), lease (null: none given), error text, error code and worker.
--            p_worker: the worker that acknowledges, per group, for uniform groups.
--            p_final: dead-letter failed messages at once (transactions).
-- out        per group one row with entry null if all entries of a uniform group succeeded,
--            else one row per entry (0-based position): why 0 ok, 1 message not found, 2 invalid or
--            expired lease, 3 unknown status; released: the lease is free after this entry (null: the group has no
--            state here); more: messages are pending after the cursor; attempt, due_at: number of the failed attempt
--            and time of the next one (null: retried in order, or never)
-- locks      consumers in num order; a broker waits at most 100 ms for each of them
--
-- Retry lanes (queen.retry_lane) are reported under the names of their partition. queen.fail_message decides what happens to a
-- failed message. A message that is retried by schedule is passed as if it were completed.
--
-- The rule for mixed batches (semantics 9.3): entries are processed in the order of the lane. The retry counter from before the
-- request decides once whether failures are retried or dead-lettered. The first retried failure releases the lease and
-- freezes the cursor. Entries after it will be delivered again. The cursor never moves backwards, and no message is counted twice.
--
-- An entry for a message that the group has settled before changes nothing and succeeds. It is dead if the message
-- is a dead letter of the group. Only entries for messages under a lease end that lease.
create or replace function queen.settle(
    p_origin int, p_lane_id uuid[], p_group text[], p_keys bytea[], p_uniform boolean[], p_lease uuid[],
    p_entry_group int[], p_entry_status int2[], p_entry_lease uuid[], p_entry_error text[],
    p_entry_code text[], p_entry_worker text[], p_worker text[], p_final boolean)
returns table (grp int, entry int, why int2, released boolean, dead boolean,
               queue_name text, lane_name text, lane bigint, consumer bigint, more boolean,
               attempt int, due_at timestamptz)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_now    timestamptz;
    g        record;   -- the current group
    st       queen.consumer_states%rowtype; -- its consumer's state, as it changes
    v_lease  uuid;     -- the lease that was active when the request came
    e        record;   -- an entry
    v_n      int;
    v_order  int[];    -- elements of p_entry_*, group by group
    v_entry  int := 1; -- index in v_order of the first entry of the next group
    v_first  int;      -- the same of this group; null if it is uniform
    v_pos    int[];    -- the group's entries in the order of the lane: positions in the request,
    v_seq    bigint[]; -- and sequence numbers
    v_failed queen.stored_message[]; -- the messages of failed entries,
    v_failed_seq bigint[];           -- their sequence numbers, in order,
    v_f      int;                    -- and the index of the first that is not before the current entry
    v_message queen.stored_message;
    v_walked bytea;    -- keys under the lease
    v_holes  boolean;  -- some of its messages were deleted, or have expired
    v_retry  boolean;  -- failures are retried, not dead-lettered
    v_before int;      -- the retry counter from before the request
    v_leased boolean;  -- the entry's message was delivered under the lease, which may have expired
    v_frozen boolean;
    v_bit    int;
    v_dirty  boolean;
    v_last   bigint;   -- the message of the previous entry; a message named twice counts once
    v_buried boolean;
    v_fate   "char";   -- outcome of a failed message: see queen.fail_message
    v_noted  boolean;  -- record completions, because messages here may have failed before
    v_done   bigint[]; -- completed messages to record
    v_worker text;
    v_freed  bigint[] := '{}'; -- lanes that other consumers may now claim
    v_timeout text := current_setting('lock_timeout');
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
    if cardinality(p_entry_group) > 0 then
        v_order := array(select u.ord from unnest(p_entry_group) with ordinality u(grp, ord) order by u.grp, u.ord);
    end if;

    for g in
        select u.ord::int as grp, u.name, u.keys, u.uniform, u.lease, u.worker,
               l.num as lane, l.origin, coalesce(o.name, l.name) as lane_name, c.num as consumer,
               q.name as queue_name, q.retry_policy as policy,
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
        v_n := length(g.keys) / 16;
        v_first := null;
        if not g.uniform then
            v_first := v_entry;
            v_entry := v_entry + v_n;
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
        v_lease := case when st.lease_until > v_now then st.lease end;
        v_walked := case when v_lease is not null
                         then queen.leased_keys(g.lane, st.lease_first, st.lease_last) end;
        if length(v_walked) <> 16 * st.batch_size then
            v_walked := null; -- some have expired under the lease, so positions are not comparable
        end if;
        v_noted := g.origin is not null or st.retries > 0;
        attempt := null; due_at := null;

        -- The common case: exactly the messages of the lease, in order, completed.
        if g.uniform and g.lease = v_lease and st.acked = 0 and v_n = st.batch_size and v_walked = g.keys then
            insert into queen.consumer_states
                   (consumer, ver, cursor_seq, total_messages, total_batches, last_at, slot)
            select g.consumer, st.ver + 1, greatest(st.cursor_seq, st.lease_last), st.total_messages + v_n,
                   st.total_batches + 1, v_now, r.active
              from queen.rotation r;
            if v_noted then
                perform queen.note_completed(g.lane, g.origin, g.name,
                                             array(select generate_series(st.lease_first, st.lease_last)),
                                             st.lease_at, v_now, g.worker);
                if g.origin is not null then
                    perform queen.trim_retry_lane(g.lane, greatest(st.cursor_seq, st.lease_last));
                end if;
            end if;
            grp := g.grp; entry := null; why := 0; released := true; dead := false;
            queue_name := g.queue_name; lane_name := g.lane_name; lane := g.lane; consumer := g.consumer;
            -- The segment that starts right after the batch, or else the one that contains the last message.
            select s.first_seq + s.count > st.lease_last + 1 into more
              from queen.segments s
             where s.lane = g.lane and s.first_seq <= st.lease_last + 1 and s.first_seq > st.lease_last - 256
             order by s.first_seq desc limit 1;
            -- Even if nothing is pending: the lease may belong to another broker, which treats the lane as leased until it is notified.
            v_freed := v_freed || g.lane;
            return next;
            continue;
        end if;

        v_holes := v_walked is null or position('\xffffffffffff8fffffffffffffffffff'::bytea in v_walked) > 0;
        v_before := case when p_final then 0 else st.retries end;
        v_retry := not p_final and st.retries < g.retry_limit;
        v_frozen := false;
        v_dirty := false;
        v_last := null;
        v_done := '{}';
        -- Sequence numbers of all entries, in the order of the lane. No joins: the broker's plans have only nested loops, which
        -- would make the cost of a large batch quadratic.
        select array_agg(k.pos order by k.seq nulls first, k.pos), array_agg(k.seq order by k.seq nulls first, k.pos)
          into v_pos, v_seq
          from (select u.pos, coalesce(st.lease_first + u.at, queen.find_message(g.lane, encode(u.key, 'hex')::uuid)) as seq
                  from (select t.pos, t.key, min(t.at) over (partition by t.key) as at
                          from (select i as pos, substr(g.keys, i * 16 + 1, 16) as key, null::int as at
                                  from generate_series(0, v_n - 1) i
                                union all
                                select null, substr(v_walked, i * 16 + 1, 16), i
                                  from generate_series(0, length(v_walked) / 16 - 1) i) t) u
                 where u.pos is not null) k;
        -- Unpack the failed messages together, because many may be in one segment.
        v_failed := null;
        v_failed_seq := null;
        if v_first is not null and g.consumer is not null then
            select array_agg(m.seq order by m.seq), array_agg(m.message order by m.seq) into v_failed_seq, v_failed
              from queen.messages_at(g.lane, array(select v_seq[i] from generate_series(1, v_n) i
                                                    where p_entry_status[v_order[v_first + v_pos[i]]] in (1, 2))) m;
        end if;
        v_f := 1;
        for e in
            select u.pos, u.seq, coalesce(p_entry_status[v_order[v_first + u.pos]], 0) as status,
                   case when g.uniform then g.lease else p_entry_lease[v_order[v_first + u.pos]] end as lease,
                   p_entry_error[v_order[v_first + u.pos]] as error, p_entry_code[v_order[v_first + u.pos]] as code,
                   coalesce(p_entry_worker[v_order[v_first + u.pos]], g.worker) as worker
              from unnest(v_pos, v_seq) with ordinality u(pos, seq, ord)
             order by u.ord
        loop
            while v_failed_seq[v_f] < e.seq loop
                v_f := v_f + 1;
            end loop;
            v_message := case when v_failed_seq[v_f] = e.seq then v_failed[v_f] end;
            grp := g.grp; entry := e.pos; why := 0; dead := false;
            released := case when g.consumer is not null then false end;
            queue_name := g.queue_name; lane_name := g.lane_name; lane := g.lane; consumer := g.consumer;
            more := null; attempt := null; due_at := null;
            v_leased := st.lease is not null and e.seq between st.lease_first and st.lease_last;
            -- A message that was deleted under the lease and pushed again after it is not the one that was delivered.
            if e.seq is null
               or (e.lease = v_lease and e.seq > st.lease_last
                   and v_holes) then
                why := 1;
            elsif e.lease is distinct from v_lease and e.lease is not null then
                why := 2;
            elsif e.status > 3 then
                why := 3;
            elsif e.status in (1, 2) and v_failed_seq[v_f] is distinct from e.seq and g.consumer is not null then
                why := 1; -- it was removed a moment ago
            elsif g.consumer is null then
                null; -- nothing to move: the group has no consumer on this lane
            elsif e.seq = v_last then
                dead := v_buried;
            elsif e.seq <= st.cursor_seq
                  and (v_leased and (st.acked_mask is null
                                     or get_bit(st.acked_mask, (e.seq - st.lease_first)::int) = 0)) is not true then
                -- The group has settled this message before: change nothing, and do not release a lease of other messages.
                dead := e.status in (1, 2)
                        and exists (select from queen.dead_letter_queue d
                                     where d.message_id = v_message.message_id and d.consumer_group = g.name);
            elsif v_frozen then
                if e.status = 1 then -- recorded but not counted, because it will be delivered again
                    perform queen.fail_message(v_message, g.lane, g.origin, e.seq, g.name, null, true, false, true, 0,
                                               st.lease_at, v_now, e.error, e.code, e.worker);
                end if;
            else
                v_last := e.seq;
                v_fate := null;
                if e.status in (1, 2) then
                    select f.outcome, f.attempt, f.due_at into v_fate, attempt, due_at from queen.fail_message(
                        v_message, g.lane, g.origin, e.seq, g.name, g.policy, false,
                        p_final or e.status = 2, v_retry, v_before, st.lease_at, v_now, e.error, e.code, e.worker) f;
                    dead := coalesce(v_fate = 'd', false);
                end if;
                if e.status = 3 or v_fate = 'i' then
                    v_frozen := true;
                    if v_leased then -- otherwise the lease of other messages continues, and this message is delivered in its turn
                        if e.status = 1 then
                            st.retries := st.retries + 1;
                            st.retry_at := v_now + case when g.policy ? 'strategy'
                                then queen.retry_delay(queen.fill_retry_policy(g.policy), st.retries, random()) * interval '1 second'
                                else g.retry_delay * interval '1 millisecond' end;
                        end if;
                        st.lease := null;
                    end if;
                else
                    if v_noted and e.status = 0 then
                        v_done := v_done || e.seq;
                        v_worker := e.worker;
                    end if;
                    if e.seq > st.cursor_seq then
                        st.cursor_seq := e.seq;
                        st.retries := 0;
                        st.retry_at := null;
                    end if;
                    st.total_messages := st.total_messages + 1;
                    -- Counts towards the batch once, and only for the lease holder, or for
                    -- an entry without a lease while the batch is in flight.
                    if v_leased then
                        v_bit := (e.seq - st.lease_first)::int;
                        if st.acked_mask is null then
                            st.acked_mask := decode(repeat('00', st.batch_size / 8 + 1), 'hex');
                        end if;
                        if get_bit(st.acked_mask, v_bit) = 0 then
                            st.acked_mask := set_bit(st.acked_mask, v_bit, 1);
                            st.acked := st.acked + 1;
                        end if;
                        if st.acked >= st.batch_size then
                            st.total_batches := st.total_batches + 1;
                            st.retries := 0;
                            st.lease := null;
                        end if;
                    end if;
                end if;
                v_dirty := true;
                v_buried := dead;
            end if;
            if why = 0 and g.consumer is not null then
                released := st.lease is null or v_lease is null;
            end if;
            return next;
        end loop;

        if v_dirty then
            if v_done <> '{}' then
                perform queen.note_completed(g.lane, g.origin, g.name, v_done, st.lease_at, v_now, v_worker);
            end if;
            if g.origin is not null then
                perform queen.trim_retry_lane(g.lane, case when st.lease is null then st.cursor_seq
                                                           else least(st.cursor_seq, st.lease_first - 1) end);
            end if;
            if st.lease is null then
                v_freed := v_freed || g.lane;
                st.lease_text := null; st.lease_at := null; st.lease_until := null;
                st.lease_first := null; st.lease_last := null;
                st.batch_size := 0; st.acked := 0; st.acked_mask := null;
            end if;
            insert into queen.consumer_states
                   (consumer, ver, cursor_seq, lease_first, lease_last, total_messages, total_batches,
                    last_at, lease_at, lease_until, retry_at, batch_size, acked, retries, slot, lease,
                    lease_text, acked_mask)
            select g.consumer, st.ver + 1, st.cursor_seq, st.lease_first, st.lease_last,
                   st.total_messages, st.total_batches, v_now, st.lease_at, st.lease_until, st.retry_at,
                   st.batch_size, st.acked, st.retries, r.active, st.lease, st.lease_text, st.acked_mask
              from queen.rotation r;
        end if;
    end loop;
    if v_freed <> '{}' then
        perform queen.notify_lanes(p_origin, v_freed);
    end if;
end
$$;
