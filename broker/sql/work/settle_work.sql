-- queen.settle_work: acknowledge deliveries of one group on one partition of a work queue.
--
-- numbers:   why ack_why, v_why ack_why, p_status ack_status
-- needs: leased_holds, hold_of, leased_keys, key_position, find_message, fail_messages, settled_before, note_completed, trim_retry_lane,
--        work_floor
-- called by  queen.settle, which has locked the consumer
-- in         st: the newest state of the consumer; p_lane, p_origin, p_group; p_policy, p_retry_limit, p_retry_delay (ms): of the queue;
--            p_keys: packed keys of the entries. One element per entry: p_status, p_lease (null: none given), p_after (seconds, for
--            status 3: not delivered again before), p_error, p_code, p_worker. p_final: failed means dead letter; p_required: leases that stand for a missing one, empty: any
-- out        one row per entry as queen.settle, and returned: a message can be delivered again, now or at a
--            later time, or another one because of maxInFlight
-- effects    changes the messages that are named, and no other. A lease ends when all its messages are settled
-- locks      none, or as queen.fail_messages
create or replace function queen.settle_work(
    st queen.consumer_states, p_lane bigint, p_origin bigint, p_group text, p_policy jsonb, p_retry_limit int, p_retry_delay int,
    p_now timestamptz, p_keys bytea, p_status int2[], p_lease uuid[], p_after int[], p_error text[], p_code text[], p_worker text[],
    p_final boolean, p_required uuid[])
returns table (entry int, why int2, released boolean, dead boolean, attempt int, due_at timestamptz, returned boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
    c_search constant int := 512; -- in longer leases a message is found through the index
    v_now    timestamptz := greatest(p_now, st.swept_at + interval '1 microsecond', st.leases_at + interval '1 microsecond');
    v_slot   "char";
    v_n      int := cardinality(p_status);
    -- Holds that the entries are about. First those of the leases that are named, in order of lease, the newest first:
    h_rows   queen.holds[] := '{}';
    h_first  bigint[] := '{}'; -- their first_seq
    h_lease  uuid[] := '{}';   -- of those read by lease
    h_keys   bytea[] := '{}';  -- likewise
    h_at     int[] := '{}';    -- likewise: their place in v_keys, in messages
    h_done   bytea[] := '{}';  -- what is settled after this call
    h_dirty  boolean[] := '{}';
    h        queen.holds;
    v_keys   bytea;            -- of all holds, one after the other
    v_m      int;              -- a place in it
    v_size   int := 0;
    v_lease  uuid;             -- the lease of the entry, and its holds
    v_from   int;
    v_to     int;
    -- Entries:
    v_hold   int[] := array_fill(null::int, array[v_n]); -- the hold that contains the message
    v_seq    bigint[] := array_fill(null::bigint, array[v_n]);
    v_why    int2[] := array_fill(0::int2, array[v_n]);
    v_acts   "char"[] := array_fill('n'::"char", array[v_n]); -- a: changes something, s: settled before, t: named twice, n: neither
    v_fate   "char"[] := array_fill(null::"char", array[v_n]);
    v_attempt int[] := array_fill(null::int, array[v_n]);
    v_due    timestamptz[] := array_fill(null::timestamptz, array[v_n]);
    v_key    bytea;
    v_bit    int;
    v_at     int;
    v_open   int;              -- the hold of the last entry without a lease
    f        record;
    g        record;
    v_some   int[];
    -- Failed ones, in portions:
    e_entry  int[];
    e_retries int[];
    e_at     timestamptz[];
    e_seq    bigint[];
    e_final  boolean[];
    e_error  text[];
    e_code   text[];
    e_worker text[];
    -- Messages that are given back:
    b_seq    bigint[] := '{}';
    b_hold   int[] := '{}';
    b_failed int[] := '{}';
    b_until  timestamptz[] := '{}';
    v_noted  bigint[] := '{}'; -- completed messages that had failed before
    v_settled int := 0;
    v_free   int := 0;         -- messages that were in flight, and are not any more
    v_ended  uuid[];           -- leases without open messages
    v_batches int;             -- likewise, by this call
begin
    select r.active into v_slot from queen.rotation r;
    for h in select k.* from queen.leased_holds(array(select distinct l from unnest(p_lease) l where l is not null)) k
              where k.consumer = st.consumer and k.hold >= st.holds_from order by k.lease, k.hold desc, k.first_seq loop
        if h.first_seq < st.walk_seq then
            h.until := null;
        end if;
        v_key := queen.leased_keys(p_lane, h.first_seq, h.first_seq + h.count - 1);
        if v_key is null or length(v_key) <> 16 * h.count then
            v_key := ''; -- without the keys of removed messages, positions do not match
        end if;
        h_rows := h_rows || h;
        h_first := h_first || h.first_seq;
        h_lease := h_lease || h.lease;
        h_keys := h_keys || v_key;
        h_at := h_at || v_size;
        h_done := h_done || h.done;
        h_dirty := h_dirty || false;
        v_size := v_size + length(v_key) / 16;
    end loop;
    h_at := h_at || v_size;
    v_keys := (select string_agg(u.k, ''::bytea order by u.ord) from unnest(h_keys) with ordinality u(k, ord));

    -- Find the message of each entry, and decide which entries change something. Thousands of entries may name as many holds: do not walk
    -- over all holds for each of them.
    for i in 1 .. v_n loop
        v_key := substr(p_keys, (i - 1) * 16 + 1, 16);
        if p_lease[i] is not null then
            if p_lease[i] is distinct from v_lease then
                v_lease := p_lease[i];
                v_from := array_position(h_lease, v_lease);
                v_to := case when v_from is not null then width_bucket(v_lease, h_lease) else 0 end;
                v_m := h_at[v_from] - 1; -- null: no such lease
            end if;
            if v_from is not null then
                -- Usually the message after that of the last entry, in an open hold: then no newer one contains it.
                v_m := v_m + 1;
                v_at := case when v_m < h_at[v_to + 1] and substr(v_keys, v_m * 16 + 1, 16) = v_key then width_bucket(v_m, h_at) end;
                if v_at is null or (h_rows[v_at]).until is null or get_bit((h_rows[v_at]).done, v_m - h_at[v_at]) = 1 then
                    v_m := case when h_at[v_to + 1] - h_at[v_from] <= c_search then
                        h_at[v_from] + queen.key_position(
                            substr(v_keys, h_at[v_from] * 16 + 1, (h_at[v_to + 1] - h_at[v_from]) * 16), v_key) end;
                    v_at := width_bucket(v_m, h_at);
                end if;
                if v_m is not null then
                    v_hold[i] := v_at;
                    v_seq[i] := h_first[v_at] + v_m - h_at[v_at];
                end if;
            end if;
        end if;
        if v_seq[i] is null then
            v_seq[i] := queen.find_message(p_lane, encode(v_key, 'hex')::uuid);
            if v_seq[i] is not null and p_lease[i] is not null then
                for j in coalesce(v_from, 1) .. v_to loop
                    if v_seq[i] - h_first[j] between 0 and (h_rows[j]).count - 1 then
                        v_hold[i] := j;
                        v_m := h_at[j] + (v_seq[i] - h_first[j])::int; -- at most a wrong guess about the next entry
                        exit;
                    end if;
                end loop;
            end if;
        end if;
        if v_seq[i] is null then
            v_why[i] := 1;
            continue;
        elsif p_status[i] not between 0 and 3 then
            v_why[i] := 3;
            continue;
        elsif p_lease[i] is null then
            -- Any open hold, also one that has expired: its messages were not delivered again yet. Usually that of the entry before.
            v_at := v_open;
            if v_at is null or (v_seq[i] - h_first[v_at] between 0 and (h_rows[v_at]).count - 1) is not true
               or get_bit((h_rows[v_at]).done, (v_seq[i] - h_first[v_at])::int) = 1 then
                select * into h from queen.hold_of(st.consumer, st.holds_from, st.walk_seq, v_seq[i]);
                v_at := null;
                if h.consumer is not null then
                    foreach v_bit in array array_positions(h_first, h.first_seq) loop
                        if (h_rows[v_bit]).hold = h.hold then
                            v_at := v_bit;
                        end if;
                    end loop;
                    if v_at is null then
                        h_rows := h_rows || h;
                        h_first := h_first || h.first_seq;
                        h_done := h_done || h.done;
                        h_dirty := h_dirty || false;
                        v_at := cardinality(h_rows);
                    end if;
                end if;
                v_open := v_at;
            end if;
            v_hold[i] := v_at;
            if v_at is null then
                if v_seq[i] > st.taken_seq and (st.settled @> v_seq[i]) is not true then
                    v_why[i] := 5;
                else
                    v_acts[i] := 's';
                end if;
                continue;
            elsif p_required <> '{}' and ((h_rows[v_at]).lease = any (p_required) and (h_rows[v_at]).until > v_now) is not true then
                v_why[i] := 2;
                continue;
            end if;
        elsif v_hold[i] is null then
            v_why[i] := 2;
            continue;
        end if;

        v_at := v_hold[i];
        h := h_rows[v_at];
        v_bit := (v_seq[i] - h.first_seq)::int;
        if h.until is null or h.done is not null and get_bit(h.done, v_bit) = 1 then
            -- Settled, or delivered to another consumer since.
            if exists (select from queen.hold_of(st.consumer, st.holds_from, st.walk_seq, v_seq[i])) then
                v_why[i] := 2;
            else
                v_acts[i] := 's';
            end if;
        elsif p_lease[i] is not null and h.until <= v_now then
            v_why[i] := 2;
        elsif h_done[v_at] is not null and get_bit(h_done[v_at], v_bit) = 1 then
            v_acts[i] := 't';
        elsif h.lease is null and p_status[i] in (1, 3) then
            v_why[i] := 5; -- it was given back, and waits for its next delivery
        else
            v_acts[i] := 'a';
            h_done[v_at] := set_bit(coalesce(h_done[v_at], decode(repeat('00', (h.count + 7) / 8), 'hex')), v_bit, 1);
            h_dirty[v_at] := true;
            v_free := v_free + coalesce(h.lease is not null and h.until > st.leases_at, false)::int;
        end if;
    end loop;

    -- Failed messages, in portions with the same history. Arrays are read in assignments only: the query of a loop would get a flat copy
    -- of them, in which each element is found by walking over those before it.
    select array_agg(q.i order by q.retries, q.at, q.seq), array_agg(q.retries order by q.retries, q.at, q.seq),
           array_agg(q.at order by q.retries, q.at, q.seq)
      into e_entry, e_retries, e_at
      from (select i, (h_rows[v_hold[i]]).retries as retries, (h_rows[v_hold[i]]).at as at, v_seq[i] as seq
              from generate_series(1, v_n) i
             where v_acts[i] = 'a' and p_status[i] in (1, 2)) q;
    v_from := 1;
    while v_from <= coalesce(cardinality(e_entry), 0) loop
        v_to := v_from;
        while e_retries[v_to + 1] = e_retries[v_from] and e_at[v_to + 1] is not distinct from e_at[v_from] loop
            v_to := v_to + 1;
        end loop;
        v_some := e_entry[v_from:v_to];
        e_seq := array(select v_seq[e] from unnest(v_some) e);
        e_final := array(select p_final or p_status[e] = 2 from unnest(v_some) e);
        e_error := array(select p_error[e] from unnest(v_some) e);
        e_code := array(select p_code[e] from unnest(v_some) e);
        e_worker := array(select p_worker[e] from unnest(v_some) e);
        for f in
            select r.* from queen.fail_messages(
                p_lane, p_origin, p_group, p_policy, not p_final and e_retries[v_from] < p_retry_limit, e_retries[v_from], e_at[v_from], v_now,
                v_some, e_seq, e_final, e_error, e_code, e_worker) r
        loop
            v_fate[f.id] := f.outcome;
            v_attempt[f.id] := f.attempt;
            v_due[f.id] := f.due_at;
        end loop;
        v_from := v_to + 1;
    end loop;
    if 's' = any (v_acts) then
        select array_agg(b.seq) as seq, array_agg(b.outcome) as outcome, array_agg(b.attempt) as attempt, array_agg(b.due_at) as due_at
          into g
          from queen.settled_before(p_lane, p_origin, p_group,
                                    array(select distinct v_seq[i] from generate_series(1, v_n) i where v_acts[i] = 's' order by 1)) b;
        for i in 1 .. case when g.seq is not null then v_n else 0 end loop
            continue when v_acts[i] <> 's';
            v_at := width_bucket(v_seq[i], g.seq);
            if g.seq[v_at] = v_seq[i] then
                v_fate[i] := g.outcome[v_at];
                v_attempt[i] := g.attempt[v_at];
                v_due[i] := g.due_at[v_at];
            end if;
        end loop;
    end if;

    -- Apply them.
    for i in 1 .. v_n loop
        if v_acts[i] = 's' and (p_status[i] in (0, 2) or p_final) and v_fate[i] = 'r' then
            v_why[i] := 4;
        elsif v_acts[i] = 's' and p_status[i] > 0 and v_fate[i] is null then
            v_why[i] := 6;
        end if;
        continue when v_acts[i] <> 'a';
        h := h_rows[v_hold[i]];
        if p_status[i] = 3 or v_fate[i] = 'i' then
            b_seq := b_seq || v_seq[i];
            b_hold := b_hold || v_hold[i];
            b_failed := b_failed || h.retries + (p_status[i] <> 3)::int;
            b_until := b_until || case
                when p_status[i] = 3 then v_now + coalesce(p_after[i], 0) * interval '1 second'
                when p_policy ? 'strategy'
                then v_now + queen.retry_delay(queen.fill_retry_policy(p_policy), h.retries + 1, random()) * interval '1 second'
                else v_now + coalesce(p_retry_delay, 0) * interval '1 millisecond' end;
            if b_until[cardinality(b_until)] > v_now then
                v_due[i] := b_until[cardinality(b_until)];
            end if;
        else
            v_settled := v_settled + 1;
            if p_status[i] in (1, 2) and v_fate[i] is null then
                v_why[i] := 1; -- deleted a moment ago
            elsif p_status[i] = 0 and (p_origin is not null or h.retries > 0) then
                v_noted := v_noted || v_seq[i];
            end if;
        end if;
    end loop;
    if true = any (h_dirty) then
        insert into queen.holds (consumer, first_seq, hold, ver, count, deliveries, retries, slot, at, until, lease, done)
        select (h_rows[j]).consumer, (h_rows[j]).first_seq, (h_rows[j]).hold, (h_rows[j]).ver + 1, (h_rows[j]).count,
               (h_rows[j]).deliveries, (h_rows[j]).retries, v_slot, (h_rows[j]).at,
               case when bit_count(h_done[j]) < (h_rows[j]).count then (h_rows[j]).until end, (h_rows[j]).lease, h_done[j]
          from generate_subscripts(h_rows, 1) j
         where h_dirty[j];
        -- A delivery that ends with an acknowledgement does not count for maxDeliveries.
        insert into queen.holds (consumer, first_seq, hold, ver, count, deliveries, retries, slot, until)
        select st.consumer, b.seq, st.ver + 1, 1, 1, (h_rows[b.hold]).deliveries - 1, b.failed, v_slot, b.until
          from unnest(b_seq, b_hold, b_failed, b_until) b(seq, hold, failed, until);
    end if;
    -- Also for entries that change nothing: a lease of theirs may still be open.
    if h_rows <> '{}' then
        select coalesce(array_agg(e.lease), '{}'), count(*) filter (where e.dirty) into v_ended, v_batches
          from (select (h_rows[j]).lease as lease, bool_or(h_dirty[j]) as dirty from generate_subscripts(h_rows, 1) j
                 where (h_rows[j]).lease is not null
                 group by 1
                having bool_and((h_rows[j]).until is null or coalesce(bit_count(h_done[j]) = (h_rows[j]).count, false))) e
         -- Leases of entries without one may have other holds, which were not read.
         where array_position(p_lease, null) is null
            or not exists (select from queen.leased_holds(array[e.lease]) k
                            where k.consumer = st.consumer and k.hold >= st.holds_from
                              and k.first_seq >= st.walk_seq and k.until is not null);
    end if;
    if true = any (h_dirty) then
        if v_noted <> '{}' then
            perform queen.note_completed(p_lane, p_origin, p_group, array(select s from unnest(v_noted) s order by s),
                                         (h_rows[1]).at, v_now, p_worker[1]);
        end if;
        st.batch_size := st.batch_size - v_settled;
        st.leased := st.leased - v_free;
        st.total_messages := st.total_messages + v_settled;
        st.total_batches := st.total_batches + v_batches;
        select w.cursor_seq, w.walk_seq into st.cursor_seq, st.walk_seq
          from queen.work_floor(st.consumer, st.walk_seq, st.holds_from, st.taken_seq, st.batch_size) w;
        if p_origin is not null then
            perform queen.trim_retry_lane(p_lane, st.cursor_seq);
        end if;
        st.ver := st.ver + 1;
        st.last_at := v_now;
        st.slot := v_slot;
        insert into queen.consumer_states select (st).*;
    end if;

    for i in 1 .. v_n loop
        v_at := i;
        if v_acts[i] = 't' then -- the result of the entry that named it first
            v_at := array_position(v_seq, v_seq[i]);
            while v_acts[v_at] <> 'a' loop
                v_at := array_position(v_seq, v_seq[i], v_at + 1);
            end loop;
            v_why[i] := v_why[v_at];
        end if;
        entry := i - 1;
        why := v_why[i];
        dead := why = 0 and coalesce(v_fate[v_at] = 'd', false);
        attempt := case when why = 0 and p_status[i] > 0 then v_attempt[v_at] end;
        due_at := case when why = 0 and p_status[i] > 0 then v_due[v_at] end;
        released := why = 0 and coalesce((h_rows[v_hold[v_at]]).lease = any (v_ended), st.batch_size = 0);
        returned := why = 0 and v_acts[v_at] = 'a' and (p_status[v_at] = 3 or v_fate[v_at] = 'i' or st.leased is not null);
        return next;
    end loop;
end
$$;
